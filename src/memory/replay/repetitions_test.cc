#include "memory/replay/repetitions.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace stoker {
namespace {

/// A repetition that kept `reserved` and had `allocated` at most.
IterationMemory kept(std::int64_t reserved, std::int64_t allocated) {
  IterationMemory memory;
  memory.reserved_peak = memory.reserved_end = Bytes(reserved);
  memory.allocated_peak = Bytes(allocated);
  return memory;
}

/// How many repetitions it took to know how they go on, and the cycle.
std::pair<int, std::size_t> until_known(const std::function<IterationMemory(int)>& repetition) {
  Repetitions done;
  for (int i = 0; i < 2000; ++i) {
    if (const auto course = done.add(repetition(i)); course.cycle > 0) return {i + 1, course.cycle};
  }
  return {-1, 0};
}

TEST(Repetitions, KnowsThoseThatChangeNothingAfterSixteenAlike) {
  EXPECT_EQ(until_known([](int) { return kept(100, 50); }), std::pair(17, std::size_t{1}));
}

TEST(Repetitions, BeginsAnewWhereSegmentsGrow) {
  const auto grown = [](int i) { return kept(i < 10 ? 100 : 120, 50); };
  EXPECT_EQ(until_known(grown), std::pair(27, std::size_t{1}));
  EXPECT_EQ(until_known([](int i) { return kept(100 + i, 50); }).second, 0U);
}

TEST(Repetitions, FindsACycleAndKeepsWhatItDid) {
  Repetitions done;
  std::size_t cycle = 0;
  for (int i = 0; cycle == 0; ++i) cycle = done.add(kept(100, 50 + i % 3)).cycle;
  ASSERT_EQ(cycle, 3U);
  ASSERT_EQ(done.last_cycle().size(), 3U);
  Bytes sum;
  for (const IterationMemory& one : done.last_cycle()) sum += one.allocated_peak;
  EXPECT_EQ(sum, Bytes(50 + 51 + 52));
}

TEST(Repetitions, TakesSegmentsForSettledWhereBlocksGoOnChangingPlaces) {
  const auto restless = [](int i) { return kept(100, 50 + i * i % 1009); };
  EXPECT_EQ(until_known(restless), std::pair(257, std::size_t{1}));
}

TEST(Repetitions, ThoseThatLeaveAllWhereItLayBeforeGoOnInACycle) {
  Repetitions done;
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(done.add(kept(100, 50), i).cycle, 0U) << i;
  const Repetitions::Course course = done.add(kept(100, 90), 2);
  EXPECT_EQ(course.cycle, 3U);
  EXPECT_TRUE(course.proven);
  ASSERT_EQ(done.last_cycle().size(), 3U);
  EXPECT_EQ(done.last_cycle().back().allocated_peak, Bytes(90));
}

TEST(Repetitions, WhatTheyDidProvesNothing) {
  Repetitions done;
  Repetitions::Course course;
  std::uint64_t i = 0;
  for (; course.cycle == 0; ++i) course = done.add(kept(100, 50), i);
  EXPECT_EQ(i, 257U);
  EXPECT_FALSE(course.proven);
}

}  // namespace
}  // namespace stoker
