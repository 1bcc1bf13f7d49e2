#include "cli/arguments/counts.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(CountsTest, SuffixesAreDecimal) {
  EXPECT_EQ(parse_count("1281167"), 1'281'167);
  EXPECT_EQ(parse_count("1.28M"), 1'280'000);
  EXPECT_EQ(parse_count("1.2812m"), 1'281'200);
  EXPECT_EQ(parse_count("50k"), 50'000);
  EXPECT_EQ(parse_count("0.5G"), 500'000'000);
  EXPECT_EQ(parse_count("1e6"), 1'000'000);
  EXPECT_EQ(parse_count("-3"), -3) << "the range refuses it in its own words";
}

TEST(CountsTest, CommasPartThousands) {
  EXPECT_EQ(parse_count("1,281,167"), 1'281'167);
  EXPECT_EQ(parse_count("1,28"), std::nullopt);
  EXPECT_EQ(parse_count(",281"), std::nullopt);
}

TEST(CountsTest, WhatIsNoCountIsNone) {
  for (const char* text : {"", "k", "many", "1.5", "1.0005k", "5T", "5kk", "nan", "inf", "1e300M"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace stoker::cli
