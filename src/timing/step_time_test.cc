#include "timing/step_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "timing/testing.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::launch;
using timing_test::moving;
using timing_test::round_gpu;

Machine machine_of(int gpus = 1) {
  Machine machine;
  machine.gpu = round_gpu();
  machine.gpu_count = gpus;
  return machine;
}

double us(Nanos t) { return t.count() * 1e-3; }

TEST(StepTime, DeviceBoundStepIsTheSumOfItsKernels) {
  Program program;
  for (int i = 0; i < 4; ++i) launch(program, moving(25));
  Coefficients c = ideal();
  c.host.forward_us = 1;
  const StepTime step = predict_step(program, machine_of(), c);
  EXPECT_NEAR(us(step.total), 100, 1e-6);
  EXPECT_NEAR(us(step.device), 100, 1e-6);
  EXPECT_NEAR(us(step.host), 4, 1e-6);
  EXPECT_NEAR(us(step.exposed_host), 0, 1e-6);
  EXPECT_NEAR(step.busy, 1, 1e-9);
  EXPECT_FALSE(step.host_bound());
  EXPECT_EQ(step.kernel_times.size(), 4u);
}

TEST(StepTime, HostBoundStepIsTheSumOfItsDispatches) {
  // Four operators of 50 us on the host and 10 on the device, then 30 us of Python.
  Program program;
  for (int i = 0; i < 4; ++i) launch(program, moving(10));
  Coefficients c = ideal();
  c.host.forward_us = 50;
  c.host.step_us = 30;
  const StepTime step = predict_step(program, machine_of(), c);
  EXPECT_NEAR(us(step.total), 230, 1e-6);
  EXPECT_NEAR(us(step.device), 40, 1e-6);
  EXPECT_NEAR(us(step.exposed_host), 190, 1e-6);
  EXPECT_TRUE(step.host_bound());
  EXPECT_NEAR(step.busy, 40.0 / 230, 1e-9);
}

TEST(StepTime, HostDispatchesByPhaseViewAndKernel) {
  Program program;
  Kernel forward = moving(1);
  forward.views = 3;
  launch(program, forward);
  launch(program, moving(1, StepPhase::kBackward));
  launch(program, moving(1, StepPhase::kBackward));
  program.kernels[2].source = program.kernels[1].source;  // second kernel of the same operator
  Kernel optimizer = moving(1, StepPhase::kOptimizer);
  optimizer.launches = 5;
  launch(program, optimizer);
  Coefficients c = ideal();
  c.host = {.forward_us = 100,
            .backward_us = 60,
            .optimizer_us = 40,
            .view_us = 7,
            .launch_us = 2,
            .synchronize_us = 0,
            .step_us = 0,
            .spread = 0.5};
  // 100 + 3 * 7, 60, 2, 40 + 4 * 2
  EXPECT_NEAR(us(predict_step(program, machine_of(), c).host), 121 + 60 + 2 + 48, 1e-6);
  Machine slow = machine_of();
  slow.host.relative_core_speed = 0.5;
  EXPECT_NEAR(us(predict_step(program, slow, c).host), 2 * 231, 1e-6);
}

TEST(StepTime, SynchronizingForcesTheWait) {
  Program program;
  for (int i = 0; i < 3; ++i) {
    launch(program, moving(10));
    program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
  }
  Coefficients c = ideal();
  c.host.forward_us = 20;
  c.host.synchronize_us = 5;
  EXPECT_NEAR(us(predict_step(program, machine_of(), c).total), 3 * (20 + 10 + 5), 1e-6);
}

TEST(StepTime, FirstIterationIsNotTheSteadyOne) {
  Program program;
  launch(program, moving(10));
  launch(program, moving(1000));
  program.iteration.back().when = When::kFirst;
  EXPECT_NEAR(us(predict_step(program, machine_of(), ideal()).total), 10, 1e-6);
}

Program with_buckets() {
  // 10 us forward; three times 10 us backward, each finishing a bucket of 15,000 bytes; 5 us
  // optimizer.
  Program program;
  launch(program, moving(10));
  for (std::uint32_t i = 0; i < 3; ++i) {
    launch(program, moving(10, StepPhase::kBackward));
    program.buckets.push_back({Bytes(15000), 1});
    program.iteration.push_back({InstructionKind::kBucketReady, When::kAlways, i});
  }
  launch(program, moving(5, StepPhase::kOptimizer));
  return program;
}

Machine two_linked() {
  Machine machine = machine_of(2);
  machine.gpu.link = "wire";
  return machine;
}

Coefficients wired() {
  Coefficients c = ideal();
  c.collective.fits = {{"wire", 2, 0, 1e9, 0.1}};  // 15,000 bytes: 15 us
  return c;
}

TEST(StepTime, BucketsOverlapWithBackward) {
  // Ready at 20, 30, 40; reduced 20-35, 35-50, 50-65; the optimizer waits from 40 to 65 and ends at
  // 70.
  const StepTime step = predict_step(with_buckets(), two_linked(), wired());
  EXPECT_NEAR(us(step.total), 70, 1e-6);
  EXPECT_NEAR(us(step.communication), 45, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 25, 1e-6);
  EXPECT_NEAR(us(step.phase_elapsed[static_cast<std::size_t>(StepPhase::kBackward)]), 55, 1e-6);
  EXPECT_NEAR(us(predict_step(with_buckets(), machine_of(1), wired()).total), 45, 1e-6);
}

