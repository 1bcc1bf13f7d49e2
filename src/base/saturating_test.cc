#include "base/saturating.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();

TEST(Saturating, WhatFitsIsExact) {
  EXPECT_EQ(saturating_sum(3, -5), -2);
  EXPECT_EQ(saturating_sum(kMost - 1, 1), kMost);
  EXPECT_EQ(saturating_difference(kLeast + 1, 1), kLeast);
  EXPECT_EQ(saturating_difference(kLeast, kLeast), 0);
  EXPECT_EQ(saturating_whole(-2.9), -2);
  EXPECT_EQ(saturating_whole(0x1p62), std::int64_t{1} << 62);
}

TEST(Saturating, WhatDoesNotIsTheNearestThatDoes) {
  EXPECT_EQ(saturating_sum(kMost, 1), kMost);
  EXPECT_EQ(saturating_sum(kLeast, -1), kLeast);
  EXPECT_EQ(saturating_difference(kMost, -1), kMost);
  EXPECT_EQ(saturating_difference(kLeast, 1), kLeast);
  EXPECT_EQ(saturating_difference(0, kLeast), kMost);
  EXPECT_EQ(saturating_whole(0x1p63), kMost);
  EXPECT_EQ(saturating_whole(-1e300), kLeast);
  EXPECT_EQ(saturating_whole(std::nan("")), 0);
}

}  // namespace
}  // namespace stoker
