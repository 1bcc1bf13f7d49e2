#include "diagnosis/timeline/stall_track.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr double kTick = 0.1;

JobSeconds tick(JobState state) {
  JobSeconds job;
  job[state] = kTick;
  return job;
}

void steps(StallTrack& track, int count) {
  for (int i = 0; i < count; ++i) track.add(2, 8, false, tick(JobState::kComputes));
}

void nothing_asked(StallTrack& track, double seconds, JobState state) {
  for (double at = kTick / 2; at < seconds; at += kTick) track.add(0, 8, false, tick(state));
}

TEST(StallTrack, AnEvenLoopHasNone) {
  StallTrack track;
  steps(track, 100);
  EXPECT_NEAR(track.usual(), 0.05, 0.006);
  EXPECT_EQ(track.count(), 0);
}

TEST(StallTrack, SecondsWithoutABatchAreCounted) {
  StallTrack track;
  for (int i = 0; i < 3; ++i) {
    steps(track, 50);
    nothing_asked(track, 2, JobState::kComputes);
  }
  steps(track, 1);
  EXPECT_EQ(track.count(), 3);
  EXPECT_NEAR(track.seconds(), 6, 0.3);
  EXPECT_NEAR(track.longest(), 2, 0.1);
  // 151 tenths of a second with batches, but for the first eight, which make the rhythm known.
  EXPECT_NEAR(track.judged(), 15.1 - 0.8 + 6, 0.3);
}

TEST(StallTrack, WaitingForDataIsNone) {
  StallTrack track;
  steps(track, 50);
  nothing_asked(track, 3, JobState::kWaitsForData);
  steps(track, 50);
  EXPECT_EQ(track.count(), 0);
}

TEST(StallTrack, AnEpochsEndThatUsesUpWhatWasAskedForIsNone) {
  StallTrack track;
  steps(track, 50);
  // Sixty batches of 50 ms lie ready, and as many are asked for when the next epoch begins.
  nothing_asked(track, 3, JobState::kComputes);
  track.add(60, 60, false, tick(JobState::kComputes));
  EXPECT_EQ(track.count(), 0);
  // With a validation of two seconds behind it.
  steps(track, 50);
  nothing_asked(track, 5, JobState::kComputes);
  track.add(60, 60, false, tick(JobState::kComputes));
  EXPECT_EQ(track.count(), 1);
  EXPECT_NEAR(track.seconds(), 2, 0.5);
}

TEST(StallTrack, WhatLiesAroundACheckpointBelongsToIt) {
  StallTrack track;
  for (int i = 0; i < 3; ++i) {
    steps(track, 50);
    nothing_asked(track, 0.3, JobState::kComputes);
    nothing_asked(track, 0.4, JobState::kSaves);
    nothing_asked(track, 0.3, JobState::kReads);
  }
  steps(track, 50);
  EXPECT_NEAR(track.around_saves(), 3, 0.2);
  EXPECT_EQ(track.count(), 0);
}

TEST(StallTrack, AValidationThatEndsWithACheckpointIsAValidation) {
  StallTrack track;
  steps(track, 50);
  nothing_asked(track, 5, JobState::kComputes);
  nothing_asked(track, 0.3, JobState::kSaves);
  steps(track, 50);
  EXPECT_EQ(track.count(), 1);
  EXPECT_NEAR(track.around_saves(), 0, 1e-9);
}

TEST(StallTrack, ALongStepIsAStepWhereAllAreLong) {
  StallTrack track;
  for (int i = 0; i < 30; ++i) {
    nothing_asked(track, 2, JobState::kComputes);
    track.add(1, 4, false, tick(JobState::kComputes));
  }
  EXPECT_EQ(track.count(), 0);
}

}  // namespace
}  // namespace stoker
