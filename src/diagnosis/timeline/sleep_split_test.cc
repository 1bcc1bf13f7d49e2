#include "diagnosis/timeline/sleep_split.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Looks looks(std::uint32_t running, std::uint32_t poll, std::uint32_t disk, std::uint32_t unknown) {
  Looks l;
  l.count[static_cast<std::size_t>(WaitKind::kRunning)] = running;
  l.count[static_cast<std::size_t>(WaitKind::kPoll)] = poll;
  l.count[static_cast<std::size_t>(WaitKind::kDisk)] = disk;
  l.count[static_cast<std::size_t>(WaitKind::kUnknown)] = unknown;
  return l;
}

TEST(SleepSplit, DividesWhatTheKernelDoesNotCountByLooks) {
  SleepSplit split;
  const ThreadSeconds s = split.between({}, {200'000'000, 100'000'000}, {}, looks(3, 3, 1, 0), 1.0);
  EXPECT_DOUBLE_EQ(s.cpu, 0.2);
  EXPECT_DOUBLE_EQ(s.queued, 0.1);
  EXPECT_NEAR(s.in(WaitKind::kPoll), 0.7 * 0.75, 1e-9);
  EXPECT_NEAR(s.in(WaitKind::kDisk), 0.7 * 0.25, 1e-9);
  EXPECT_NEAR(s.all(), 1.0, 1e-9);
}

TEST(SleepSplit, AThreadThatIsReadyAtEveryLookIsInTheRunQueue) {
  SleepSplit split;
  ThreadSeconds s = split.between({}, {200'000'000, 0}, {}, looks(5, 0, 0, 0), 1.0);
  EXPECT_DOUBLE_EQ(s.queued, 0.8);
  // The kernel tells of it when the thread gets a core: it is not counted twice.
  s = split.between({200'000'000, 0}, {400'000'000, 1'100'000'000}, looks(5, 0, 0, 0),
                    looks(9, 1, 0, 0), 1.0);
  EXPECT_NEAR(s.queued, 0.3, 1e-9);
  EXPECT_NEAR(s.in(WaitKind::kPoll), 0.5, 1e-9);
}

TEST(SleepSplit, AnIntervalWithoutLooksIsDividedAsUsual) {
  SleepSplit split;
  split.between({}, {}, {}, looks(0, 4, 0, 0), 1.0);
  const ThreadSeconds s =
      split.between({}, {500'000'000, 0}, looks(0, 4, 0, 0), looks(0, 4, 0, 0), 1.0);
  EXPECT_NEAR(s.in(WaitKind::kPoll), 0.5, 1e-9);
}

TEST(SleepSplit, WhatIsHiddenIsUnknownUnlessSomethingIsShown) {
  SleepSplit hidden;
  EXPECT_NEAR(hidden.between({}, {}, {}, looks(0, 0, 0, 4), 1.0).in(WaitKind::kUnknown), 1, 1e-9);
  SleepSplit shown;
  const ThreadSeconds s = shown.between({}, {}, {}, looks(0, 3, 0, 1), 1.0);
  EXPECT_NEAR(s.in(WaitKind::kPoll), 1, 1e-9);
  EXPECT_EQ(s.in(WaitKind::kUnknown), 0);
}

TEST(SleepSplit, CountersThatJumpFillNoMoreThanTheInterval) {
  SleepSplit split;
  const ThreadSeconds s = split.between({}, {3'000'000'000, 1'000'000'000}, {}, {}, 1.0);
  EXPECT_DOUBLE_EQ(s.cpu, 1.0);
  EXPECT_DOUBLE_EQ(s.queued, 0.0);
  EXPECT_DOUBLE_EQ(s.all(), 1.0);
}

}  // namespace
}  // namespace stoker
