#include "timing/gpu/step_band.h"

#include <gtest/gtest.h>

#include <cmath>

#include "timing/common/testing.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::launch;
using timing_test::moving;
using timing_test::round_gpu;

Machine machine_of() {
  Machine machine;
  machine.device = round_gpu();
  return machine;
}

TEST(StepBand, EachTermHasItsName) {
  EXPECT_EQ(band_term_name(kCompiledTerm), "compiled");
  EXPECT_EQ(band_term_name(kBandTerms - 1), "replica_threads");
}

TEST(StepBand, BandsGrowWithTheShareThatIsFarFromWhatWasMeasured) {
  Program program;
  launch(program, moving(30));
  launch(program, moving(10, StepPhase::kBackward));
  Coefficients c = ideal();
  c.common_spread = 0.1;
  for (auto& entry : c.classes) entry.spread = 0;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 0.1, 1e-9);
  c.band.backward = 0.4;  // of a quarter of the time
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, std::hypot(0.1, 0.1), 1e-9);
  c.band.unseen = 2;
  c.band.known = 3;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 2 * std::hypot(0.1, 0.1), 1e-9);
  c.level = CoefficientLevel::kChip;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 3 * std::hypot(0.1, 0.1), 1e-9);
}

TEST(StepBand, BandsGrowBeyondTheFastestMemoryThatWasMeasured) {
  Program program;
  launch(program, moving(30));
  Coefficients c = ideal();
  c.common_spread = 0;
  for (auto& entry : c.classes) entry.spread = 0;
  Gpu gpu = *machine_of().device.gpu();
  Machine machine = machine_of();
  const auto above = [&](double bandwidth) {
    gpu.bandwidth = bandwidth;
    machine.device = gpu;
    return predict_step(program, machine, c);
  };
  EXPECT_NEAR(above(3e12).band.above, 0, 1e-9) << "slower than an H100's";
  const StepTime fast = above(3.35e12 * std::exp(1.0));
  EXPECT_NEAR(fast.band.above, 0.5, 0.01);
  EXPECT_NE(fast.basis.find("faster than any"), std::string::npos);
  c.level = CoefficientLevel::kGpu;
  EXPECT_NEAR(above(9e12).band.above, 0, 1e-9) << "it was measured itself";
}

TEST(StepBand, ConvolutionsOfAChipWithoutRowsAreInMoreDoubt) {
  Program program;
  launch(program, moving(30));
  Kernel kernel = moving(10);
  kernel.kernel_class = KernelClass::kConvolution;
  kernel.shape = ConvolutionShape{.batch = 1, .in_channels = 1, .out_channels = 1};
  launch(program, kernel);
  Coefficients c = ideal();
  c.common_spread = 0;
  for (auto& entry : c.classes) entry.spread = 0;
  c.level = CoefficientLevel::kBase;
  c.band.unseen_convolution = 0.4;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 0.1, 0.01) << "a quarter";
  c.level = CoefficientLevel::kChip;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 0, 1e-9);
}

TEST(StepBand, ShortKernelsOfACudaGraphAreInDoubt) {
  Program program;
  for (int i = 0; i < 10; ++i) launch(program, moving(0));
  Coefficients c = ideal();
  c.common_spread = 0;
  c.kernel.floor = 5_us;
  c.kernel.graph_spread = 0;
  c.host.forward = 0.001_us;
  c.host.spread = 0.001;
  for (auto& entry : c.classes) entry.spread = 0;
  EXPECT_LT(predict_step(program, machine_of(), c).band.above, 0.02) << "the host may limit";
  program.cuda_graphs = true;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 0.6, 0.02);
}

TEST(StepBand, TheHostsDoubtIsOfTheStepOnlyWhereTheHostMayLimit) {
  Program program;
  for (int i = 0; i < 50; ++i) launch(program, moving(10));
  Coefficients c = ideal();
  c.common_spread = 0;
  for (auto& entry : c.classes) entry.spread = 0;
  c.host.spread = 0.25;
  c.host.forward = 1_us;
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 0, 1e-6) << "the device limits";
  c.host.forward = 100_us;
  const StepTime limited = predict_step(program, machine_of(), c);
  EXPECT_NEAR(limited.band.above, 0.25, 0.01) << "all of the step is the host's";
  EXPECT_NEAR(limited.band.below, 0.2, 0.01);
  c.host.forward = 9.5_us;  // the device limits, a slower host would
  EXPECT_NEAR(predict_step(program, machine_of(), c).band.above, 0.1875, 0.01);
}

TEST(StepBand, KernelsWithoutARuleAreCountedAndWidenTheBand) {
  Program known, unknown;
  launch(known, moving(100));
  Kernel kernel = moving(100);
  kernel.kernel_class = KernelClass::kUncosted;
  launch(unknown, kernel);
  const StepTime with = predict_step(known, machine_of(), Coefficients());
  const StepTime without = predict_step(unknown, machine_of(), Coefficients());
  EXPECT_EQ(without.diagnostics.count("uncosted_kernel"), 1);
  EXPECT_EQ(with.diagnostics.count("uncosted_kernel"), 0);
  EXPECT_GT(without.band.above, with.band.above);
  EXPECT_NEAR(without.uncosted_share, 1, 1e-9);
  EXPECT_NE(without.basis.find("without a cost rule"), std::string::npos);
}

}  // namespace
}  // namespace stoker
