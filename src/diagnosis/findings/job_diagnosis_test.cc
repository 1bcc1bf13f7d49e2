#include "diagnosis/findings/job_diagnosis.h"

#include <gtest/gtest.h>

#include "diagnosis/test_job.h"

namespace stoker {
namespace {

using test_job::Doing;
using test_job::MadeJob;

std::string first(const JobDiagnosis& d) {
  return d.findings.empty() ? "" : d.findings.front().name;
}

const JobFinding* find(const JobDiagnosis& d, std::string_view name) {
  for (const JobFinding& f : d.findings) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

MadeJob fed() {
  MadeJob job;
  job.loop = {0.97, 0, WaitKind::kPoll};
  job.workers = {{0.4, 0, WaitKind::kPoll}, {0.4, 0, WaitKind::kPoll}};
  return job;
}

TEST(JobDiagnosis, ALoopThatComputesIsHealthy) {
  const JobDiagnosis d = diagnose_job(fed().play());
  EXPECT_TRUE(d.healthy);
  EXPECT_TRUE(d.findings.empty()) << first(d);
  EXPECT_NEAR(d.waits, 0.03, 0.01);
  EXPECT_NEAR(d.useful, 0.97, 0.01);
  EXPECT_NEAR(d.batches_per_s, 10, 0.2);
  EXPECT_EQ(d.verdict.substr(0, 8), "Healthy:");
}

TEST(JobDiagnosis, OneBusyWorkerOnManyCoresWantsCompany) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kPoll};
  job.workers = {{1.0, 0, WaitKind::kPoll}};
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "too_few_workers");
  const JobFinding& f = d.findings.front();
  EXPECT_NEAR(f.lost, 0.7, 0.02);
  ASSERT_TRUE(f.gain);
  // 100 ms of making against 30 ms of computing a batch: four workers feed the loop fully.
  EXPECT_EQ(f.setting, "num_workers=4");
  EXPECT_NEAR(f.gain->value, 10.0 / 3 - 1, 0.1);
  EXPECT_LE(f.gain->low, f.gain->value);
  EXPECT_GE(f.gain->high, f.gain->value);
}

TEST(JobDiagnosis, FullCoresWantCheaperSamples) {
  MadeJob job;
  job.cores = 2;
  job.loop = {0.2, 0, WaitKind::kPoll};
  job.workers = {{0.9, 0.1, WaitKind::kPoll}, {0.9, 0.1, WaitKind::kPoll}};
  const JobDiagnosis d = diagnose_job(job.play());
  EXPECT_EQ(first(d), "preparation_bound");
  EXPECT_EQ(find(d, "too_few_workers"), nullptr);
  EXPECT_EQ(find(d, "other_jobs_on_the_cores"), nullptr);
}

TEST(JobDiagnosis, WorkersAsleepInSamplesAreReading) {
  for (const WaitKind kind : {WaitKind::kDisk, WaitKind::kNetworkStorage, WaitKind::kTimer}) {
    MadeJob job;
    job.loop = {0.3, 0, WaitKind::kPoll};
    job.workers = {{0.1, 0, kind}, {0.1, 0, kind}};
    const JobDiagnosis d = diagnose_job(job.play());
    EXPECT_EQ(first(d), "reading_bound") << name_of(kind);
    EXPECT_NEAR(d.findings.front().lost, 0.7, 0.15);
  }
}

TEST(JobDiagnosis, ADiskAtItsLimitWantsNoMoreWorkers) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kPoll};
  job.workers = {{0.05, 0, WaitKind::kDisk}, {0.05, 0, WaitKind::kDisk}};
  job.calls_per_s = 20;
  // Reads of 256 KiB at 5 MB/s a worker: a hard disk gives one reader 18.
  job.disk_per_s = 2 * 20 * 262144;
  const JobDiagnosis slow = diagnose_job(job.play());
  ASSERT_EQ(first(slow), "reading_bound");
  EXPECT_EQ(slow.findings.front().setting, "");
  EXPECT_NE(slow.findings.front().evidence.find("only wait longer"), std::string::npos);
  // As many small reads: 12 ms each are what a hard disk takes, and two of them take more.
  job.calls_per_s = 60;
  job.disk_per_s = 2 * 60 * 4096;
  const JobDiagnosis seeks = diagnose_job(job.play());
  ASSERT_EQ(first(seeks), "reading_bound");
  EXPECT_NE(seeks.findings.front().setting, "");
  EXPECT_LE(seeks.findings.front().gain->low, 0);
}

