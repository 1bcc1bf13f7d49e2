#include "report/text/table_fit.h"

#include <gtest/gtest.h>

#include "report/text/layout.h"
#include "report/text/screen.h"

namespace stoker::layout {
namespace {

const Cells kRows{{"GPUs", "batch", "speed", "limit"},
                  {"1", "128", "1,960 [1,610-2,490]", "preparing samples on the CPU cores"}};

struct Narrow {
  explicit Narrow(std::size_t columns, bool footer = true) { set_screen({columns, footer}); }
  ~Narrow() { set_screen({}); }
};

TEST(TableFit, WhatFitsStaysAsItIs) {
  const FittedTable all = fitted(kRows, {3}, 100, {});
  EXPECT_EQ(all.rows, kRows);
  EXPECT_EQ(all.kept, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(TableFit, WordsOfTheLastColumnGoOnBelowThemselves) {
  const FittedTable narrow = fitted(kRows, {3}, 56, {});
  ASSERT_EQ(narrow.rows.size(), 3U);
  EXPECT_EQ(narrow.kept.size(), 4U);
  EXPECT_EQ(narrow.rows[1][3], "preparing samples on");
  EXPECT_EQ(narrow.rows[2], (std::vector<std::string>{"", "", "", "the CPU cores"}));
}

TEST(TableFit, ColumnsGoInTheOrderThatIsGivenAndTheFirstNever) {
  EXPECT_EQ(fitted(kRows, {}, 50, {}).kept, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(fitted(kRows, {}, 30, {3, 1}).kept, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(fitted(kRows, {}, 1, {0, 1, 2}).kept, (std::vector<std::size_t>{0}));
}

TEST(TableFit, NoLineIsWiderThanTheTerminalAndWhatIsMissingIsSaid) {
  const Narrow narrow(40);
  const std::string text = table(kRows, {3});
  for (std::size_t from = 0, to = 0; (to = text.find('\n', from)) != std::string::npos;
       from = to + 1)
    EXPECT_LE(to - from, 40U) << text;
  EXPECT_NE(text.find("left out"), std::string::npos) << text;
}

TEST(TableFit, LabelledLinesKeepToTheTerminalAndTheFooterCanBeHidden) {
  const std::vector<std::string> items{"one phrase that is long", "another phrase, longer still"};
  {
    const Narrow narrow(40);
    EXPECT_EQ(footer(items, {}, {}),
              "Rests on   one phrase that is long;\n"
              "           another phrase, longer still\n");
  }
  const Narrow quiet(0, false);
  EXPECT_EQ(footer(items, items, items), "");
}

}  // namespace
}  // namespace stoker::layout
