#include "tune/method/problem.h"

#include <gtest/gtest.h>

#include "tune/method/simulated_trials.h"

namespace stoker::tune {
namespace {

Job job(End end, const std::vector<double>& scores, std::int64_t trial) {
  Job job;
  job.request.stage = "search";
  job.request.config = trial;
  Outcome outcome;
  outcome.end = end;
  outcome.trial = trial;
  outcome.reason = "exit code 1: ValueError: no such file";
  double step = 0;
  for (const double score : scores) outcome.curve.points.push_back({++step, step, score});
  job.outcome = outcome;
  return job;
}

std::vector<const Outcome*> outcomes(const std::vector<Job>& jobs) {
  std::vector<const Outcome*> all;
  for (const Job& one : jobs) all.push_back(&*one.outcome);
  return all;
}

const Cures kCures{"settings", "give a smaller batch", "give smaller learning rates"};

TEST(ProblemTest, ThreeThatFailAlikeAreEnough) {
  std::vector<Job> jobs{job(End::kFailed, {}, 1), job(End::kFailed, {}, 2)};
  EXPECT_FALSE(early_problem({jobs, 2}, {}));
  jobs.push_back(job(End::kFailed, {}, 3));
  EXPECT_FALSE(early_problem({jobs, 2}, {})) << "the third is not seen yet";
  EXPECT_NE(early_problem({jobs, 3}, {})->find("no such file"), std::string::npos);
  jobs[1] = job(End::kFinished, {0.1}, 2);
  EXPECT_FALSE(early_problem({jobs, 3}, {}));
}

TEST(ProblemTest, SilenceOfOneIsNoProblemWhereAnotherTold) {
  std::vector<Job> jobs{job(End::kFailed, {}, 1), job(End::kFinished, {0.1, 0.2, 0.3}, 2)};
  jobs[0].outcome->silent = true;
  EXPECT_TRUE(early_problem({jobs, 1}, {}));
  EXPECT_FALSE(early_problem({jobs, 2}, {}));
}

TEST(ProblemTest, WhatGetsWorseInAllAsksForTheDirection) {
  std::vector<Job> jobs;
  for (int i = 1; i <= 4; ++i) jobs.push_back(job(End::kFinished, {0.9, 0.6, 0.5, 0.4}, i));
  EXPECT_FALSE(early_problem({jobs, 3}, {}));
  EXPECT_NE(early_problem({jobs, 4}, {})->find("--direction min"), std::string::npos);
  jobs[2] = job(End::kFinished, {0.9, 0.95, 0.5, 0.4}, 3);
  EXPECT_FALSE(early_problem({jobs, 4}, {}));
}

TEST(ProblemTest, WhyNothingCanBeChosen) {
  const std::vector<Job> memory{job(End::kOutOfMemory, {}, 1), job(End::kOutOfMemory, {}, 2)};
  EXPECT_EQ(*no_choice(outcomes(memory), {}, kCures),
            "every trial ran out of memory: give a smaller batch");
  const std::vector<Job> diverged{job(End::kDiverged, {0.1}, 1), job(End::kDiverged, {}, 2)};
  EXPECT_EQ(*no_choice(outcomes(diverged), {}, kCures),
            "all 2 settings diverged, give smaller learning rates");
  const std::vector<Job> never{job(End::kDiverged, {}, 1)};
  EXPECT_NE(no_choice(outcomes(never), {}, kCures)->find("look at how it is computed"),
            std::string::npos);
  const std::vector<Job> good{job(End::kDiverged, {}, 1), job(End::kFinished, {0.5}, 2)};
  EXPECT_FALSE(no_choice(outcomes(good), {}, kCures));
}

TEST(ProblemTest, ATargetThatNobodyReached) {
  std::vector<Job> jobs{job(End::kFinished, {0.5, 0.61}, 1), job(End::kFinished, {0.4}, 2)};
  for (Job& one : jobs) one.outcome->by_cost = true;
  Objective objective;
  objective.target = 0.7;
  objective.energy_weight = 0.5;
  EXPECT_EQ(*no_choice(outcomes(jobs), objective, kCures),
            "no trial reached accuracy 0.7: the best, trial 1, had 0.61; give a --target that is "
            "easier to reach, or more steps");
}

TEST(ProblemTest, PointsBehindADivergenceDoNotCount) {
  class Any final : public Method {
   public:
    [[nodiscard]] Walk walk(const History&) const override { return {}; }
    [[nodiscard]] std::optional<std::string> enough(const History&, const Request&, const Curve&,
                                                    std::size_t) const override {
      return std::nullopt;
    }
  };
  Curve curve = curve_of([](double) { return 0.5; }, 10, 100);
  curve.diverged_at = 33;
  Request request;
  request.last_step = 60;
  const auto stop = first_stop(Any(), {}, request, curve, 0);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->end, End::kDiverged);
  EXPECT_EQ(stop->points, 3);
}

}  // namespace
}  // namespace stoker::tune