TEST(JobDiagnosis, IdleWorkersBesideOneThatIsBusyWaitForTheirTurn) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kPoll};
  job.workers = {{1.0, 0, WaitKind::kPoll}, {0.05, 0, WaitKind::kPoll}, {0.05, 0, WaitKind::kPoll}};
  const JobDiagnosis d = diagnose_job(job.play());
  EXPECT_TRUE(first(d) == "window_too_small" || first(d) == "slow_samples") << first(d);
}

TEST(JobDiagnosis, IdleWorkersOnlyMeanThatBatchesAreOnTheirWay) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kPoll};
  job.workers = {{0.05, 0, WaitKind::kPoll}, {0.05, 0, WaitKind::kPoll}};
  EXPECT_EQ(first(diagnose_job(job.play())), "transport_bound");
}

TEST(JobDiagnosis, OthersOnTheCoresAreNamed) {
  MadeJob job = fed();
  job.cores = 2;
  job.foreign = 1.0;
  job.loop = {0.6, 0.4, WaitKind::kPoll};
  job.workers = {{0.2, 0.2, WaitKind::kPoll}};
  EXPECT_EQ(first(diagnose_job(job.play())), "other_jobs_on_the_cores");
}

TEST(JobDiagnosis, OthersThatGiveWayLeaveTheirCoresToTheJob) {
  MadeJob job;
  job.cores = 2;
  job.foreign = 0.8;
  job.loop = {0.2, 0, WaitKind::kPoll};
  job.workers = {{0.98, 0.02, WaitKind::kPoll}};
  // Nobody waits for a core, so that whoever the others are has a core of its own.
  const JobDiagnosis alone = diagnose_job(job.play());
  // Somebody waits nearly all the time, and the job does not: it would be served first.
  job.pressure = 0.9;
  const JobDiagnosis yielding = diagnose_job(job.play());
  ASSERT_EQ(first(yielding), "too_few_workers");
  ASSERT_TRUE(yielding.findings.front().gain);
  ASSERT_TRUE(alone.findings.front().gain);
  EXPECT_GT(yielding.findings.front().gain->value, alone.findings.front().gain->value + 0.1);
  EXPECT_NE(yielding.notes.front().find("gave way"), std::string::npos);
  // A job that waits as much as others competes with them.
  job.foreign = 1.1;
  job.loop = {0.2, 0.2, WaitKind::kPoll};
  job.workers = {{0.6, 0.4, WaitKind::kPoll}};
  EXPECT_NE(find(diagnose_job(job.play()), "other_jobs_on_the_cores"), nullptr);
}

TEST(JobDiagnosis, NoCureOfTheLoaderSparesMoreThanItsWaiting) {
  MadeJob job;
  job.loop = {0.75, 0, WaitKind::kPoll};
  job.workers = {{1.0, 0, WaitKind::kPoll}};
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "too_few_workers");
  EXPECT_LE(d.findings.front().gain->value, 1 / 0.75 - 1 + 0.01);
  EXPECT_LE(d.findings.front().gain->high, 1.2 / 0.75 - 1 + 0.01);
}

TEST(JobDiagnosis, AQuotaThatIsUsedUp) {
  MadeJob job;
  job.loop = {0.4, 0.3, WaitKind::kPoll};
  job.workers = {{0.8, 0.2, WaitKind::kPoll}};
  job.quota = 1.2;
  job.throttled_share = 0.9;
  const JobDiagnosis d = diagnose_job(job.play());
  EXPECT_EQ(first(d), "cpu_quota");
  EXPECT_GT(d.job[JobState::kThrottled], 0);
}

