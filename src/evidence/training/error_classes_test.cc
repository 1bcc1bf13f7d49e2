#include "evidence/training/error_classes.h"

#include <gtest/gtest.h>

#include "evidence/training/test_rows.h"

namespace stoker {
namespace {

using test_rows::compared;

constexpr auto kConvolution = static_cast<std::size_t>(KernelClass::kConvolution);
constexpr auto kGemm = static_cast<std::size_t>(KernelClass::kGemm);

TEST(ErrorClasses, NothingMeasuredIsThePrior) {
  const ClassFactors factors = class_factors({});
  for (std::size_t k = 0; k < kErrorClasses; ++k) {
    EXPECT_DOUBLE_EQ(factors.mean[k], 1) << error_class_name(k);
    EXPECT_NEAR(factors.deviation[k], 0.25, 1e-12) << error_class_name(k);
  }
}

TEST(ErrorClasses, AreNamedAsOperatorsAndTheHost) {
  EXPECT_EQ(error_class_name(kHostClass), "host");
  EXPECT_EQ(error_class_name(kConvolution), "convolution");
  EXPECT_EQ(error_class_name(kGemm), "gemm");
}

/// One class alone: the posterior of a normal prior N(1, 0.25) and one reading with noise 2 %.
TEST(ErrorClasses, OneClassAloneFollowsBayesRule) {
  const ComparedRun run = compared("net", 8, 100, 120);
  const ClassFactors factors = class_factors({&run});
  const double a = 100.0 / 120, weight = 1 / (0.02 * 0.02), prior = 1 / (0.25 * 0.25);
  const double expected = 1 + weight * a * (20.0 / 120) / (prior + weight * a * a);
  EXPECT_NEAR(factors.mean[kConvolution], expected, 1e-12);
  EXPECT_NEAR(factors.deviation[kConvolution], 1 / std::sqrt(prior + weight * a * a), 1e-12);
}

TEST(ErrorClasses, RepetitionsThatScatterCountLess) {
  ComparedRun calm = compared("net", 8, 100, 120), wild = calm;
  wild.fact->spread = 0.4;
  EXPECT_LT(class_factors({&wild}).mean[kConvolution], class_factors({&calm}).mean[kConvolution]);
  EXPECT_GT(class_factors({&wild}).deviation[kConvolution],
            class_factors({&calm}).deviation[kConvolution]);
}

TEST(ErrorClasses, PhasesTellClassesApartThatAStepDoesNot) {
  ComparedRun run = compared("net", 8, 100, 125, 0.5);
  run.fact->phases.forward = 50 * kMillisecond;   // products as forecast
  run.fact->phases.backward = 75 * kMillisecond;  // convolutions half as long again
  run.fact->phases.optimizer = 0 * kMillisecond;
  const ClassFactors factors = class_factors({&run});
  EXPECT_NEAR(factors.mean[kGemm], 1, 1e-9);
  EXPECT_NEAR(factors.mean[kConvolution], 1.5, 0.02);
  run.fact->phases = {};
  const ClassFactors step = class_factors({&run});
  EXPECT_NEAR(step.mean[kGemm], step.mean[kConvolution], 1e-12) << "nothing tells them apart";
}

TEST(ErrorClasses, CarryWhatTheyAddToTheMeasuredTime) {
  const std::vector<ComparedRun> runs{compared("a", 8, 100, 130, 1), compared("b", 8, 100, 100, 0)};
  const auto errors = error_classes(runs);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].name, "convolution");
  EXPECT_DOUBLE_EQ(errors[0].share, 0.5);
  EXPECT_DOUBLE_EQ(errors[0].carried, (errors[0].factor - 1) * 100 / 230);
  EXPECT_EQ(errors[1].name, "gemm");
  EXPECT_NEAR(errors[1].carried, 0, 1e-12);
}

TEST(ErrorClasses, RunsThatDoNotCountSayNothing) {
  std::vector<ComparedRun> runs{compared("net", 8, 100, 130)};
  runs[0].run.status = RunStatus::kOutOfMemory;
  EXPECT_TRUE(error_classes(runs).empty());
  runs[0] = compared("net", 8, 100, 130);
  runs[0].forecast.reset();
  EXPECT_TRUE(error_classes(runs).empty());
}

TEST(ErrorClasses, AClassBelowAThousandthIsLeftOut) {
  const auto errors = error_classes({compared("net", 8, 100, 100, 0.9995)});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].name, "convolution");
}

}  // namespace
}  // namespace stoker
