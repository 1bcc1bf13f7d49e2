#include "cli/arguments/man_page.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

TEST(ManPage, HasEveryVerbAndNoLineThatTroffWouldTakeForARequest) {
  const std::vector<Section> sections = all_verbs();
  const std::string page = man_page(sections);
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      std::string name;
      for (const char c : command.name) name += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_NE(page.find(".SS \"stoker " + name + "\"\n"), std::string::npos) << command.name;
    }
  }
  for (const std::string& line : split(page, '\n')) {
    if (!line.starts_with('.')) continue;
    bool known = false;
    for (const char* request :
         {".TH ", ".SH ", ".SS ", ".TP", ".PP", ".nf", ".fi", ".br", ".ad l", ".nh"})
      known = known || line.starts_with(request);
    EXPECT_TRUE(known) << line;
  }
}

TEST(ManPage, TroffSetsItWithoutAWarning) {
  if (std::system("command -v groff >/dev/null 2>&1") != 0) GTEST_SKIP() << "no groff here";
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::filesystem::path page = folder / "stoker-man-test.1",
                              said = folder / "stoker-man-said";
  std::ofstream(page) << man_page(all_verbs());
  const std::string command = "groff -man -Tascii -ww -z " + page.string() + " 2>" + said.string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::filesystem::file_size(said), 0U);
  std::filesystem::remove(page);
  std::filesystem::remove(said);
}

}  // namespace
}  // namespace stoker::cli