TEST(JobDiagnosis, WorkersThatAreStartedEveryEpoch) {
  MadeJob job = fed();
  job.loop = {0.6, 0, WaitKind::kPoll};
  job.workers = {{0.9, 0, WaitKind::kPoll}, {0.9, 0, WaitKind::kPoll}};
  job.seconds = 40;
  job.epoch = 8;
  job.first_batch = 7;
  const JobDiagnosis d = diagnose_job(job.play());
  const JobFinding* f = find(d, "workers_restarted");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->setting, "persistent_workers=True");
}

TEST(JobDiagnosis, WaitingForOldWorkersToEndBelongsToTheirRestart) {
  MadeJob job = fed();
  job.loop = {0.6, 0, WaitKind::kPoll};
  job.seconds = 40;
  job.epoch = 8;
  job.first_batch = 2;
  const double early = diagnose_job(job.play()).job[JobState::kStartsWorkers];
  // The workers hand over nothing in the last two of eight seconds, five times.
  job.last_batch = 6;
  const double both = diagnose_job(job.play()).job[JobState::kStartsWorkers];
  EXPECT_NEAR(both - early, 5 * 2 * 0.4, 0.4);
}

TEST(JobDiagnosis, AQuotaThatTheJobIsPutUnderLater) {
  MadeJob job;
  job.loop = {0.4, 0.3, WaitKind::kPoll};
  job.workers = {{0.8, 0.2, WaitKind::kPoll}};
  job.group_quota = 1.2;
  job.throttled_share = 0.9;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "cpu_quota");
  EXPECT_NE(d.findings.front().evidence.find("1.2 cores"), std::string::npos)
      << d.findings.front().evidence;
}

TEST(JobDiagnosis, WhatTheLoopTellsOfItsWaitingCounts) {
  MadeJob job = fed();
  job.told_waits = 0.04;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_TRUE(d.told);
  EXPECT_NEAR(d.waits, 0.04, 1e-6);
  EXPECT_NEAR(d.waits_seen, 0.03, 0.01);
  EXPECT_NEAR(d.told->step_s, 0.1, 0.01);
  EXPECT_NEAR(d.told->samples_per_s, 80, 2);
  EXPECT_TRUE(d.healthy) << first(d);
}

TEST(JobDiagnosis, LoadingWithoutWorkersShowsWhereTheLoopTellsIt) {
  MadeJob job;
  job.loop = {1.0, 0, WaitKind::kPoll};
  job.told_waits = 0.6;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "loads_in_main_process");
  EXPECT_NEAR(d.findings.front().lost, 0.6, 0.01);
  // 60 ms of loading beside 40 ms of the rest: two workers keep up with it.
  EXPECT_EQ(d.findings.front().setting, "num_workers=2");
  ASSERT_TRUE(d.findings.front().gain);
  EXPECT_NEAR(d.findings.front().gain->high, 1.2 / 0.4 - 1, 0.01);
  job.told_waits = 0.02;
  EXPECT_TRUE(diagnose_job(job.play()).healthy);
}

TEST(JobDiagnosis, ReceivingBatchesIsTheLoopsOwnWork) {
  MadeJob job = fed();
  job.loop = {0.95, 0, WaitKind::kPoll};
  job.told_waits = 0.35;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "transport_bound");
  EXPECT_NEAR(d.findings.front().lost, 0.3, 0.02);
}

TEST(JobDiagnosis, ManyTensorsShowInALoopThatTellsNothing) {
  MadeJob job = fed();
  job.reads_a_batch = 2 + 6 * 200;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "transport_bound");
  // 10 batches of 200 tensors a second, at 0.155 ms a tensor and 0.45 ms a batch.
  EXPECT_NEAR(d.findings.front().lost, 10 * (0.45e-3 + 200 * 0.155e-3), 0.005);
  EXPECT_NEAR(d.waits_seen, 0.03 + d.findings.front().lost, 0.01);
  EXPECT_EQ(d.findings.front().confidence, Confidence::kLow);
  job.reads_a_batch = 2 + 6 * 2;
  EXPECT_TRUE(diagnose_job(job.play()).healthy);
}

