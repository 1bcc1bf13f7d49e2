#include "study/definition/values.h"

#include <gtest/gtest.h>

namespace stoker::study {
namespace {

using Words = std::vector<std::string>;

Words values(std::string_view typed) {
  const auto result = parse_values(typed);
  EXPECT_TRUE(result.has_value()) << result.error().text();
  return result.value_or(Words{});
}

std::string refused(std::string_view typed) {
  const auto result = parse_values(typed);
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().message;
}

TEST(Values, ListsAreTakenAsTheyAreWritten) {
  EXPECT_EQ(values("32,64, 128"), (Words{"32", "64", "128"}));
  EXPECT_EQ(values("sgd,adam"), (Words{"sgd", "adam"}));
  EXPECT_EQ(values("1.50"), (Words{"1.50"}));
  EXPECT_EQ(values("../data,a/../b,v..x"), (Words{"../data", "a/../b", "v..x"}));
}

TEST(Values, RangesOfWholeNumbersHaveBothEnds) {
  EXPECT_EQ(values("0..3"), (Words{"0", "1", "2", "3"}));
  EXPECT_EQ(values("-1..1"), (Words{"-1", "0", "1"}));
  EXPECT_EQ(values("0..20+8"), (Words{"0", "8", "16"}));
  EXPECT_EQ(values("1..2,8"), (Words{"1", "2", "8"}));
}

TEST(Values, StepsOfFractionsDoNotShowRounding) {
  EXPECT_EQ(values("0.1..0.5+0.1"), (Words{"0.1", "0.2", "0.3", "0.4", "0.5"}));
  EXPECT_EQ(values("0..1+0.25"), (Words{"0", "0.25", "0.5", "0.75", "1"}));
}

TEST(Values, PowersAndFactors) {
  EXPECT_EQ(values("32..256x2"), (Words{"32", "64", "128", "256"}));
  EXPECT_EQ(values("512..16384x2"), (Words{"512", "1024", "2048", "4096", "8192", "16384"}));
  EXPECT_EQ(values("2^9..2^12"), (Words{"512", "1024", "2048", "4096"}));
  EXPECT_EQ(values("1e-5..1e-1"), (Words{"1e-05", "1e-04", "0.001", "0.01", "0.1"}));
  EXPECT_EQ(values("1e-2..1"), (Words{"0.01", "0.1", "1"}));
  EXPECT_EQ(values("1e-3..0.1"), (Words{"0.001", "0.01", "0.1"}));
  EXPECT_EQ(values("1e2..1e4"), (Words{"100", "1000", "10000"}));
  EXPECT_EQ(values("0.01..1x10"), (Words{"0.01", "0.1", "1"}));
}

TEST(Values, WhatCannotBeMeantIsRefusedWithTheCure) {
  EXPECT_EQ(refused("8..0"), "\"8..0\" goes down: put the smaller end first");
  EXPECT_EQ(refused("0.1..0.5"), "\"0.1..0.5\" needs a step: write 0.1..0.5+0.1 or 0.01..1x10");
  EXPECT_EQ(refused("1e-1..5"), "\"1e-1..5\" needs a step: write 0.1..0.5+0.1 or 0.01..1x10");
  EXPECT_EQ(refused("0..8x2"), "\"0..8x2\" multiplies, and so has to begin above 0");
  EXPECT_EQ(refused("1..8x1"), "\"1..8x1\" needs a factor above 1 behind x");
  EXPECT_EQ(refused("1..8+0"), "\"1..8+0\" needs a step above 0 behind +");
  EXPECT_EQ(refused("1..b"), "\"1..b\" is no range: write 0..8, 0..64+8, 32..1024x2, 2^9..2^14");
  // Ends that no number holds.
  for (const char* range : {"2^9999..2^9999", "2^1..2^9999", "2^-9999..2^1"})
    EXPECT_NE(refused(range).find("is no range"), std::string::npos) << range;
  EXPECT_EQ(refused(""), "\"\" has an empty value; write 32,64,128 or 0..8");
  EXPECT_EQ(refused("1,2,1"), "\"1,2,1\" has 1 twice; give it once");
  EXPECT_EQ(parse_values("1,2,1", "--repeat 2").error().message,
            "\"1,2,1\" has 1 twice; --repeat 2 runs settings again");
  EXPECT_EQ(refused("1..1000000000"),
            "\"1..1000000000\" has 1e+09 values, and at most 100000 are tried; give a step or "
            "fewer");
}

}  // namespace
}  // namespace stoker::study
