#include "diagnosis/next_run/observed_run.h"

#include <gtest/gtest.h>

#include "diagnosis/test_job.h"

namespace stoker {
namespace {

using test_job::MadeJob;

/// Ten batches a second of two workers, each busy for 60 ms of a batch's 200 and asleep for 40.
MadeJob watched() {
  MadeJob job;
  job.loop = {0.5, 0, WaitKind::kTimer};
  job.workers = {{0.3, 0, WaitKind::kTimer}, {0.3, 0, WaitKind::kTimer}};
  job.read_per_s = 0;
  return job;
}

TEST(ObservedRun, TellsWhatASampleCosts) {
  MadeJob job = watched();
  job.told_waits = 0.0;
  job.told_batch = 16;
  const auto run = observed_run(job.play(), std::nullopt, "a.rec");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_TRUE(run->batch_told);
  EXPECT_EQ(run->settings.batch, 16);
  EXPECT_EQ(run->settings.workers, 2);
  // Two workers make ten batches a second: 60 ms of a core each.
  EXPECT_NEAR(run->sample.mean_cpu().count(), 60e6 / 16, 3e5);
  EXPECT_GT(run->sample.mean_wait().count(), 0);
  EXPECT_NEAR(run->consumer.step.count(), 100e6, 3e6);
  EXPECT_NEAR(run->consumer.host_cpu.count(), 50e6, 3e6);
  EXPECT_NEAR(run->batches_per_s, 10, 0.3);
}

TEST(ObservedRun, TheCallersBatchCountsWhereTheLoopTellsNone) {
  const auto run = observed_run(watched().play(), 32, "a.rec");
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->batch_told);
  EXPECT_EQ(run->settings.batch, 32);
  const auto none = observed_run(watched().play(), std::nullopt, "a.rec");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("how many samples a batch has"), std::string::npos);
}

TEST(ObservedRun, WithoutWorkersTheLoopItselfHasToTell) {
  MadeJob job;
  job.loop = {1.0, 0, WaitKind::kPoll};
  const auto none = observed_run(job.play(), 8, "a.rec");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("a.rec"), std::string::npos);
  job.told_waits = 0.6;
  const auto run = observed_run(job.play(), std::nullopt, "a.rec");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->settings.workers, 0);
  EXPECT_NEAR(run->sample.mean_cpu().count(), 60e6 / 8, 3e5);
  EXPECT_NEAR(run->consumer.step.count(), 40e6, 3e6);
}

}  // namespace
}  // namespace stoker