TEST(JobDiagnosis, ValidationThatTheLoopTellsOf) {
  MadeJob job = fed();
  job.told_waits = 0.02;
  job.told_validation = 0.3;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "validation_stalls");
  EXPECT_NEAR(d.findings.front().lost, 0.3, 0.01);
}

TEST(JobDiagnosis, PausesBetweenStepsAreNamed) {
  MadeJob job = fed();
  job.seconds = 60;
  job.pause_every = 10;
  job.pause = 3;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "validation_or_logging_stalls");
  EXPECT_NEAR(d.findings.front().lost, 0.3, 0.06);
}

TEST(JobDiagnosis, WorkersThatFillTheCoresHoldTheLoopUp) {
  MadeJob job;
  job.cores = 2;
  job.loop = {0.5, 0.45, WaitKind::kPoll};
  job.workers = std::vector<Doing>(3, Doing{0.45, 0.5, WaitKind::kPoll});
  const std::string name = first(diagnose_job(job.play()));
  EXPECT_TRUE(name == "preparation_bound" || name == "too_many_workers") << name;
}

TEST(JobDiagnosis, CheckpointsThatTheLoopWaitsFor) {
  MadeJob job = fed();
  job.loop = {0.2, 0, WaitKind::kDisk};
  job.written_per_s = 100e6;
  EXPECT_EQ(first(diagnose_job(job.play())), "checkpoint_stalls");
}

TEST(JobDiagnosis, MemoryThatGrowsAndWhenItIsGone) {
  MadeJob job = fed();
  job.memory_per_s = 20e6;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "memory_grows");
  // 8 GB are left.
  EXPECT_NE(d.findings.front().evidence.find("gone in 6 min 40 s"), std::string::npos)
      << d.findings.front().evidence;
  EXPECT_FALSE(d.healthy);
}

TEST(JobDiagnosis, MemoryThatAnEndingJobGivesBackDoesNotHideThatItGrew) {
  MadeJob job = fed();
  job.seconds = 40;
  job.memory_per_s = 20e6;
  job.given_back_at = 39;
  EXPECT_NE(find(diagnose_job(job.play()), "memory_grows"), nullptr);
  // Given back long before the end, it is no growth.
  job.given_back_at = 30;
  EXPECT_EQ(find(diagnose_job(job.play()), "memory_grows"), nullptr);
}

TEST(JobDiagnosis, SharedMemoryThatIsNearlyFull) {
  MadeJob job = fed();
  job.shm_full = 0.95;
  EXPECT_EQ(first(diagnose_job(job.play())), "shared_memory_nearly_full");
}

TEST(JobDiagnosis, WithoutWorkersReadingIsTheLoopsOwn) {
  MadeJob job;
  job.loop = {0.6, 0, WaitKind::kDisk};
  job.read_per_s = 3e6;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "loads_in_main_process");
  EXPECT_EQ(d.findings.front().setting, "num_workers=2");
}

TEST(JobDiagnosis, AShortWatchSaysNothing) {
  MadeJob job = fed();
  job.loop = {0.1, 0, WaitKind::kPoll};
  job.seconds = 2;
  const JobDiagnosis d = diagnose_job(job.play());
  EXPECT_TRUE(d.findings.empty());
  EXPECT_FALSE(d.healthy);
  EXPECT_NE(d.verdict.find("too short"), std::string::npos);
}

TEST(JobDiagnosis, AJobThatIsNotPythonIsSaidSo) {
  MadeJob job;
  job.python = false;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_FALSE(d.notes.empty());
  EXPECT_EQ(d.notes[0], "no process of the job is Python: workers and batches are not known");
}

GpuSample gpu(std::int64_t busy, std::int64_t power_mw = 250'000) {
  GpuSample g;
  g.busy_percent = busy;
  g.power_mw = power_mw;
  g.power_limit_mw = 300'000;
  g.clock_mhz = 1700;
  g.clock_most_mhz = 1750;
  g.memory_used = 1 << 30;
  g.job_processes = 1;
  return g;
}

