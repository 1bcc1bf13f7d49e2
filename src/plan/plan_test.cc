#include "plan/plan.h"

#include "forecast/memory/verdicts.h"
#include "forecast/settings.h"
#include "forecast/test_scenario.h"
#include "plan/search.h"

namespace stoker {
namespace {

class PlanTest : public testing_support::ScenarioTest {
 protected:
  PlanRequest request() {
    PlanRequest r;
    r.choices = {{Precision::kFp32, &step_}};
    r.base = scenario_;
    // A small card, so that the ladder of batches stays short.
    r.base.machine.device->context_memory = Bytes(0);
    r.base.machine.device->usable_memory = 400 * kMiB;
    return r;
  }
};

TEST_F(PlanTest, AgainstExhaustiveSearch) {
  give_samples(0.05);
  const PlanRequest r = request();
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan) << plan.error().text();
  double best = 0;
  for (std::int64_t batch = 1; batch <= plan->batch_reason.largest_safe;
       batch = batch * 3 / 2 + 1) {
    Scenario s = r.base;
    s.job.batch = batch;
    s.loader.persistent = true;
    set_pinning(s, true);
    const auto time = step_time_of(s, *knowledge_);
    for (int workers = 0; workers <= 12; ++workers) {
      for (const int prefetch : {2, 4}) {
        s.loader.workers = workers;
        s.loader.prefetch = prefetch;
        best = std::max(best, throughput_of(s, *time).samples_per_s);
      }
    }
  }
  EXPECT_GE(plan->best.forecast.samples_per_s.value, (1 - kSameSpeed - kSameSpeedWorkers) * best);
}

TEST_F(PlanTest, DoesNotTakeTheLargestBatchByHabit) {
  give_samples(20);  // the input limits: no batch is faster than another
  const auto plan = make_plan(request(), *knowledge_);
  ASSERT_TRUE(plan);
  EXPECT_LT(plan->best.forecast.job.batch, plan->batch_reason.largest_safe / 4);
  EXPECT_EQ(plan->best.forecast.limiter.kind, Limiter::kInput);
}

TEST_F(PlanTest, ASmallDataSetIsNoReasonForABatch) {
  PlanRequest r = request();
  r.base.dataset_samples = 1'000'000'000;
  const auto large = make_plan(r, *knowledge_);
  ASSERT_TRUE(large) << large.error().text();
  EXPECT_EQ(large->batch_reason.data_samples, 0);
  const std::int64_t few = large->batch_reason.largest_safe / 2 + 3;
  r.base.dataset_samples = few;
  const auto small = make_plan(r, *knowledge_);
  ASSERT_TRUE(small) << small.error().text();
  EXPECT_LE(small->best.forecast.job.batch, few);
  EXPECT_EQ(small->batch_reason.data_samples, few);
}

TEST_F(PlanTest, RespectsWhatTheUserFixed) {
  give_samples(1);
  PlanRequest r = request();
  r.batch = 48;
  r.workers = 3;
  r.prefetch = 5;
  r.pin = false;
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan);
  const Forecast& f = plan->best.forecast;
  EXPECT_EQ(f.job.batch, 48);
  EXPECT_EQ(f.loader.workers, 3);
  EXPECT_EQ(f.loader.prefetch, 5);
  EXPECT_FALSE(f.loader.pin);
}

TEST_F(PlanTest, NoChoiceOfPinningIsSlowerThanTheOther) {
  int pinned = 0, pageable = 0;
  for (const double cost_ms : {0.01, 0.05, 1.0}) {
    for (const double cores : {2.0, 4.0, 8.0, 16.0}) {
      PlanRequest r = request();
      r.base.sample =
          sample_cost_given(cost_ms * kMillisecond, {Bytes(16'384), 1}, knowledge_->loader);
      r.base.machine.host.cores = cores;
      const auto plan = make_plan(r, *knowledge_);
      ASSERT_TRUE(plan) << plan.error().text();
      const bool pin = plan->best.forecast.loader.pin;
      const double gain = pin ? plan->pin_gain : -plan->pin_gain;
      EXPECT_GE(gain, -kPinningTells) << cost_ms << " ms, " << cores << " cores, pinned " << pin;
      ++(pin ? pinned : pageable);
    }
  }
  EXPECT_GT(pinned, 0);
  EXPECT_GT(pageable, 0);
}

TEST_F(PlanTest, WhereTheHostLimitsItNamesWhatTakesWorkOffIt) {
  PlanRequest r = request();
  r.batch = 4;
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan) << plan.error().text();
  const auto gain_of = [&](std::string_view what) {
    for (const Advice& one : plan->next) {
      if (one.what.starts_with(what)) {
        EXPECT_NE(one.what.find("the host limits"), std::string::npos) << one.what;
        return one.gain;
      }
    }
    return 0.0;
  };
  EXPECT_GT(gain_of("CUDA graphs"), 0.1);
  EXPECT_GT(gain_of("batch "), 0.1);
}

TEST_F(PlanTest, TheCeilingOnTheGlobalBatchHolds) {
  PlanRequest r = request();
  r.limits.max_global_batch = 64;
  r.gpu_counts = {1, 2, 4};
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan);
  for (const PlanRow& row : plan->by_gpus)
    EXPECT_LE(row.forecast.job.batch * row.forecast.job.gpus, 64);
  r.limits.max_global_batch = 3;
  r.gpu_counts = {4};
  const auto none = make_plan(r, *knowledge_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kAnswerIsNo);
}

TEST_F(PlanTest, MoreGpusMustBringSomething) {
  give_samples(20);
  PlanRequest r = request();
  r.gpu_counts = {1, 2, 3, 4};
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->best.forecast.job.gpus, 1);  // eight cores feed one GPU as badly as four
  EXPECT_EQ(plan->by_gpus.size(), 4U);
}

