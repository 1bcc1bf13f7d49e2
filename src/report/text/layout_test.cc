#include "report/text/layout.h"

#include <gtest/gtest.h>

namespace stoker::layout {
namespace {

TEST(Layout, LeftOutCountsSayWhy) {
  EXPECT_EQ(left_out_counts({}, 2), "");
  EXPECT_EQ(left_out_counts({1}, 2), "  1 GPU is left out: 2 nodes cannot share it evenly\n");
  EXPECT_EQ(left_out_counts({3}, 2), "  3 GPUs are left out: 2 nodes cannot share them evenly\n");
  EXPECT_EQ(left_out_counts({1, 2, 4}, 3),
            "  1, 2 and 4 GPUs are left out: 3 nodes cannot share them evenly\n");
}

TEST(Layout, NumbersKeepThreeDigits) {
  EXPECT_EQ(number(2483), "2,480");
  EXPECT_EQ(number(999.4), "999");
  EXPECT_EQ(number(12.34), "12.3");
  EXPECT_EQ(number(1.234), "1.23");
  EXPECT_EQ(number(1234567), "1,230,000");
}

TEST(Layout, ThreeDigitsAlsoWhereRoundingReachesTheNextUnit) {
  EXPECT_EQ(number(9.994), "9.99");
  EXPECT_EQ(number(9.996), "10.0");
  EXPECT_EQ(number(99.94), "99.9");
  EXPECT_EQ(number(99.96), "100");
  EXPECT_EQ(number(999.4), "999");
  EXPECT_EQ(number(999.6), "1,000");
  EXPECT_EQ(number(999'600), "1,000,000");
  EXPECT_EQ(number(-999.6), "-1,000");
  for (double value = 1; value < 1e9; value *= 1.0007) {
    std::string digits = number(value);
    std::erase(digits, ',');
    const double shown = std::stod(digits);
    ASSERT_NEAR(shown / value, 1, 0.005001) << value;
    if (value < 999) {
      std::erase(digits, '.');
      ASSERT_EQ(digits.size(), 3U) << value;
    }
  }
}

TEST(Layout, MoneyHasCentsUpToAThousandAndDigitsThatSaySomethingBelow) {
  EXPECT_EQ(money(1240.4, "$"), "$1,240");
  EXPECT_EQ(money(999.99, "$"), "$999.99");
  EXPECT_EQ(money(999.996, "$"), "$1,000");
  EXPECT_EQ(money(12.345, "$"), "$12.35");
  EXPECT_EQ(money(0.00612, "$"), "$0.0061");
}

TEST(Layout, EnergyIsInWattHoursWhereItIsSmall) {
  EXPECT_EQ(energy({0.21, 0.11, 0.31, ""}), "0.21 kWh [0.11-0.31]");
  EXPECT_EQ(energy({0.0042, 0.0021, 0.0063, ""}), "4.20 Wh [2.10-6.30]");
}

TEST(Layout, FiguresCarryTheirBand) {
  EXPECT_EQ(rate({2480, 2050, 2700, ""}), "2,480 [2,050-2,700]");
  EXPECT_EQ(percent(0.955), "96 %");
}

TEST(Layout, TablesAlign) {
  EXPECT_EQ(table({{"a", "bb"}, {"ccc", "d"}}, {0}, ""), "a    bb\nccc   d\n");
}

TEST(Layout, LabelsWrapWithAHangingIndent) {
  EXPECT_EQ(labelled("Assumed", {"one two", "three"}, 20),
            "Assumed    one two;\n           three\n");
  EXPECT_EQ(labelled("Assumed", {}), "");
}

TEST(Layout, OnlyWarningsArePrinted) {
  Diagnostics d;
  d.add("a", Severity::kNote, "quiet");
  d.add("b", Severity::kWarning, "loud", 3);
  EXPECT_EQ(diagnostics(d), "warning: loud (3 times)\n");
}

}  // namespace
}  // namespace stoker::layout
