#include "cli/arguments/blank_values.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/arguments/typed_names.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

using Words = std::vector<std::string>;

std::string refusal(std::string_view verb, const Words& words) {
  const auto ours = in_our_names(verb, words);
  EXPECT_TRUE(ours) << ours.error().text();
  if (!ours) return "?";
  const Status status = refuse_blank_values(verb, ours->words);
  return status ? "" : ours->as_typed(status.error().text());
}

std::set<std::string> all_verbs() {
  std::set<std::string> verbs;
  for (const SettingRow& row : all_settings()) {
    for (std::string& verb : names_in(row.verbs)) verbs.insert(std::move(verb));
  }
  return verbs;
}

TEST(BlankValues, OfEverySettingOfEveryVerbAreRefusedWithTheCure) {
  int tried = 0;
  for (const std::string& verb : all_verbs()) {
    for (const SettingRow* row : settings_of(verb)) {
      if (row->positional) continue;
      for (const std::string& flag : flags_of(*row)) {
        if (row->type == SettingType::kSwitch || row->type == SettingType::kPair) continue;
        for (const std::string blank : {"", " ", "\t \n"}) {
          SCOPED_TRACE(verb + " " + flag + " '" + blank + "'");
          const std::string apart = refusal(verb, {flag, blank});
          EXPECT_NE(apart.find(flag + ": is empty (is a variable unset?); give "),
                    std::string::npos)
              << apart;
          EXPECT_NE(apart.find(std::string(row->words)), std::string::npos) << apart;
          if (flag.starts_with("--")) {
            EXPECT_EQ(refusal(verb, {flag + "=" + blank}), apart);
          }
          ++tried;
        }
        if (row->type == SettingType::kList && !row->keeps_commas) {
          for (const char* list : {",", "a,", ",a", "a, ,b"})
            EXPECT_NE(refusal(verb, {flag, list}).find("between its commas"), std::string::npos)
                << verb << " " << flag << " " << list;
        }
      }
    }
  }
  EXPECT_GT(tried, 1000);
}

TEST(BlankValues, WhatIsGivenPasses) {
  EXPECT_EQ(refusal("predict", {"resnet50", "--gpu", "t4", "--batch=32", "--clip"}), "");
  EXPECT_EQ(refusal("predict", {"resnet50", "--gpu"}), "");  // the parser says what is missing
  // What goes to the user's own program is the user's.
  EXPECT_EQ(refusal("predict", {"train.py", "--gpu", "t4", "--", "--name", ""}), "");
}

TEST(BlankValues, AnEmptyWordIsNoModel) {
  const std::string text = refusal("predict", {"", "--gpu", "t4"});
  EXPECT_NE(text.find("empty word"), std::string::npos) << text;
}

}  // namespace
}  // namespace stoker::cli
