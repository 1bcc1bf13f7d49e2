#include "forecast/forecast.h"

#include <cmath>
#include <set>

#include "base/files.h"
#include "forecast/memory/verdicts.h"
#include "forecast/test_scenario.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

class ForecastTest : public testing_support::ScenarioTest {};

void expect_band(const Figure& f, const char* what) {
  EXPECT_LE(f.low, f.value) << what;
  EXPECT_GE(f.high, f.value) << what;
  EXPECT_FALSE(f.basis.empty()) << what;
}

TEST_F(ForecastTest, EveryFigureCarriesABandAndABasis) {
  give_samples(0.5);
  scenario_.loader.workers = 2;
  scenario_.price_per_gpu_hour = 3;
  const Forecast f = forecast_now();
  expect_band(f.step_ms, "step");
  expect_band(f.forward_ms, "forward");
  expect_band(f.backward_ms, "backward");
  expect_band(f.optimizer_ms, "optimizer");
  expect_band(f.samples_per_s, "samples");
  expect_band(f.gpu_busy, "busy");
  expect_band(f.mfu, "mfu");
  expect_band(f.epoch_s, "epoch");
  expect_band(f.epoch_cost, "cost");
  expect_band(f.memory.device_peak, "device");
  expect_band(f.memory.allocated_peak, "allocated");
  EXPECT_GT(f.step_ms.high, f.step_ms.low);
}

