#include "timing/step/predict_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "device/host/host_speed.h"
#include "timing/common/testing.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::launch;
using timing_test::moving;
using timing_test::round_gpu;
using timing_test::wire;

Machine machine_of(int gpus = 1) {
  Machine machine;
  machine.device = round_gpu();
  machine.gpu_count = gpus;
  return machine;
}

double us(Nanos t) { return t.count() * 1e-3; }

TEST(StepTime, DeviceBoundStepIsTheSumOfItsKernels) {
  Program program;
  for (int i = 0; i < 4; ++i) launch(program, moving(25));
  Coefficients c = ideal();
  c.host.forward = 1_us;
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
  c.host.forward = 50_us;
  c.host.step = 30_us;
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
  optimizer.listed = 30;
  launch(program, optimizer);
  launch(program, moving(1, StepPhase::kOptimizer));
  Coefficients c = ideal();
  c.host.forward = 100_us;
  c.host.backward = 60_us;
  c.host.optimizer = 40_us;
  c.host.list = 0.5_us;
  c.host.update = 9_us;
  c.host.view = 7_us;
  c.host.launch = 2_us;
  // 100 + 3 * 7; 60, 2; 40 + 30 * 0.5 + 4 * 2, 9
  const StepTime step = predict_step(program, machine_of(), c);
  const auto host_of = [&](StepPhase p) {
    return us(step.phase_host[static_cast<std::size_t>(p)]);
  };
  EXPECT_NEAR(host_of(StepPhase::kForward), 121, 1e-6);
  EXPECT_NEAR(host_of(StepPhase::kBackward), 62, 1e-6);
  EXPECT_NEAR(host_of(StepPhase::kOptimizer), 63 + 9, 1e-6);
  EXPECT_NEAR(us(step.host), 121 + 62 + 72, 1e-6);
  Machine slow = machine_of();
  slow.host.relative_core_speed = 0.5;
  EXPECT_NEAR(us(predict_step(program, slow, c).host), 2 * 255, 1e-6);
}

double forward_host_us(const Program& program, const Coefficients& c) {
  const StepTime step = predict_step(program, machine_of(), c);
  return us(step.phase_host[static_cast<std::size_t>(StepPhase::kForward)]);
}

TEST(StepTime, ModulesGraphAndLibrariesTakeHostTime) {
  Program program;
  Kernel norm = moving(1);
  norm.kernel_class = KernelClass::kNormalization;
  norm.modules = 3;
  launch(program, norm);
  Kernel rows = moving(1);
  rows.kernel_class = KernelClass::kNormalization;
  rows.shape = RowShape{4, 4};
  launch(program, rows);
  Coefficients c = ideal();
  c.host.forward = 100_us;
  c.host.autograd = 10_us;
  c.host.module = 1_us;
  c.host.library = 40_us;
  c.host.rows = 5_us;
  EXPECT_NEAR(forward_host_us(program, c), 100 + 10 + 3 + 40 + 100 + 10 + 5, 1e-6);
  program.records_graph = false;
  EXPECT_NEAR(forward_host_us(program, c), 100 + 3 + 40 + 100 + 5, 1e-6);
}

TEST(StepTime, TheHostsProcessorScalesItsTimes) {
  Program program;
  launch(program, moving(1));
  Coefficients c = ideal();
  c.host.forward = 100_us;
  c.host.speed = 0;  // of a core that is not this host's
  Machine machine = machine_of();
  machine.host.dispatch_speed = 0.5;
  machine.host.dispatch_spread = 0.2;
  const StepTime half = predict_step(program, machine, c);
  EXPECT_NEAR(us(half.host), 200, 1e-6);
  machine.host.dispatch_speed = 0;  // nobody said: the host that such a GPU usually has
  const Gpu& gpu = *machine.device.gpu();
  const StepTime usual = predict_step(program, machine, c);
  EXPECT_NEAR(us(usual.host), 100 / usual_host(gpu).speed, 1e-6);
  EXPECT_GT(usual.band.above, half.band.above);
}

TEST(StepTime, SynchronizingForcesTheWait) {
  Program program;
  for (int i = 0; i < 3; ++i) {
    launch(program, moving(10));
    program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
  }
  Coefficients c = ideal();
  c.host.forward = 20_us;
  c.host.synchronize = 5_us;
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
  machine.device.gpu()->link = "wire";
  return machine;
}

Coefficients wired() {
  Coefficients c = ideal();
  c.collective.fits = {wire()};  // 15,000 bytes: 15 us
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
  c.collective.straggler_wait = 7_us;
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

  const StepTime pageable =
      predict_step(program, machine_of(), ideal(), {.copy = CopyWay::kPageable});
  EXPECT_NEAR(us(pageable.copy), 60, 1e-6);  // half the rate by ideal()
  EXPECT_GE(us(pageable.total), 60 - 1e-6);
}

