#include "timing/learned/learned_pace.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// A forward of one product (2 ms) and 1 ms of the host's, a backward of two launches of a
/// convolution (3 ms each), an optimizer of the host's alone (1 ms).
struct Case {
  Program program;
  StepTime time;
};

Case example() {
  Case c;
  c.program.kernels.resize(2);
  c.program.kernels[0].kernel_class = KernelClass::kGemm;
  c.program.kernels[0].phase = StepPhase::kForward;
  c.program.kernels[1].kernel_class = KernelClass::kConvolution;
  c.program.kernels[1].phase = StepPhase::kBackward;
  c.program.iteration = {{InstructionKind::kLaunch, When::kAlways, 0},
                         {InstructionKind::kLaunch, When::kFirst, 0},
                         {InstructionKind::kLaunch, When::kAlways, 1},
                         {InstructionKind::kLaunch, When::kAlways, 1}};
  StepTime& t = c.time;
  t.kernel_times = {kMillisecond * 2, kMillisecond * 3};
  const auto at = [](StepPhase p) { return static_cast<std::size_t>(p); };
  t.phase_elapsed[at(StepPhase::kForward)] = kMillisecond * 3;
  t.phase_elapsed[at(StepPhase::kBackward)] = kMillisecond * 6;
  t.phase_elapsed[at(StepPhase::kOptimizer)] = kMillisecond;
  t.phase_device[at(StepPhase::kForward)] = kMillisecond * 2;
  t.phase_device[at(StepPhase::kBackward)] = kMillisecond * 6;
  t.class_device[static_cast<std::size_t>(KernelClass::kGemm)] = kMillisecond * 2;
  t.class_device[static_cast<std::size_t>(KernelClass::kConvolution)] = kMillisecond * 6;
  t.device = kMillisecond * 8;
  t.host = kMillisecond * 2;
  t.total = kMillisecond * 10;
  t.mfu = 0.5;
  return c;
}

TEST(LearnedPace, ScalesClassesAndHost) {
  Calibration calibration;
  calibration.figures = {{.name = "convolution_pace", .threads = 2, .value = 1.5},
                         {.name = "host_pace", .threads = 0, .value = 2},
                         {.name = "gemm_pace", .threads = 1, .value = 9}};
  Case c = example();
  const LearnedPace pace = learned_pace(&calibration, 2);
  EXPECT_TRUE(pace.any);
  apply_pace(pace, c.program, c.time);
  EXPECT_DOUBLE_EQ(milliseconds(c.time.total), 2 + 2 * 1 + 6 * 1.5 + 2 * 1);
  EXPECT_DOUBLE_EQ(milliseconds(c.time.device), 2 + 9);
  EXPECT_DOUBLE_EQ(milliseconds(c.time.host), 4);
  EXPECT_DOUBLE_EQ(milliseconds(c.time.kernel_times[1]), 4.5);
  EXPECT_DOUBLE_EQ(
      milliseconds(c.time.class_device[static_cast<std::size_t>(KernelClass::kConvolution)]), 9);
  EXPECT_NEAR(c.time.mfu, 0.5 * 10 / 15, 1e-12);
  EXPECT_NE(c.time.basis.find("training runs"), std::string::npos);
}

TEST(LearnedPace, ChangesNothingWhenNothingWasLearned) {
  Calibration calibration;
  calibration.figures = {{.name = "fault_us", .threads = 2, .value = 1.5}};
  Case c = example();
  apply_pace(learned_pace(&calibration, 2), c.program, c.time);
  apply_pace(learned_pace(nullptr, 2), c.program, c.time);
  EXPECT_DOUBLE_EQ(milliseconds(c.time.total), 10);
  EXPECT_TRUE(c.time.basis.empty());
}

}  // namespace
}  // namespace stoker
