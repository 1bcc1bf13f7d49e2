#include "cli/arguments/help.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

const Command& command_named(const std::vector<Section>& sections, std::string_view name) {
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      if (command.name == name) return command;
    }
  }
  ADD_FAILURE() << name;
  return sections[0].commands[0];
}

TEST(HelpTest, WordsAreWrappedUnderThemselves) {
  EXPECT_EQ(help_line("--batch N", "per GPU"), "  --batch N                 per GPU\n");
  EXPECT_EQ(help_line("--a-name-that-is-long VALUE", "far"),
            "  --a-name-that-is-long VALUE\n                            far\n");
  const std::string text = help_line("x", std::string(70, 'a') + " bb");
  EXPECT_EQ(text, "  x" + std::string(25, ' ') + std::string(70, 'a') + "\n" +
                      std::string(28, ' ') + "bb\n");
}

TEST(HelpTest, UsageShowsLettersValuesAndPairs) {
  EXPECT_EQ(usage_of(*find_setting("predict", "workers")), "--workers N");
  EXPECT_EQ(usage_of(*find_setting("predict", "clip")), "--[no-]clip");
  EXPECT_EQ(usage_of(*find_setting("probe", "output")), "-o, --output FILE");
  EXPECT_EQ(usage_of(*find_setting("predict", "model")), "MODEL");
  EXPECT_EQ(usage_of(*find_setting("predict", "json")), "--json");
}

TEST(HelpTest, EachVerbStandsOnceInTheMainHelp) {
  const std::vector<Section> sections = all_verbs();
  const std::string text = main_help(sections);
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      const std::string line = "\n  " + command.name + " ";
      const auto at = text.find(line);
      ASSERT_NE(at, std::string::npos) << command.name;
      EXPECT_EQ(text.find(line, at + 1), std::string::npos) << command.name;
    }
  }
}

TEST(HelpTest, HelpIsFifteenLinesWithAnExampleAndHelpAllHasEveryFlag) {
  const std::vector<Section> sections = all_verbs();
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      if (!command.run) continue;  // its help is Python's
      const std::string& verb = command.name;
      const std::string first = verb_help(command, HelpPart::kFirst);
      const std::string all = verb_help(command, HelpPart::kAll);
      EXPECT_LE(std::count(first.begin(), first.end(), '\n'), 15) << first;
      EXPECT_EQ(first.find("Example:") != std::string::npos,
                command.examples.find("Example:") != std::string::npos)
          << first;
      for (const SettingRow* s : settings_of(verb)) {
        const std::string line = "\n  " + usage_of(*s);
        EXPECT_NE(all.find(line), std::string::npos) << verb << line;
        if (s->required) {
          EXPECT_NE(first.find(line), std::string::npos) << verb << line;
        }
      }
    }
  }
}

TEST(HelpTest, ShortLinesEndAtAPhraseOrAWord) {
  EXPECT_EQ(short_line("--batch N", "per GPU"), "  --batch N                 per GPU\n");
  const std::string phrase(50, 'a'), rest(40, 'b');
  EXPECT_EQ(short_line("--batch N", phrase + ", " + rest),
            "  --batch N                 " + phrase + " ...\n");
  EXPECT_EQ(short_line("x", "one " + std::string(80, 'c')),
            "  x" + std::string(25, ' ') + "one ...\n");
}

TEST(HelpTest, NoLineOfPlansHelpIsLongerThanATerminal) {
  const std::vector<Section> sections = all_verbs();
  Command plan = command_named(sections, "plan");
  plan.examples.clear();
  for (const std::string& line : split(verb_help(plan, HelpPart::kAll), '\n'))
    EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace stoker::cli