TEST_F(ForecastTest, WithoutDataTheStepIsTheLimit) {
  const Forecast f = forecast_now();
  EXPECT_FALSE(f.input.known);
  EXPECT_NEAR(f.samples_per_s.value, 32 / (f.step_ms.value * 1e-3), 1e-6 * f.samples_per_s.value);
  EXPECT_NE(f.limiter.kind, Limiter::kInput);
  EXPECT_NEAR(f.epoch_s.value, 100'000 / f.samples_per_s.value, 1e-6 * f.epoch_s.value);
}

TEST_F(ForecastTest, SlowSamplesAreTheLimitAndIdleTheGpu) {
  give_samples(50);  // one worker: at most 20 samples a second
  scenario_.loader.workers = 1;
  const Forecast f = forecast_now();
  EXPECT_LE(f.samples_per_s.value, 20);
  EXPECT_GT(f.samples_per_s.value, 17);
  EXPECT_EQ(f.limiter.kind, Limiter::kInput);
  EXPECT_GT(f.next_limiter.samples_per_s, f.limiter.samples_per_s);
  const double alone = 32 / (f.step_ms.value * 1e-3);
  EXPECT_NEAR(f.gpu_busy.value, f.time.busy * f.samples_per_s.value / alone, 1e-9);
}

TEST_F(ForecastTest, MoneyIsGpuHoursTimesPrice) {
  scenario_.price_per_gpu_hour = 2.5;
  scenario_.job.gpus = 2;
  scenario_.machine.gpu_count = 2;
  const Forecast f = forecast_now();
  EXPECT_NEAR(f.epoch_cost.value, f.epoch_s.value / 3600 * 2 * 2.5, 1e-9);
}

TEST_F(ForecastTest, AccumulationKeepsTheSamplesRight) {
  const double plain = forecast_now().samples_per_s.value;
  scenario_.job.accumulate = 4;
  const Forecast f = forecast_now();
  EXPECT_NEAR(f.samples_per_s.value, 32 * 4 / (f.step_ms.value * 1e-3),
              1e-6 * f.samples_per_s.value);
  EXPECT_GT(f.samples_per_s.value, plain);  // the optimizer runs a quarter as often
}

TEST_F(ForecastTest, TheLargestBatchFitsAndTheNextDoesNot) {
  scenario_.machine.device->usable_memory = 2 * kGiB;
  const auto limits = forecast_batch_limits(step_, scenario_.job, scenario_.machine,
                                            scenario_.allocator, *knowledge_);
  ASSERT_TRUE(limits) << limits.error().text();
  ASSERT_GT(limits->value, 0);
  EXPECT_LE(limits->low, limits->value);
  EXPECT_GE(limits->high, limits->value);
  const auto fits = [&](std::int64_t batch) {
    Job job = scenario_.job;
    job.batch = batch;
    const auto program = lower(step_, job, scenario_.machine);
    return forecast_memory(*program, scenario_.machine, scenario_.allocator, *knowledge_, "default")
        .fits;
  };
  EXPECT_TRUE(fits(limits->value));
  if (limits->first_failing > 0) {
    EXPECT_FALSE(fits(limits->first_failing));
  }
}

TEST_F(ForecastTest, TheSafeBatchIsTheLargestWhoseVerdictIsFits) {
  const auto verdict_at = [&](std::int64_t batch) {
    Job job = scenario_.job;
    job.batch = batch;
    const auto program = lower(step_, job, scenario_.machine);
    return forecast_memory(*program, scenario_.machine, scenario_.allocator, *knowledge_,
                           memory_error_case(*program, job, scenario_.machine))
        .verdict;
  };
  scenario_.job.batch = 1;
  const double smallest = forecast_now().memory.device_peak.value;
  struct Case {
    double room;  // over what the smallest batch takes
    std::optional<double> fraction;
    bool cuda_graphs = false;
  };
  for (const Case& c : {Case{1.065, {}}, Case{1.075, {}}, Case{1.3, 0.07}, Case{1.1, {}, true}}) {
    SCOPED_TRACE(c.room);
    scenario_.job.cuda_graphs = c.cuda_graphs;
    scenario_.allocator.memory_fraction = c.fraction;
    scenario_.machine.device->usable_memory = Bytes(std::llround(c.room * smallest));
    const auto limits = forecast_batch_limits(step_, scenario_.job, scenario_.machine,
                                              scenario_.allocator, *knowledge_);
    ASSERT_TRUE(limits) << limits.error().text();
    ASSERT_GT(limits->low, 0);
    ASSERT_LT(limits->low, limits->value);
    EXPECT_EQ(verdict_at(limits->low), MemoryVerdictWord::kFits);
    EXPECT_EQ(verdict_at(limits->low + 1), MemoryVerdictWord::kRisky);
    EXPECT_EQ(verdict_at(limits->value), MemoryVerdictWord::kRisky);
  }
}

/// A need counts workspaces, which grow with the batch.
TEST_F(ForecastTest, TheSafeBatchOfTrialsIsTheLargestWhoseVerdictIsFits) {
  step_ = read_step_file(*data_folder() / "zoo" / "resnet18.fp32.step.gz").value();
  scenario_.job = {};
  scenario_.job.cudnn = CudnnProfile::kBenchmark;
  const auto limits = forecast_batch_limits(step_, scenario_.job, scenario_.machine,
                                            scenario_.allocator, *knowledge_);
  ASSERT_TRUE(limits) << limits.error().text();
  ASSERT_LT(limits->low, limits->value);
  const auto verdict_at = [&](std::int64_t batch) {
    scenario_.job.batch = batch;
    return forecast_now().memory.verdict;
  };
  EXPECT_EQ(verdict_at(limits->low), MemoryVerdictWord::kFits);
  EXPECT_EQ(verdict_at(limits->low + 1), MemoryVerdictWord::kRisky);
}

TEST_F(ForecastTest, WhatDoesNotFitSaysSoInPyTorchsWords) {
  scenario_.machine.device->usable_memory = 2 * kGiB;
  scenario_.job.batch = 1 << 26;
  const Forecast f = forecast_now();
  EXPECT_FALSE(f.memory.fits);
  EXPECT_NE(f.memory.out_of_memory.find("tried to allocate"), std::string::npos)
      << f.memory.out_of_memory;
  EXPECT_FALSE(f.memory.failure_words.empty());
}

TEST_F(ForecastTest, ADeviceSmallerThanTheContextSaysSo) {
  scenario_.machine.device->usable_memory = 1 * kGiB;
  const Forecast f = forecast_now();
  EXPECT_FALSE(f.memory.fits);
  EXPECT_NE(f.memory.out_of_memory.find("context"), std::string::npos) << f.memory.out_of_memory;
}

TEST_F(ForecastTest, AMemoryFractionIsALimitOfItsOwn) {
  scenario_.job.batch = 1 << 24;
  ASSERT_TRUE(forecast_now().memory.fits);
  scenario_.allocator.memory_fraction = 0.02;  // of 16 GB: less than the batch's input
  EXPECT_FALSE(forecast_now().memory.fits);
}

TEST_F(ForecastTest, AFractionThatAllowsTooLittleIsWhatIsNamed) {
  scenario_.allocator.memory_fraction = 1e-4;  // of 16 GB: less than one segment
  const auto limits = forecast_batch_limits(step_, scenario_.job, scenario_.machine,
                                            scenario_.allocator, *knowledge_);
  ASSERT_TRUE(limits) << limits.error().text();
  ASSERT_EQ(limits->value, 0);
  const std::string words = gpu_shortage(scenario_, *limits);
  EXPECT_NE(words.find("raise {memory-fraction}"), std::string::npos) << words;
  EXPECT_EQ(words.find("take a GPU"), std::string::npos) << words;
}

TEST_F(ForecastTest, AValidationThatDoesNotFitIsNamed) {
  scenario_.job.validation_batch = std::int64_t{1} << 32;
  const auto limits = forecast_batch_limits(step_, scenario_.job, scenario_.machine,
                                            scenario_.allocator, *knowledge_);
  ASSERT_TRUE(limits) << limits.error().text();
  ASSERT_EQ(limits->value, 0);
  const std::string words = gpu_shortage(scenario_, *limits);
  EXPECT_NE(words.find("smaller {validation}"), std::string::npos) << words;
}

TEST_F(ForecastTest, ALargeValidationBatchLeavesTrainingItsOwnLimit) {
  scenario_.job.batch = 100'000;
  scenario_.machine.device->usable_memory =
      Bytes(static_cast<std::int64_t>(forecast_now().memory.device_peak.high));
  const auto limits = [&] {
    return forecast_batch_limits(step_, scenario_.job, scenario_.machine, scenario_.allocator,
                                 *knowledge_);
  };
  const auto alone = limits();
  ASSERT_TRUE(alone) << alone.error().text();
  EXPECT_EQ(alone->low_in_training, 0);
  // A small validation costs nothing, and then there is nothing to say.
  scenario_.job.validation_batch = 1;
  EXPECT_EQ(limits()->low, alone->low);
  EXPECT_EQ(limits()->low_in_training, 0);
  // As large as what training may take: less is safe beside it, and training alone is as before.
  scenario_.job.validation_batch = 8 * alone->value;
  const auto beside = limits();
  ASSERT_TRUE(beside) << beside.error().text();
  EXPECT_LT(beside->low, alone->low);
  EXPECT_EQ(beside->low_in_training, alone->low);
}

TEST_F(ForecastTest, AnEpochIsNoShorterThanItsOneStep) {
  scenario_.job.batch = 32;
  scenario_.dataset_samples = 3200;
  EXPECT_NEAR(forecast_now().epoch_s.value, 100 * forecast_now().step_ms.value * 1e-3,
              1e-6 * forecast_now().epoch_s.value);
  EXPECT_EQ(forecast_now().diagnostics.count("epoch_below_step"), 0);
  scenario_.dataset_samples = 5;
  EXPECT_NEAR(forecast_now().epoch_s.value, forecast_now().step_ms.value * 1e-3,
              1e-6 * forecast_now().epoch_s.value);
  EXPECT_EQ(forecast_now().diagnostics.count("epoch_below_step"), 1);
}

TEST_F(ForecastTest, AShortLastBatchCostsItsOwnStep) {
  scenario_.job.batch = 32;
  scenario_.dataset_samples = 3200 + 8;
  const Forecast f = forecast_now();
  Scenario eight = scenario_;
  eight.job.batch = 8;
  const double own = seconds(step_time_of(eight, *knowledge_)->total);
  EXPECT_NEAR(f.epoch_s.value, 100 * f.step_ms.value * 1e-3 + own, 1e-6 * f.epoch_s.value);
  scenario_.loader.drop_last = true;
  EXPECT_NEAR(forecast_now().epoch_s.value, 100 * f.step_ms.value * 1e-3, 1e-6 * f.epoch_s.value);
}

TEST_F(ForecastTest, OperatorsWithoutARuleAreNamedCountedAndWidenTheBand) {
  std::string text = testing_support::linear_step_json();
  for (std::size_t at; (at = text.find("aten::mm")) != std::string::npos;)
    text.replace(at, 8, "mylib::attend");
  scenario_.job.batch = 1 << 20;  // so that the device limits, not the host
  const Forecast known = forecast_now();
  step_ = parse_step(text, "test").value();
  const Forecast unknown = forecast_now();
  std::int64_t named = 0;
  for (const Diagnostic& d : unknown.diagnostics.all()) {
    if (d.name == "uncosted_operator" && d.advice.find("mylib::attend") != std::string::npos)
      named += d.count;
  }
  EXPECT_EQ(named, 2);  // forward and the gradient of the weight
  EXPECT_EQ(known.diagnostics.count("uncosted_operator"), 0);
  EXPECT_GT(unknown.time.uncosted_share, 0);
  EXPECT_EQ(known.time.uncosted_share, 0);
  EXPECT_GT(unknown.time.band.above, known.time.band.above);
  EXPECT_NE(unknown.step_ms.basis.find("without a cost rule"), std::string::npos);
  EXPECT_GT(unknown.step_ms.value, 0);  // by its bytes
}

TEST_F(ForecastTest, PhasesOfTheStepAddUp) {
  scenario_.job.accumulate = 3;
  const Forecast f = forecast_now();
  EXPECT_NEAR(f.load_ms.value + f.forward_ms.value + f.backward_ms.value + f.optimizer_ms.value,
              f.step_ms.value, 1e-6 * f.step_ms.value);
}

TEST_F(ForecastTest, AHostBoundStepIsLimitedByLaunching) {
  scenario_.job.batch = 1;  // three kernels of a microsecond
  EXPECT_EQ(forecast_now().limiter.kind, Limiter::kGpuLaunch);
}

TEST_F(ForecastTest, CheckpointingTakesTheTimeOfASecondForward) {
  step_ = read_step_file(*data_folder() / "zoo" / "resnet18.fp32.step.gz").value();
  const auto time_of = [](const Forecast& f, StepPhase p) {
    return milliseconds(f.time.phase_device[static_cast<std::size_t>(p)]);
  };
  const Forecast plain = forecast_now();
  scenario_.job.checkpoint = {"blocks"};
  const Forecast again = forecast_now();
  const double forward = time_of(plain, StepPhase::kForward);
  const double more = time_of(again, StepPhase::kBackward) - time_of(plain, StepPhase::kBackward);
  // All but the stem, and the last operators of each block, whose results nobody needs again.
  EXPECT_GT(more, 0.5 * forward);
  EXPECT_LT(more, forward);
  EXPECT_NEAR(time_of(again, StepPhase::kForward), forward, 1e-6 * forward);
  EXPECT_GT(again.step_ms.value, plain.step_ms.value + 0.9 * more);
  // The model's arithmetic is the same, the step longer: what is computed again does not count.
  EXPECT_NEAR(again.time.mfu * again.step_ms.value, plain.time.mfu * plain.step_ms.value,
              1e-6 * plain.time.mfu * plain.step_ms.value);
}

TEST_F(ForecastTest, CudaGraphsMayHoldActivationsAndTemporariesTwice) {
  scenario_.job.batch = 1 << 16;
  const Figure eager = forecast_now().memory.device_peak;
  scenario_.job.cuda_graphs = true;
  const MemoryForecast graphs = forecast_now().memory;
  EXPECT_EQ(graphs.device_peak.value, eager.value);
  EXPECT_EQ(graphs.device_peak.low, eager.low);
  EXPECT_GT(graphs.device_peak.high, eager.high);
  const double reserved = graphs.reserved_peak.value;
  EXPECT_LE(graphs.device_peak.high - eager.high, reserved) << "no more than all of it once more";
}

/// Above the forecast the need decides, which may be less than what nvidia-smi shows.
TEST_F(ForecastTest, TheVerdictIsRiskyWhereTheNeedOrTheLowerBandCrossesTheMemory) {
  scenario_.job.batch = 1 << 24;
  const Figure peak = forecast_now().memory.device_peak;
  const auto program = lower(step_, scenario_.job, scenario_.machine);
  const auto error =
      knowledge_->memory_case(memory_error_case(*program, scenario_.job, scenario_.machine));
  const Bytes value(static_cast<std::int64_t>(peak.value));
  const double needed =
      peak.value * (1 + error.need_above(value, workspace_share(*program, value)));
  EXPECT_LE(needed, peak.high + 1);
  std::set<std::string_view> words;
  for (double share = 0.7; share < 1.6; share += 0.02) {
    const auto usable = static_cast<std::int64_t>(share * peak.value);
    scenario_.machine.device->usable_memory = Bytes(usable);
    const MemoryForecast m = forecast_now().memory;
    const double have = static_cast<double>(usable);
    const bool crosses = m.device_peak.low <= have && have < needed;
    words.insert(name_of(m.verdict));
    if (m.verdict == MemoryVerdictWord::kFits) {
      EXPECT_TRUE(m.fits && !crosses && !m.only_by_flushing) << share;
    } else if (m.verdict == MemoryVerdictWord::kDoesNotFit) {
      EXPECT_TRUE(!m.fits && !crosses) << share;
    } else {
      EXPECT_TRUE(crosses || m.only_by_flushing) << share;
    }
  }
  EXPECT_EQ(words, (std::set<std::string_view>{"FITS", "RISKY", "DOES NOT FIT"}));
}

}  // namespace
}  // namespace stoker
