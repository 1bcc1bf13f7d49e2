#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "timing/common/testing.h"
#include "timing/cpu/cpu_model.h"
#include "timing/cpu/cpu_rates.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

using timing_test::launch;
using timing_test::round_cpu;

Machine machine() {
  Machine m;
  m.device = round_cpu();
  return m;
}

Kernel elements(std::int64_t n, StepPhase phase) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kElementwise;
  kernel.phase = phase;
  kernel.elements = n;
  kernel.read = Bytes(8 * n);
  kernel.written = Bytes(4 * n);
  kernel.flops = Flops(static_cast<double>(n));
  kernel.function = 1;
  return kernel;
}

Program small_program() {
  Program program;
  program.functions = {"add", "mul_"};
  launch(program, elements(1 << 20, StepPhase::kForward));
  launch(program, elements(1000, StepPhase::kForward));
  launch(program, elements(1 << 20, StepPhase::kBackward));
  Kernel update = elements(1 << 18, StepPhase::kOptimizer);
  update.function = 2;
  launch(program, update);
  return program;
}

double sum(const std::array<Nanos, kStepPhases>& phases) {
  double all = 0;
  for (const Nanos n : phases) all += n.count();
  return all;
}

TEST(CpuStep, OperatorsRunOneAfterAnother) {
  const StepTime t = predict_step(small_program(), machine(), Coefficients(), {.threads = 1});
  EXPECT_NEAR(t.total.count(), t.device.count() + t.host.count(), 1e-6);
  EXPECT_NEAR(sum(t.phase_elapsed), t.total.count(), 1e-6);
  EXPECT_NEAR(sum(t.phase_device), t.device.count(), 1e-6);
  EXPECT_NEAR(sum(t.phase_host), t.host.count(), 1e-6);
  EXPECT_EQ(t.exposed_host, t.host);
  EXPECT_EQ(t.busy, 1);
  EXPECT_GT(t.mfu, 0);
  EXPECT_LT(t.mfu, 1);
  EXPECT_EQ(t.copy.count(), 0);
  EXPECT_EQ(t.communication.count(), 0);
  const CpuHost host = cpu_host(round_cpu(), 1, 1);
  const Seconds issued = 2 * host.forward + host.backward + 1.4 * host.optimizer + host.step;
  EXPECT_NEAR(t.host.count(), as_nanos(issued).count(), 1e-3);
  double bounds = 0;
  for (const Nanos n : t.bound_device) bounds += n.count();
  EXPECT_NEAR(bounds, t.device.count(), 1e-6);
}

TEST(CpuStep, ThreadsHelpLargeOperatorsOnly) {
  const StepTime one = predict_step(small_program(), machine(), Coefficients(), {.threads = 1});
  const StepTime all = predict_step(small_program(), machine(), Coefficients(), {});
  EXPECT_LT(all.kernel_times[0], one.kernel_times[0]);
  EXPECT_EQ(all.kernel_times[1], one.kernel_times[1]);
  const StepTime many = predict_step(small_program(), machine(), Coefficients(), {.threads = 64});
  EXPECT_GE(many.device, all.device);
  EXPECT_EQ(many.diagnostics.count("more_threads_than_cores"), 1);
}

TEST(CpuStep, NewPagesCost) {
  StepTimeOptions options{.threads = 1};
  const StepTime none = predict_step(small_program(), machine(), Coefficients(), options);
  options.fresh = Bytes(4096 * 1000);
  const StepTime some = predict_step(small_program(), machine(), Coefficients(), options);
  const Nanos fault = as_nanos(cpu_host(round_cpu(), 1, 1).fault);
  EXPECT_NEAR((some.total - none.total).count(), fault.count() * 1000, 1);
  EXPECT_EQ(some.phase_elapsed[static_cast<std::size_t>(StepPhase::kOptimizer)],
            none.phase_elapsed[static_cast<std::size_t>(StepPhase::kOptimizer)]);
}

TEST(CpuStep, TheSecondHalfOfACallIsNotDispatched) {
  Program program = small_program();
  const StepTime before = predict_step(program, machine(), Coefficients(), {.threads = 1});
  launch(program, elements(500, StepPhase::kOptimizer));
  program.kernels.back().source = program.kernels[program.kernels.size() - 2].source;
  const StepTime after = predict_step(program, machine(), Coefficients(), {.threads = 1});
  EXPECT_EQ(after.host, before.host);
  EXPECT_GT(after.device, before.device);
}

TEST(CpuStep, BandsAreWideWithoutRowsAndNarrowWithThem) {
  Machine m = machine();
  const StepTime bare = predict_step(small_program(), m, Coefficients(), {.threads = 1});
  const double longest = std::exp(1.645 * 0.66), shortest = std::exp(-1.645 * 0.3);
  EXPECT_GT(1 + bare.band.above, longest) << "nine scripts took 0.94 to 2.7 times as long";
  EXPECT_LT(1 - bare.band.below, shortest);
  EXPECT_GT(1 - bare.band.below, shortest / 2) << "none was much shorter";
  EXPECT_NE(bare.basis.find("data sheet alone"), std::string::npos) << bare.basis;
  auto calibration = std::make_shared<Calibration>();
  calibration->figures = {{"forward_us", 0, 6, 0, ""}};
  const CpuProcessor cpu(round_cpu(), 1);
  for (std::int64_t n = 1 << 10; n <= 1 << 22; n *= 4) {
    MeasuredOperator row;
    row.kind = "elementwise";
    row.function = "add";
    row.threads = 1;
    row.sizes = {{"elements", n}, {"inputs", 2}};
    row.time_us =
        2 +
        as_micros(cpu_cost(elements(n, StepPhase::kForward), "add", cpu, {CpuData::kWarm}).total())
            .count();
    calibration->operators.push_back(row);
  }
  m.device->calibration = calibration;
  Coefficients coefficients;
  coefficients.cpu = CpuModel::make(*m.device.cpu()).value();
  const StepTime told = predict_step(small_program(), m, coefficients, {.threads = 1});
  EXPECT_LT(told.band.above, 0.3);
  EXPECT_NE(told.basis.find("7 operators measured"), std::string::npos) << told.basis;
  calibration = std::make_shared<Calibration>(*calibration);
  calibration->disturbed = true;
  m.device->calibration = calibration;
  coefficients.cpu = CpuModel::make(*m.device.cpu()).value();
  const StepTime disturbed = predict_step(small_program(), m, coefficients, {.threads = 1});
  EXPECT_GT(disturbed.band.above, told.band.above);
  EXPECT_NE(disturbed.basis.find("while others"), std::string::npos) << disturbed.basis;
}

TEST(CpuStep, PassesAndPace) {
  Program program = small_program();
  program.passes.push_back({"validation", 2, {program.iteration[0], program.iteration[1]}, {}});
  StepTimeOptions options{.threads = 1};
  const StepTime t = predict_step(program, machine(), Coefficients(), options);
  const auto passes = predict_passes(program, t, machine(), Coefficients(), options);
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_GT(passes[0].total.count(), 0);
  EXPECT_LT(passes[0].total, t.total);
  options.pace = 2;
  EXPECT_NEAR(predict_step(program, machine(), Coefficients(), options).total / t.total, 2, 1e-9);
}

}  // namespace
}  // namespace stoker
