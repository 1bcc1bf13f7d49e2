#include "diagnosis/timeline/job_timeline.h"

#include <gtest/gtest.h>

#include "diagnosis/test_job.h"

namespace stoker {
namespace {

using test_job::MadeJob;

TEST(JobTimeline, JoinsTheLoopWithItsWorkers) {
  MadeJob job;
  job.loop = {0.4, 0.1, WaitKind::kPoll};
  job.workers = {{0.8, 0.1, WaitKind::kPoll}, {0.6, 0, WaitKind::kDisk}};
  const JobTimeline t = job.play();
  ASSERT_EQ(t.ranks().size(), 1U);
  const RankTimeline r = t.ranks()[0];
  EXPECT_NEAR(r.job.all(), 20, 0.01);
  EXPECT_NEAR(r.job[JobState::kComputes], 8, 0.1);
  EXPECT_NEAR(r.job[JobState::kWaitsForCore], 2, 0.1);
  EXPECT_NEAR(r.job[JobState::kWaitsForData], 10, 0.1);
  EXPECT_NEAR(r.workers.cpu, 28, 0.3);
  EXPECT_NEAR(r.workers.idle, 2, 0.1);
  EXPECT_NEAR(r.workers.storage, 8, 0.1);
  EXPECT_EQ(r.workers_now, 2);
  EXPECT_NEAR(r.batches, 200, 2);
  EXPECT_EQ(r.messages_a_batch, 1);
}

TEST(JobTimeline, WithoutWorkersAPollIsNoWaitForData) {
  MadeJob job;
  const RankTimeline r = job.play().ranks().at(0);
  EXPECT_EQ(r.job[JobState::kWaitsForData], 0);
  EXPECT_NEAR(r.job[JobState::kTalks], 14, 0.1);
}

TEST(JobTimeline, EpochsStartWorkersAnew) {
  MadeJob job;
  job.workers = {{0.5, 0, WaitKind::kPoll}, {0.5, 0, WaitKind::kPoll}};
  job.seconds = 60;
  job.epoch = 15;
  job.first_batch = 2;
  const RankTimeline r = job.play().ranks().at(0);
  ASSERT_GE(r.generations.size(), 4U);
  EXPECT_EQ(r.generations[1].workers, 2);
  EXPECT_TRUE(r.generations[1].seen_from_start);
  EXPECT_NEAR(r.generations[1].first_batch, 2, 0.5);
  EXPECT_GT(r.job[JobState::kStartsWorkers], 3);
}

TEST(JobTimeline, ShortEpochsAreEpochsToo) {
  MadeJob job;
  job.workers = {{0.5, 0, WaitKind::kPoll}, {0.5, 0, WaitKind::kPoll}};
  job.seconds = 10;
  job.epoch = 1;
  job.first_batch = 0.2;
  const RankTimeline r = job.play().ranks().at(0);
  EXPECT_NEAR(static_cast<double>(r.generations.size()), 11, 1);
  EXPECT_EQ(r.generations[3].workers, 2);
}

TEST(JobTimeline, StepsThatWarmUpAreLeftOutWhereTheirStartWasSeen) {
  MadeJob job;
  job.loop = {0.4, 0, WaitKind::kPoll};
  job.workers = {{0.5, 0, WaitKind::kPoll}};
  job.first_batch = 1;
  const RankTimeline running = job.play().ranks().at(0);
  EXPECT_FALSE(running.warm);
  EXPECT_EQ(running.loop_batches, running.batches);
  job.start_seen = true;
  const RankTimeline r = job.play().ranks().at(0);
  EXPECT_TRUE(r.warm);
  EXPECT_EQ(r.job[JobState::kStartsWorkers], 0) << "the first start is every job's";
  // Ten steps of a tenth of a second, after those that were asked for while none was made.
  EXPECT_NEAR(r.batches - r.loop_batches, 20, 2);
  EXPECT_NEAR(r.job.all(), 18, 0.3);
  EXPECT_NEAR(r.loop_batches / r.job.all(), 10, 0.3);
  job.seconds = 4;
  const RankTimeline brief = job.play().ranks().at(0);
  EXPECT_NEAR(brief.batches - brief.loop_batches, 10 + 6, 1.5) << "of thirty steps a fifth";
}

TEST(JobTimeline, WhatFollowsTheLastWorkersOfAJobThatEndsIsItsEnd) {
  JobTimeline t;
  std::vector<ProcessFacts> all(2);
  for (std::uint32_t i = 0; i < 2; ++i) all[i].serial = i + 1;
  all[0].role = ProcessRole::kTraining;
  all[1].role = ProcessRole::kWorker;
  all[1].owner = 1;
  t.learn(all);
  ProcessSample main;
  main.serial = 1;
  const auto sample = [&](double at, bool worker, bool alive) {
    Sample s;
    s.at_ns = static_cast<std::int64_t>(at * 1e9);
    main.alive = alive;
    main.looks.add(WaitKind::kPoll);
    s.processes.push_back(main);
    if (worker) s.processes.emplace_back().serial = 2;
    t.add(s);
  };
  for (int i = 0; i <= 30; ++i) sample(0.1 * i, true, true);
  for (int i = 31; i <= 40; ++i) sample(0.1 * i, false, true);
  EXPECT_NEAR(t.ranks().at(0).job.all(), 4, 0.01) << "it may go on";
  sample(4.1, false, false);
  EXPECT_NEAR(t.ranks().at(0).job.all(), 3, 0.01);
  EXPECT_NEAR(t.ranks().at(0).job[JobState::kWaitsForData], 3, 0.01);
}

TEST(JobTimeline, WhatSpawnedTheRanksIsNone) {
  JobTimeline t;
  std::vector<ProcessFacts> all(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    all[i].serial = i + 1;
    all[i].role = ProcessRole::kTraining;
  }
  t.learn({all[0]});
  const auto sample = [&](double at, std::uint32_t processes) {
    Sample s;
    s.at_ns = static_cast<std::int64_t>(at * 1e9);
    for (std::uint32_t i = 1; i <= processes; ++i) s.processes.emplace_back().serial = i;
    t.add(s);
  };
  sample(0, 1);
  sample(1, 1);
  EXPECT_EQ(t.ranks().size(), 1U);
  // The second process is found to train, and the first to have started it.
  all[0].role = ProcessRole::kLauncher;
  t.learn(all);
  sample(2, 2);
  sample(3, 2);
  ASSERT_EQ(t.ranks().size(), 1U);
  EXPECT_EQ(t.ranks()[0].serial, 2U);
  // When the ranks have ended it looks like a training process again.
  all[0].role = ProcessRole::kTraining;
  t.learn({all[0]});
  sample(4, 1);
  EXPECT_EQ(t.ranks().size(), 1U);
}

TEST(JobTimeline, KeepsABoundedNumberOfStretches) {
  MadeJob job;
  job.workers = {{0.5, 0, WaitKind::kPoll}};
  job.seconds = 5000;
  const JobTimeline t = job.play();
  EXPECT_LE(t.stretches().size(), 2048U);
  double seconds = 0, batches = 0;
  for (const Stretch& s : t.stretches()) seconds += s.seconds, batches += s.batches;
  EXPECT_NEAR(seconds, 5000, 3);
  EXPECT_NEAR(batches, 50000, 60);
}

TEST(JobTimeline, ASampleThatIsNotLaterIsNoInterval) {
  JobTimeline t;
  ProcessFacts p;
  p.serial = 1;
  p.role = ProcessRole::kTraining;
  t.learn({p});
  Sample s;
  s.at_ns = 5'000'000'000;
  s.processes.emplace_back().serial = 1;
  t.add(s);
  s.at_ns = 4'000'000'000;
  t.add(s);
  EXPECT_DOUBLE_EQ(t.seconds(), 5);
  EXPECT_TRUE(t.ranks().empty());
}

TEST(JobTimeline, ProcessesThatNobodyIntroducedAreLeftOut) {
  JobTimeline t;
  Sample s;
  s.processes.emplace_back().serial = 99;
  t.add(s);
  s.at_ns = 1'000'000'000;
  t.add(s);
  EXPECT_TRUE(t.ranks().empty());
}

}  // namespace
}  // namespace stoker
