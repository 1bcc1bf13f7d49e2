#include "study/definition/template.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace stoker::study {
namespace {

using Words = std::vector<std::string>;

std::string filled(std::string_view text, const std::string& batch = "64") {
  const auto parsed = Template::parse(text);
  if (!parsed) return parsed.error().message;
  const auto result =
      parsed->fill([&](std::string_view name) { return name == "batch" ? &batch : nullptr; });
  return result ? *result : result.error().message;
}

/// What /bin/sh makes of the filled template.
std::string by_shell(std::string_view text, const std::string& batch) {
  const auto parsed = Template::parse(text);
  const std::string command =
      parsed->fill_for_shell([&](std::string_view) { return &batch; }).value_or("exit 1");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  char block[512];
  const std::size_t n = std::fread(block, 1, sizeof block, pipe.get());
  return {block, n};
}

TEST(Template, PlacesAreFilled) {
  EXPECT_EQ(filled("--batch={batch}"), "--batch=64");
  EXPECT_EQ(filled("{batch*2} of {batch}"), "128 of 64");
  EXPECT_EQ(filled("{{\"batch\": {batch}}}"), "{\"batch\": 64}");
  EXPECT_EQ(filled("plain"), "plain");
}

TEST(Template, NamesAreListedOnce) {
  EXPECT_EQ(Template::parse("{a} {b*a}")->names(), (Words{"a", "b"}));
}

TEST(Template, Refusals) {
  EXPECT_EQ(filled("{batch"), "\"{batch\" has a { that nothing closes; write {{ for the sign");
  EXPECT_EQ(filled("batch}"), "\"batch}\" has a } that nothing opens; write }} for the sign");
  EXPECT_EQ(filled("{bach}"), "\"bach\" is no axis of this study");
  EXPECT_EQ(filled("{}"),
            "\"\" has \"its end\" at column 1, where it cannot stand; write {{ and }} for braces "
            "that are meant as such");
}

TEST(Template, AShellRunsNothingOfAValue) {
  const std::string value = "it's \"$(echo run)\" `echo run` \\ $HOME; echo run";
  EXPECT_EQ(by_shell("printf %s {v}", value), value);
  EXPECT_EQ(by_shell("printf %s \"{v}\"", value), value);
  EXPECT_EQ(by_shell("printf %s 'a {v} b'", value), "a " + value + " b");
  EXPECT_EQ(by_shell("printf %s \"a\\\"b{v}\"", value), "a\"b" + value);
}

TEST(Words, ArePartedAsAShellParts) {
  EXPECT_EQ(split_words("python  train.py --name 'a b' \"c d\" e\\ f ''").value(),
            (Words{"python", "train.py", "--name", "a b", "c d", "e f", ""}));
  EXPECT_EQ(split_words("a 'b").error().message, "\"a 'b\" has a quote that nothing closes");
  EXPECT_EQ(shell_line({"a", "b c", "", "--x=1"}), "a 'b c' '' --x=1");
}

}  // namespace
}  // namespace stoker::study
