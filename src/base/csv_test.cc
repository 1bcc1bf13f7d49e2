#include "base/csv.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Csv, ReadsQuotesCommasAndLineBreaks) {
  const auto rows =
      parse_csv("a,b\n# a comment\n\"1,5\",\"say \"\"hi\"\"\"\n\n\"two\nlines\",\r\n", "t");
  ASSERT_TRUE(rows.has_value()) << rows.error().text();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0]["a"], "1,5");
  EXPECT_EQ((*rows)[0]["b"], "say \"hi\"");
  EXPECT_EQ((*rows)[0].line, 3);
  EXPECT_EQ((*rows)[1]["a"], "two\nlines");
  EXPECT_EQ((*rows)[1]["b"], "");
  EXPECT_EQ((*rows)[1].line, 5);
  EXPECT_EQ((*rows)[1]["no such column"], "");
}

TEST(Csv, NeedsNoFinalLineBreak) {
  const auto rows = parse_csv("a,b\n1,2", "t");
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ((*rows)[0]["b"], "2");
  const auto blank = parse_csv("a,b\n1,", "t");
  ASSERT_TRUE(blank.has_value()) << blank.error().text();
  EXPECT_EQ((*blank)[0]["b"], "");
}

TEST(Csv, PointsAtTheLineThatIsWrong) {
  EXPECT_EQ(parse_csv("a,b\n1,2\n1,2,3\n", "t.csv").error().where, "t.csv:3");
  EXPECT_EQ(parse_csv("a\n\"open\n\n", "t.csv").error().where, "t.csv:2");
  EXPECT_EQ(parse_csv("a\n\"x\"y\n", "t.csv").error().where, "t.csv:2");
  EXPECT_NE(parse_csv("a,a\n1,2\n", "t.csv").error().message.find("appears twice"),
            std::string::npos);
  EXPECT_FALSE(parse_csv("# nothing\n", "t.csv").has_value());
}

TEST(Csv, APositiveNumberIsAllOfItsCell) {
  EXPECT_EQ(*positive_number("1.5e3"), 1500);
  for (const char* bad : {"", "0", "-1", "nan", "inf", "4x", " 4"}) {
    const auto number = positive_number(bad);
    ASSERT_FALSE(number.has_value()) << bad;
    EXPECT_EQ(number.error().message, "\"" + std::string(bad) + "\" is not a positive number");
  }
}

}  // namespace
}  // namespace stoker