// Numbers of GPUs that run one program are timed together.
TEST_F(PlanTest, EachNumberOfGpusIsForecastAsIfAskedAlone) {
  give_samples(1);
  PlanRequest r = request();
  r.choices.push_back({Precision::kTf32, &step_});
  r.limits.max_global_batch = 200;  // each number has a ladder of its own
  r.gpu_counts = {1, 2, 3, 4};
  const auto together = make_plan(r, *knowledge_);
  ASSERT_TRUE(together);
  ASSERT_EQ(together->by_gpus.size(), 4u);
  for (const PlanRow& row : together->by_gpus) {
    r.gpu_counts = {row.forecast.job.gpus};
    const auto alone = make_plan(r, *knowledge_);
    ASSERT_TRUE(alone);
    const Forecast& f = alone->best.forecast;
    EXPECT_EQ(f.job.batch, row.forecast.job.batch) << f.job.gpus;
    EXPECT_EQ(f.job.precision, row.forecast.job.precision) << f.job.gpus;
    EXPECT_EQ(f.loader.workers, row.forecast.loader.workers) << f.job.gpus;
    EXPECT_EQ(f.samples_per_s.value, row.forecast.samples_per_s.value) << f.job.gpus;
    EXPECT_EQ(alone->best.batch_limits.low, row.batch_limits.low) << f.job.gpus;
  }
}

