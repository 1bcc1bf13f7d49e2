#include "evidence/training/training_validation.h"

#include <gtest/gtest.h>

#include "evidence/training/error_classes.h"
#include "evidence/training/test_rows.h"

namespace stoker {
namespace {

using test_rows::compared;

TEST(TrainingValidation, ErrorsAreOfWhatWasMeasured) {
  const auto v = judge({compared("net", 8, 110, 100), compared("net", 16, 190, 200)});
  ASSERT_EQ(v.runs.size(), 2u);
  const ComparedFigure* step = v.runs[0].figure("step");
  ASSERT_NE(step, nullptr);
  EXPECT_NEAR(step->error(), 0.10, 1e-12);
  EXPECT_TRUE(step->within());
  const ComparedFigure* rate = v.runs[0].figure("throughput");
  EXPECT_DOUBLE_EQ(rate->fact, 80);
  EXPECT_NEAR(rate->forecast.value, 8e3 / 110, 1e-9);
  EXPECT_LE(rate->forecast.low, rate->forecast.value);
  const FigureSummary& summary = v.summaries.front();
  EXPECT_EQ(summary.name, "step");
  EXPECT_EQ(summary.count, 2u);
  EXPECT_NEAR(summary.median, 0.075, 1e-12);
  EXPECT_NEAR(summary.worst, 0.10, 1e-12);
  EXPECT_EQ(summary.worst_label, "net, batch 8, 2 threads, fp32");
  EXPECT_NEAR(summary.bias, 0.025, 1e-12);
  EXPECT_DOUBLE_EQ(summary.coverage, 1);
  EXPECT_TRUE(v.failures.empty());
}

TEST(TrainingValidation, ABandThatDoesNotHoldFails) {
  auto run = compared("net", 8, 100, 130);
  EXPECT_EQ(judge({run}).failures.size(), 1u);
  run.fact->peaks.resident = kMiB * 600;
  const auto v = judge({run});
  ASSERT_EQ(v.failures.size(), 2u);
  EXPECT_NE(v.failures[0].find("step 130 ms, outside of 80 ms to 120 ms"), std::string::npos)
      << v.failures[0];
  EXPECT_NE(v.failures[1].find("peak memory 600.0 MiB"), std::string::npos) << v.failures[1];
  // What was disturbed is shown and not judged.
  run.fact->good = 0;
  run.fact->settled = false;
  const auto disturbed = judge({run});
  EXPECT_TRUE(disturbed.failures.empty());
  EXPECT_EQ(disturbed.not_judged, 1u);
  EXPECT_TRUE(disturbed.summaries.empty());
}

TEST(TrainingValidation, RunsWhoseRepetitionsDisagreeAreNotJudged) {
  ComparedRun far = compared("net", 8, 100, 300);
  EXPECT_GE(judge({far}).judged, 1u);
  far.fact->settled = false;
  const auto v = judge({far});
  EXPECT_EQ(v.judged, 0u) << "so no band can be said to have held";
  EXPECT_TRUE(v.failures.empty());
  EXPECT_EQ(v.not_judged, 1u);
}

TEST(TrainingValidation, TimesThatCannotBeTeachNothing) {
  const auto absurd = compared("net", 8, 1e9, 1e-3), run = compared("net", 8, 100, 130);
  const ClassFactors with = class_factors({&run, &absurd}), without = class_factors({&run});
  for (std::size_t k = 0; k < with.mean.size(); ++k)
    EXPECT_DOUBLE_EQ(with.mean[k], without.mean[k]);
}

TEST(TrainingValidation, RunningOutOfMemoryIsAFact) {
  ComparedRun run = compared("net", 4096, 100, 100);
  run.run.status = RunStatus::kOutOfMemory;
  run.fact.reset();
  EXPECT_EQ(judge({run}).failures.size(), 1u);
  run.forecast->forecast.memory.fits = false;
  EXPECT_TRUE(judge({run}).failures.empty());
  ComparedRun ran = compared("net", 8, 100, 100);
  ran.forecast->forecast.memory.fits = false;
  EXPECT_EQ(judge({ran}).failures.size(), 1u);
}

TEST(TrainingValidation, RanksBatchesBeyondTheNoise) {
  // Measured 80, 100 and 101 samples/s: the last two are alike.
  const auto v = judge({compared("net", 8, 100, 100), compared("net", 16, 150, 160),
                        compared("net", 32, 340, 32e3 / 101)});
  ASSERT_EQ(v.rankings.size(), 1u);
  const BatchRanking& r = v.rankings.front();
  EXPECT_EQ(r.pairs, 2u);
  EXPECT_EQ(r.right, 2u);
  EXPECT_EQ(r.measured_best, 32);
  EXPECT_EQ(r.forecast_best, 16);
  EXPECT_NEAR(r.lost, 1 - 100.0 / 101, 1e-9);
  const auto wrong = judge({compared("net", 8, 70, 100), compared("net", 16, 160, 160)});
  EXPECT_EQ(wrong.rankings.front().right, 0u);
}

/// Convolutions take 1.3 times their forecast, products are right: runs with different shares tell.
TEST(TrainingValidation, FindsTheClassThatCarriesTheError) {
  std::vector<ComparedRun> runs;
  for (const double share : {0.1, 0.4, 0.6, 0.9})
    runs.push_back(compared("net", 8, 100, 100 * (1 + 0.3 * share), share));
  const auto v = judge(runs);
  ASSERT_GE(v.classes.size(), 2u);
  EXPECT_EQ(v.classes[0].name, "convolution");
  EXPECT_NEAR(v.classes[0].factor, 1.3, 0.03);
  EXPECT_LT(v.classes[0].deviation, 0.1);
  EXPECT_EQ(v.classes[1].name, "gemm");
  EXPECT_NEAR(v.classes[1].factor, 1.0, 0.03);
  EXPECT_NEAR(v.classes[0].carried, 0.15 / 1.15, 0.02);
}

TEST(TrainingValidation, ClassesThatNothingTellsApartKeepTheirPrior) {
  const auto run = compared("net", 8, 100, 100);
  const ClassFactors factors = class_factors({&run});
  const auto gemm = static_cast<std::size_t>(KernelClass::kGemm);
  EXPECT_DOUBLE_EQ(factors.mean[gemm], 1);
  EXPECT_NEAR(factors.deviation[gemm], 0.25, 1e-12);
  EXPECT_LT(factors.deviation[static_cast<std::size_t>(KernelClass::kConvolution)], 0.05);
}

TEST(TrainingValidation, KeepsRunsWithoutForecast) {
  MeasuredRun run = compared("net", 8, 1, 100).run;
  const Forecaster none = [](const MeasuredRun&) -> Result<RunForecast> {
    return fail(ErrorCode::kUnsupported, "not modelled", "x");
  };
  EXPECT_FALSE(validate_training({run}, none).has_value());
  MeasuredRun broken = run;
  broken.status = RunStatus::kFailed;
  broken.repetitions.clear();
  const Forecaster some = [](const MeasuredRun& r) -> Result<RunForecast> {
    if (r.batch == 8) return *compared("net", 8, 100, 100).forecast;
    return fail(ErrorCode::kUnsupported, "not modelled", "x");
  };
  MeasuredRun other = run;
  other.batch = 16;
  const auto v = validate_training({run, other, broken}, some);
  ASSERT_TRUE(v.has_value());
  EXPECT_EQ(v->runs[1].not_forecast, "x: not modelled");
  EXPECT_EQ(v->runs[0].figures.empty(), false);
  EXPECT_TRUE(v->runs[2].figures.empty());
}

}  // namespace
}  // namespace stoker
