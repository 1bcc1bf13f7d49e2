#include "tune/run/checkpoints.h"

#include <gtest/gtest.h>

#include <limits>

namespace stoker::tune {
namespace {

constexpr std::int64_t kRoomy = std::numeric_limits<std::int64_t>::max() / 2;
using Removed = std::vector<std::size_t>;

std::vector<Checkpoint> four() {
  return {{"1", 0.5, true}, {"2", 0.7, false}, {"3", 0.4, true}, {"4", 0.1, true, true}};
}

TEST(CheckpointsTest, WhatNothingGoesOnFromGoes) {
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 10, 10, 10}, {}, kRoomy), (Removed{1}));
}

TEST(CheckpointsTest, TheWorstGoUntilTheLimitsAreKept) {
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 10, 10, 10}, {25, 0}, kRoomy), (Removed{1, 2}));
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 10, 10, 10}, {0, 2}, kRoomy), (Removed{1, 2}));
  // One that a trial uses stays, whatever the limit.
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 10, 10, 10}, {0, 1}, kRoomy), (Removed{1, 2, 0}));
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 10, 0, 10}, {0, 2}, kRoomy), (Removed{1}))
      << "an empty folder is none";
}

TEST(CheckpointsTest, AFullDiskTakesTheWorst) {
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 1, 10, 10}, {}, 8), (Removed{1, 2, 0}));
  EXPECT_EQ(checkpoints_to_remove(four(), {10, 5, 10, 10}, {}, 8), (Removed{1, 2}));
}

}  // namespace
}  // namespace stoker::tune
