#include "diagnosis/findings/own_loading.h"

#include <gtest/gtest.h>

#include "diagnosis/test_job.h"

namespace stoker {
namespace {

using test_job::MadeJob;

/// A loop without workers that is on a core all the time; of 100 answers a second so many each.
MadeJob alone(std::int64_t data, std::int64_t math, std::int64_t device, std::int64_t python) {
  MadeJob job;
  job.loop = {1.0, 0, WaitKind::kPoll};
  job.batches_per_s = 0;
  job.code_per_s = {data, math, device, python, 0};
  return job;
}

TEST(OwnLoading, IsToldByWhoseCodeRuns) {
  const JobDiagnosis d = diagnose_job(alone(50, 30, 0, 20).play());
  ASSERT_TRUE(d.own_loading);
  EXPECT_TRUE(d.own_loading->by_code);
  // What serves both is divided as the rest is, 55 to 35 with a quarter of it for either.
  const double value = 0.5 + 0.2 * 55 / 90;
  EXPECT_NEAR(d.own_loading->value.value_or(0), value, 0.01);
  EXPECT_NEAR(d.own_loading->low, 0.5, 0.03);
  EXPECT_NEAR(d.own_loading->high, 0.7, 0.03);
  EXPECT_LT(d.own_loading->low, 0.5) << "answers are counted, and counts have an error";
  EXPECT_NEAR(d.waits_seen, value, 0.01);
  ASSERT_FALSE(d.findings.empty());
  const JobFinding& f = d.findings.front();
  EXPECT_EQ(f.name, "loads_in_main_process");
  EXPECT_NEAR(f.lost, value, 0.01);
  EXPECT_EQ(f.setting, "num_workers=2");
  ASSERT_TRUE(f.gain);
  EXPECT_GT(f.gain->value, f.gain->low);
  EXPECT_LT(f.gain->value, f.gain->high);
  // On eight cores two workers; with one, loading of more than half the time would bring less.
  MadeJob few = alone(70, 10, 0, 20);
  few.cores = 2;
  const JobDiagnosis crowded = diagnose_job(few.play());
  ASSERT_FALSE(crowded.findings.empty());
  EXPECT_EQ(crowded.findings.front().setting, "num_workers=1");
  ASSERT_TRUE(crowded.findings.front().gain);
  EXPECT_LT(crowded.findings.front().gain->value, crowded.findings.front().gain->high);
  EXPECT_NE(d.verdict.find("loads its data itself: 6"), std::string::npos) << d.verdict;
}

TEST(OwnLoading, ALoopThatOnlyComputesIsHealthy) {
  const JobDiagnosis d = diagnose_job(alone(0, 90, 0, 10).play());
  ASSERT_TRUE(d.own_loading);
  EXPECT_LT(d.own_loading->value.value_or(1), 0.01);
  EXPECT_LT(d.own_loading->high, 0.15);
  EXPECT_TRUE(d.healthy) << d.verdict;
}

TEST(OwnLoading, ALoaderInPythonIsAsLikelyAsAStep) {
  const JobDiagnosis d = diagnose_job(alone(0, 10, 0, 90).play());
  ASSERT_TRUE(d.own_loading);
  EXPECT_LT(d.own_loading->low, 0.01);
  EXPECT_GT(d.own_loading->value.value_or(0), 0.3);
  EXPECT_GT(d.own_loading->high, 0.9);
  EXPECT_TRUE(d.findings.empty());
  EXPECT_FALSE(d.healthy);
  EXPECT_NE(d.verdict.find("loading may take up to"), std::string::npos) << d.verdict;
}

TEST(OwnLoading, BesideAGpuTensorsOnTheCpuMayBeEither) {
  const JobDiagnosis cpu = diagnose_job(alone(20, 40, 0, 40).play());
  const JobDiagnosis gpu = diagnose_job(alone(20, 30, 10, 40).play());
  ASSERT_TRUE(cpu.own_loading && gpu.own_loading);
  EXPECT_NEAR(cpu.own_loading->high, 0.6, 0.03);
  EXPECT_NEAR(gpu.own_loading->high, 0.9, 0.03);
}

TEST(OwnLoading, WithoutTheCodeThereAreOnlyBounds) {
  const JobDiagnosis d = diagnose_job(alone(0, 0, 0, 0).play());
  ASSERT_TRUE(d.own_loading);
  EXPECT_FALSE(d.own_loading->value);
  EXPECT_FALSE(d.own_loading->by_code);
  EXPECT_NEAR(d.own_loading->high, 1, 0.01);
  EXPECT_FALSE(d.healthy);
  EXPECT_NE(d.verdict.find("loading may take up to"), std::string::npos) << d.verdict;
  EXPECT_EQ(d.notes.size(), 1U);
}

TEST(OwnLoading, TimeBesideOtherThreadsIsTheSteps) {
  MadeJob job = alone(0, 0, 0, 0);
  job.beside = 2;
  const JobDiagnosis d = diagnose_job(job.play());
  ASSERT_TRUE(d.own_loading);
  EXPECT_NEAR(d.own_loading->high, 0, 0.01);
  EXPECT_TRUE(d.healthy) << d.verdict;
}

TEST(OwnLoading, WorkersLoadForALoopThatHasThem) {
  MadeJob job = alone(50, 30, 0, 20);
  job.batches_per_s = 10;
  job.workers = {{0.5, 0, WaitKind::kPoll}};
  EXPECT_FALSE(diagnose_job(job.play()).own_loading);
}

}  // namespace
}  // namespace stoker