TEST_F(PlanTest, SharedMemoryIsALimit) {
  give_samples(1);
  PlanRequest r = request();
  r.batch = 1024;
  r.base.machine.host.shared_memory = Bytes(100'000);  // batch of 16 KiB, two ahead for each worker
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->best.forecast.input.loader.shared_memory, Bytes(90'000));
  EXPECT_LE(plan->best.forecast.loader.workers, 2);
}

TEST_F(PlanTest, TakesASmallerBatchWhereALargerOneHasNoRoomForWorkers) {
  PlanRequest r = request();
  r.base.sample = sample_cost_given(5 * kMillisecond, {Bytes(16'384), 1}, knowledge_->loader);
  r.base.machine.host.shared_memory = Bytes(200'000);
  r.pin = true;
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan) << plan.error().text();
  double best = 0;
  for (const std::int64_t batch : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    Scenario s = r.base;
    set_batch(s, batch);
    set_pinning(s, true);
    const auto time = step_time_of(s, *knowledge_);
    for (s.loader.workers = 0; s.loader.workers <= 12; ++s.loader.workers) {
      for (const int prefetch : {2, 4}) {
        s.loader.prefetch = prefetch;
        const Throughput tried = throughput_of(s, *time);
        if (host_shortage(r.base.machine.host, tried.loader).empty())
          best = std::max(best, tried.samples_per_s);
      }
    }
  }
  EXPECT_GE(plan->best.forecast.samples_per_s.value, (1 - kSameSpeed - kSameSpeedWorkers) * best);
  EXPECT_GT(plan->batch_reason.too_large_for_workers, plan->best.forecast.job.batch);
}

TEST_F(PlanTest, NoAdviceGoesBeyondTheCeilingOnTheGlobalBatchOrTheData) {
  const auto advises_a_batch = [&](const PlanRequest& r) {
    const auto plan = make_plan(r, *knowledge_);
    EXPECT_TRUE(plan) << plan.error().text();
    return std::any_of(plan->next.begin(), plan->next.end(),
                       [](const Advice& a) { return a.what.starts_with("batch "); });
  };
  PlanRequest r = request();
  r.batch = 8;
  EXPECT_TRUE(advises_a_batch(r));
  r.limits.max_global_batch = 15;
  EXPECT_FALSE(advises_a_batch(r));
  r.limits.max_global_batch = 0;
  r.base.dataset_samples = 15;
  EXPECT_FALSE(advises_a_batch(r));
}

TEST_F(PlanTest, ABudgetBelowTheCheapestEpochIsANo) {
  PlanRequest r = request();
  r.base.price_per_gpu_hour = 3;
  r.limits.max_epoch_cost = 1e-9;
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kAnswerIsNo);
  const std::string text = plan.error().message;
  const auto at = text.find("; the least is ");
  ASSERT_NE(at, std::string::npos) << text;
  r.limits.max_epoch_cost = std::stod(text.substr(at + 15));
  EXPECT_TRUE(make_plan(r, *knowledge_)) << "what is said is enough: " << text;
  r.base.price_per_gpu_hour = 0;
  EXPECT_EQ(make_plan(r, *knowledge_).error().code, ErrorCode::kUsage);
}

TEST_F(PlanTest, ABudgetOfTheRunCountsItsStartUp) {
  PlanRequest r = request();
  r.base.price_per_gpu_hour = 3;
  r.base.epochs = 2;
  const auto free = make_plan(r, *knowledge_);
  ASSERT_TRUE(free) << free.error().text();
  const double run = free->best.forecast.run_cost.value;
  EXPECT_GT(run, 2 * free->best.forecast.epoch_cost.value);
  r.limits.max_run_cost = 1.01 * run;
  EXPECT_TRUE(make_plan(r, *knowledge_));
  r.limits.max_run_cost = 0.99 * run;
  const auto none = make_plan(r, *knowledge_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kAnswerIsNo);
  r.base.epochs = 0;
  EXPECT_EQ(make_plan(r, *knowledge_).error().where, "{run-budget}");
}

/// One GPU is within the epoch's budget and beyond the run's, four are beyond both: a larger budget
/// for the run is what helps.
TEST_F(PlanTest, OfTwoBudgetsTheOneThatIsInTheWayIsNamed) {
  PlanRequest r = request();
  r.base.price_per_gpu_hour = 3;
  r.base.epochs = 2;
  r.gpu_counts = {1, 4};
  const auto free = make_plan(r, *knowledge_);
  ASSERT_TRUE(free) << free.error().text();
  double dearest = 0, cheapest = INFINITY;
  for (const PlanRow& row : free->by_gpus) {
    dearest = std::max(dearest, row.forecast.epoch_cost.value);
    cheapest = std::min(cheapest, row.forecast.epoch_cost.value);
  }
  ASSERT_GT(dearest, 1.01 * cheapest);
  r.limits.max_epoch_cost = std::sqrt(dearest * cheapest);
  r.limits.max_run_cost = 1e-9;
  const auto none = make_plan(r, *knowledge_);
  ASSERT_FALSE(none);
  const std::string text = none.error().message;
  EXPECT_TRUE(text.ends_with(" a run")) << text;
  r.limits.max_run_cost = std::stod(text.substr(text.find("; the least is ") + 15));
  EXPECT_TRUE(make_plan(r, *knowledge_)) << text;
}

TEST_F(PlanTest, CountsThatNodesCannotShareAreLeftOut) {
  PlanRequest r = request();
  r.base.job.nodes = 2;
  r.gpu_counts = {1, 2, 3, 4};
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->uneven_counts, (std::vector<int>{1, 3}));
  ASSERT_EQ(plan->by_gpus.size(), 2U);
  EXPECT_EQ(plan->by_gpus[0].forecast.job.gpus, 2);
  EXPECT_EQ(plan->by_gpus[1].forecast.job.gpus, 4);
  r.gpu_counts = {1, 3};
  EXPECT_EQ(make_plan(r, *knowledge_).error().text(),
            "{nodes}: 1, 3 GPUs cannot be spread evenly over 2 nodes; give {gpus} a multiple of 2");
  r.base.job.nodes = 1;
  EXPECT_TRUE(make_plan(r, *knowledge_)->uneven_counts.empty());
}

TEST_F(PlanTest, EnergyNeedsATdp) {
  PlanRequest r = request();
  r.objective = Objective::kEnergy;
  EXPECT_TRUE(make_plan(r, *knowledge_));
  r.base.machine.device->tdp_watts = 0;
  EXPECT_EQ(make_plan(r, *knowledge_).error().where, "{objective}");
}

TEST_F(PlanTest, ATooSmallGpuSaysByHowMuch) {
  PlanRequest r = request();
  r.base.machine.device->usable_memory = 10 * kMiB;
  const auto plan = make_plan(r, *knowledge_);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kAnswerIsNo);
  EXPECT_NE(plan.error().message.find("short"), std::string::npos) << plan.error().message;
}

}  // namespace
}  // namespace stoker