TEST(StepTime, CollectivesSlowTheKernelsBesideThem) {
  // The second and third backward kernel run beside a collective and take 15 us: ready at 20, 35,
  // 50.
  Coefficients c = wired();
  c.collective.contention = 0.5;
  const StepTime step = predict_step(with_buckets(), two_linked(), c);
  EXPECT_NEAR(us(step.total), 70, 1e-6);
  EXPECT_NEAR(us(step.device), 55, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 15, 1e-6);
}

TEST(StepTime, RanksWaitForTheSlowest) {
  Coefficients c = wired();
  c.collective.straggler = 0.1;
  const StepTime step = predict_step(with_buckets(), two_linked(), c);
  EXPECT_NEAR(us(step.total), 77, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 32, 1e-6);
  EXPECT_NEAR(us(predict_step(with_buckets(), machine_of(1), c).total), 45,
              1e-6);  // alone: no wait
}

TEST(StepTime, CopiesHideOnlyBesideCompute) {
  Program program;
  Kernel copy = moving(30, StepPhase::kLoad);
  copy.kernel_class = KernelClass::kHostToDevice;
  launch(program, copy);
  launch(program, moving(50));
  const StepTime serial = predict_step(program, machine_of(), ideal());
  EXPECT_NEAR(us(serial.total), 80, 1e-6);
  EXPECT_NEAR(us(serial.exposed_copy), 30, 1e-6);
  EXPECT_NEAR(us(serial.device), 50, 1e-6);

  program.kernels[0].stream = Stream::kCopy;
  const StepTime beside = predict_step(program, machine_of(), ideal());
  EXPECT_NEAR(us(beside.total), 50, 1e-6);
  EXPECT_NEAR(us(beside.exposed_copy), 0, 1e-6);
  EXPECT_NEAR(us(beside.copy), 30, 1e-6);

  const StepTime pageable = predict_step(program, machine_of(), ideal(), {.pinned_copy = false});
  EXPECT_NEAR(us(pageable.copy), 60, 1e-6);  // half the rate by ideal()
  EXPECT_GE(us(pageable.total), 60 - 1e-6);
}

TEST(StepTime, PhasesAddUpToTheStep) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> time(0.1, 60);
  for (int trial = 0; trial < 50; ++trial) {
    Program program;
    const int per_phase = 1 + static_cast<int>(random() % 40);
    for (int phase = 1; phase < static_cast<int>(kStepPhases); ++phase) {
      for (int i = 0; i < per_phase; ++i) {
        launch(program, moving(time(random), static_cast<StepPhase>(phase)));
        if (random() % 9 == 0)
          program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
      }
    }
    Coefficients c;
    c.host.forward_us = time(random);
    const StepTime step =
        predict_step(program, machine_of(), c, {.queue_depth = 1 + random() % 64});
    const double elapsed =
        std::accumulate(step.phase_elapsed.begin(), step.phase_elapsed.end(), Nanos(0)).count();
    EXPECT_NEAR(elapsed, step.total.count(), 1e-6 * step.total.count());
    EXPECT_GE(step.total.count() * (1 + 1e-9), step.device.count());
    EXPECT_GE(step.total.count() * 1.002, step.host.count());
    EXPECT_NEAR((step.device + step.exposed_host).count(), step.total.count(),
                1e-6 * step.total.count());
    EXPECT_LE(step.busy, 1);
    EXPECT_GT(step.band.above, step.band.below);
  }
}

TEST(StepTime, UtilizationIsAchievedOverPeak) {
  // 10 MFLOP in 50 us on 1 TFLOP/s: 0.2.
  Program program;
  Kernel kernel = moving(50);
  kernel.flops = Flops(1e7);
  launch(program, kernel);
  const StepTime step = predict_step(program, machine_of(), ideal());
  EXPECT_NEAR(step.mfu, 0.2, 1e-9);
  EXPECT_EQ(step.main_unit, MathUnit::kFp32);
}

TEST(StepTime, KernelsWithoutARuleAreCountedAndWidenTheBand) {
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

TEST(StepTime, SlowestOperatorsComeFirstAndSumTheirKernels) {
  Program program;
  launch(program, moving(10));
  launch(program, moving(30));
  launch(program, moving(25));
  program.kernels[2].source = program.kernels[0].source;
  const StepTime step = predict_step(program, machine_of(), ideal());
  const auto slowest = slowest_operators(program, step, 5);
  ASSERT_EQ(slowest.size(), 2u);
  EXPECT_EQ(slowest[0].source, program.kernels[0].source);
  EXPECT_NEAR(us(slowest[0].time), 35, 1e-6);
  EXPECT_EQ(slowest_operators(program, step, 1).size(), 1u);
}

TEST(StepTime, EmptyAndDamagedProgramsStayFinite) {
  Program program;
  const StepTime empty = predict_step(program, machine_of(), Coefficients());
  EXPECT_TRUE(std::isfinite(empty.total.count()));
  EXPECT_EQ(empty.diagnostics.count("empty_program"), 1);
  program.iteration.push_back({InstructionKind::kLaunch, When::kAlways, 99});
  program.iteration.push_back({InstructionKind::kBucketReady, When::kAlways, 99});
  EXPECT_TRUE(std::isfinite(predict_step(program, Machine(), Coefficients()).total.count()));
}

}  // namespace
}  // namespace stoker