TEST(StepTime, CopiesInLineAddToTheStepAndHoldTheHostOnlyWhenBlocking) {
  // 30 us of copy, then 50 us of kernel that takes the host 40 us to issue.
  Program program;
  Kernel copy = moving(30, StepPhase::kLoad);
  copy.kernel_class = KernelClass::kHostToDevice;
  launch(program, copy);
  launch(program, moving(50));
  Coefficients c = ideal();
  c.host.forward = 40_us;
  // The host goes on: 40 us for each of two operators, as long as the device's 80.
  const StepTime ahead = predict_step(program, machine_of(), c, {.copy = CopyWay::kNonBlocking});
  EXPECT_NEAR(us(ahead.total), 80, 1e-6);
  EXPECT_NEAR(us(ahead.exposed_copy), 30, 1e-6);
  // It waits for kernel and copy: 40 hidden behind the kernel, copy ends at 80; then 40, then 50.
  const StepTime waiting = predict_step(program, machine_of(), c);
  EXPECT_NEAR(us(waiting.total), 120, 1e-6);
  // From pageable memory it waits too, and the copy takes twice as long.
  const StepTime pageable = predict_step(program, machine_of(), c, {.copy = CopyWay::kPageable});
  EXPECT_NEAR(us(pageable.total), 150, 1e-6);
}

TEST(StepTime, GraphsTakeTheHostOutOfTheStep) {
  Program program;
  Kernel copy = moving(30, StepPhase::kLoad);
  copy.kernel_class = KernelClass::kHostToDevice;
  copy.stream = Stream::kCopy;
  launch(program, copy);
  for (int i = 0; i < 10; ++i) launch(program, moving(10));
  Coefficients c = ideal();
  c.host.forward = 40_us;
  c.host.graph = 5_us;
  c.host.graph_kernel = 1_us;
  c.kernel.graph_gain = 2_us;
  c.kernel.graph_spread = 0.4;
  const StepTime eager = predict_step(program, machine_of(), c);
  EXPECT_NEAR(us(eager.total), 440, 1e-6);
  program.cuda_graphs = true;
  const StepTime graph = predict_step(program, machine_of(), c);
  EXPECT_NEAR(us(graph.host), 40 + 5 + 10, 1e-6);  // the copy stays outside
  EXPECT_NEAR(us(graph.total), 80, 1e-6);          // 10 kernels of 10 us less 2
  EXPECT_NEAR(us(graph.graphs), 80, 1e-6);
  EXPECT_GT(graph.band.above, 0.4);
  EXPECT_NE(graph.basis.find("CUDA graphs"), std::string::npos);
}

TEST(StepTime, GraphsEndWhereTheHostWaits) {
  // A scaler reads a number before the optimizer: the optimizer is issued eagerly.
  Program program;
  program.cuda_graphs = true;
  for (int i = 0; i < 3; ++i) launch(program, moving(10, StepPhase::kBackward));
  program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
  launch(program, moving(10, StepPhase::kOptimizer));
  Coefficients c = ideal();
  c.host.graph = 5_us;
  c.host.update = 7_us;
  c.host.synchronize = 2_us;
  c.kernel.graph_gain = 0_us;
  const StepTime step = predict_step(program, machine_of(), c);
  EXPECT_NEAR(us(step.host), 5 + 2 + 7, 1e-6);
  // The graph's launch hides behind the optimizer's kernel; then 30, noticed 2 later, 7 of
  // host, 10.
  EXPECT_NEAR(us(step.total), 30 + 2 + 7 + 10, 1e-6);
  EXPECT_NEAR(us(step.graphs), 30, 1e-6);
}

TEST(StepTime, PassesHaveTheirOwnTime) {
  Program program;
  for (int i = 0; i < 4; ++i) launch(program, moving(25));
  program.passes.push_back({"validation, batch 2", 2, {program.iteration[0]}, {}});
  const StepTime step = predict_step(program, machine_of(), ideal());
  const auto passes = predict_passes(program, step, machine_of(), ideal());
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(passes[0].name, "validation, batch 2");
  EXPECT_NEAR(us(passes[0].total), 25, 1e-6);
  EXPECT_NEAR(us(step.total), 100, 1e-6);
}

TEST(StepTime, BoundsAreInOrder) {
  Program program;
  for (int i = 0; i < 4; ++i) launch(program, moving(10));
  Coefficients c = ideal();
  c.host.forward = 50_us;
  const auto bounds = step_bounds(predict_step(program, machine_of(), c));
  ASSERT_EQ(bounds.size(), 2U);
  EXPECT_STREQ(bounds[0].name, "host");
  EXPECT_NEAR(us(bounds[0].time), 200, 1e-6);
  EXPECT_STREQ(bounds[1].name, "kernels");
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
    c.host.forward = Micros(time(random));
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