TEST(JobDiagnosis, AGpuThatIsBusyIsTheLimit) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kDevice};
  job.workers = {{0.4, 0, WaitKind::kPoll}};
  job.gpu = gpu(98);
  const JobDiagnosis d = diagnose_job(job.play());
  EXPECT_TRUE(d.healthy) << first(d);
  EXPECT_NE(d.verdict.find("the GPU, busy 98 %"), std::string::npos) << d.verdict;
}

TEST(JobDiagnosis, WaitingForDataThatLeavesTheGpuBusyLosesNothing) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kPoll};
  job.workers = {{1, 0, WaitKind::kPoll}};
  job.gpu = gpu(97);
  EXPECT_TRUE(diagnose_job(job.play()).healthy);
  job.gpu = gpu(40);
  EXPECT_EQ(first(diagnose_job(job.play())), "too_few_workers");
}

TEST(JobDiagnosis, ABusyThreadBesideAnIdleGpuLaunchesTooMuch) {
  MadeJob job = fed();
  job.gpu = gpu(45, 90'000);
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "host_bound_launching");
  EXPECT_NEAR(d.findings.front().lost, 0.55, 0.03);
  EXPECT_EQ(d.findings.front().gain->low, 0);
}

TEST(JobDiagnosis, ABusyGpuAtLowPowerRunsSmallKernels) {
  MadeJob job = fed();
  job.gpu = gpu(99, 45'000);
  EXPECT_EQ(first(diagnose_job(job.play())), "host_bound_launching");
}

TEST(JobDiagnosis, LoopAndDeviceThatWaitForEachOther) {
  MadeJob job;
  job.loop = {0.4, 0, WaitKind::kDevice};
  job.workers = {{0.3, 0, WaitKind::kPoll}};
  job.gpu = gpu(55);
  EXPECT_EQ(first(diagnose_job(job.play())), "synchronisations");
}

TEST(JobDiagnosis, AGpuHeldByHeatOrByItsPowerLimit) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kDevice};
  job.workers = {{0.3, 0, WaitKind::kPoll}};
  job.gpu = gpu(99);
  job.gpu.clock_mhz = 1000;
  job.gpu.throttle_reasons = 0x40;
  EXPECT_EQ(first(diagnose_job(job.play())), "gpu_throttled_by_heat");
  job.gpu.throttle_reasons = 0x4;
  EXPECT_EQ(first(diagnose_job(job.play())), "gpu_throttled_by_power");
  job.gpu.clock_mhz = 1740;  // the usual state of a card at work
  EXPECT_TRUE(diagnose_job(job.play()).healthy);
}

TEST(JobDiagnosis, SomebodyElseOnTheGpu) {
  MadeJob job;
  job.loop = {0.3, 0, WaitKind::kDevice};
  job.workers = {{0.3, 0, WaitKind::kPoll}};
  job.gpu = gpu(99);
  job.gpu.foreign_processes = 1;
  job.gpu.foreign_memory = 3LL << 30;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "gpu_shared");
  EXPECT_NE(d.findings.front().evidence.find("3.0 GiB"), std::string::npos);
}

TEST(JobDiagnosis, AGpuThatIsHeldAndNotUsed) {
  MadeJob job;
  job.loop = {0, 0, WaitKind::kFutex};
  job.batches_per_s = 0;
  job.gpu = gpu(0, 40'000);
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_EQ(first(d), "gpu_forgotten");
  EXPECT_EQ(d.findings.front().lost, 1);
}

TEST(JobDiagnosis, LargestLossesComeFirst) {
  MadeJob job;
  job.cores = 4;
  job.foreign = 3;
  job.loop = {0.2, 0.2, WaitKind::kPoll};
  job.workers = {{0.6, 0.3, WaitKind::kPoll}, {0.6, 0.3, WaitKind::kPoll}};
  const JobDiagnosis d = diagnose_job(job.play());
  for (std::size_t i = 1; i < d.findings.size(); ++i)
    EXPECT_GE(d.findings[i - 1].lost, d.findings[i].lost);
}

}  // namespace
}  // namespace stoker
