// The launch queue beside a clock that ticks.

#include "timing/gpu/reference_queue.h"

#include <gtest/gtest.h>

#include <random>

#include "timing/common/testing.h"
#include "timing/gpu/launch_queue.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::moving;
using timing_test::ReferenceAction;
using timing_test::ReferenceQueue;
using timing_test::round_gpu;

constexpr std::array<Stream, 4> kAll{Stream::kCompute, Stream::kCopy, Stream::kCommunication,
                                     Stream::kReduction};

std::vector<ReferenceAction> random_actions(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  std::vector<ReferenceAction> actions;
  int kernels = 0;
  const int count = 5 + below(60);
  const unsigned longest = 1 + random() % 12;  // some programs are bound by the host, some are not
  for (int i = 0; i < count; ++i) {
    ReferenceAction a;
    switch (below(12)) {
      case 0:
        a.kind = ReferenceAction::kSynchronize;
        break;
      case 1:
        if (kernels == 0) continue;
        a.kind = ReferenceAction::kAwait;
        a.after = below(static_cast<unsigned>(kernels));
        break;
      case 2:
      case 3:
      case 4:
        a.time = below(8);
        break;
      default:
        a.kind = below(6) == 0 ? ReferenceAction::kFollow : ReferenceAction::kLaunch;
        a.time = below(longest);
        a.stream = kAll[random() % 3];
        if (kernels > 0 && below(3) == 0) a.after = below(static_cast<unsigned>(kernels));
        ++kernels;
    }
    actions.push_back(a);
  }
  return actions;
}

TEST(ReferenceQueue, RandomProgramsAgree) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 1000; ++trial) {
    const auto actions = random_actions(random);
    const std::size_t depth = 1 + random() % 6;
    const ReferenceQueue reference(actions, depth);
    LaunchQueue queue(depth);
    std::vector<Nanos> ends;
    const auto end_of = [&](int k) { return k < 0 ? Nanos(0) : ends[static_cast<std::size_t>(k)]; };
    for (const ReferenceAction& a : actions) {
      const Nanos time(static_cast<double>(a.time));
      if (a.kind == ReferenceAction::kWork) queue.host_work(time);
      if (a.kind == ReferenceAction::kSynchronize) queue.synchronize();
      if (a.kind == ReferenceAction::kAwait) queue.wait_until(end_of(a.after));
      if (a.kind == ReferenceAction::kLaunch)
        ends.push_back(queue.launch(a.stream, time, end_of(a.after)));
      if (a.kind == ReferenceAction::kFollow)
        ends.push_back(queue.follow(a.stream, time, end_of(a.after)));
    }
    ASSERT_EQ(queue.host().count(), static_cast<double>(reference.host())) << "trial " << trial;
    for (std::size_t k = 0; k < ends.size(); ++k)
      ASSERT_EQ(ends[k].count(), static_cast<double>(reference.end_of_kernel(k)))
          << trial << " kernel " << k;
    for (const Stream s : kAll)
      ASSERT_EQ(queue.starved(s).count(), static_cast<double>(reference.starved(s)))
          << "trial " << trial;
  }
}

/// A step of round times and what the reference's host does for it, once an iteration.
struct RandomStep {
  Program program;
  std::vector<ReferenceAction> actions;  ///< `after` counts from the iteration's first kernel
  int kernels = 0;
  bool overlapped = false;
  int copy = -1;
};

constexpr int kForward = 4, kBackward = 3, kUpdate = 2, kSynchronize = 5, kLoop = 7;

RandomStep random_step(std::mt19937& random, bool blocking) {
  RandomStep step;
  const auto add = [&](Kernel kernel, long time, int host) {
    timing_test::launch(step.program, kernel);
    step.actions.push_back({ReferenceAction::kWork, host, Stream::kCompute, -1});
    step.actions.push_back({ReferenceAction::kLaunch, time, kernel.stream, -1});
    ++step.kernels;
  };
  const auto microseconds = [&] { return static_cast<long>(random() % 9); };
  Kernel copy = moving(0, StepPhase::kLoad);
  copy.kernel_class = KernelClass::kHostToDevice;
  step.overlapped = random() % 2 == 0;
  copy.stream = step.overlapped ? Stream::kCopy : Stream::kCompute;
  const long copied = 1 + microseconds();
  copy.read = Bytes(copied * 1000);
  add(copy, copied, kForward);
  step.copy = 0;
  if (!step.overlapped && blocking) step.actions.push_back({ReferenceAction::kAwait, 0, {}, 0});
  const auto phase = [&](StepPhase p, int host) {
    const auto count = 1 + random() % 12;
    for (unsigned i = 0; i < count; ++i) {
      const long time = microseconds();
      add(moving(static_cast<double>(time), p), time, host);
      if (random() % 10 > 0) continue;
      step.program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
      step.actions.push_back({ReferenceAction::kSynchronize, 0, {}, -1});
      step.actions.push_back({ReferenceAction::kWork, kSynchronize, {}, -1});
    }
  };
  phase(StepPhase::kForward, kForward);
  phase(StepPhase::kBackward, kBackward);
  phase(StepPhase::kOptimizer, kUpdate);
  step.actions.push_back({ReferenceAction::kWork, kLoop, {}, -1});
  return step;
}

/// Ends of the compute stream after each of `iterations`, by the reference.
std::vector<long> reference_ends(const RandomStep& step, int iterations, std::size_t depth) {
  std::vector<ReferenceAction> all;
  for (int i = 0; i < iterations; ++i) {
    int kernel = 0;
    for (ReferenceAction a : step.actions) {
      if (a.kind == ReferenceAction::kAwait) a.after += i * step.kernels;
      // The first kernel on the compute stream waits for the batch, which the iteration before
      // copied.
      if (a.kind == ReferenceAction::kLaunch && kernel++ == 1 && step.overlapped && i > 0)
        a.after = (i - 1) * step.kernels;
      all.push_back(a);
    }
  }
  const ReferenceQueue reference(all, depth);
  std::vector<long> ends;
  for (int i = 1; i <= iterations; ++i)
    ends.push_back(reference.end_of_kernel(static_cast<std::size_t>(i * step.kernels - 1)));
  return ends;
}

TEST(ReferenceQueue, WholeStepsAgree) {
  std::mt19937 random(6);
  Machine machine;
  machine.device = round_gpu();
  Coefficients c = ideal();
  c.host.forward = Micros(kForward);
  c.host.backward = Micros(kBackward);
  c.host.update = Micros(kUpdate);
  c.host.synchronize = Micros(kSynchronize);
  c.host.step = Micros(kLoop);
  for (int trial = 0; trial < 300; ++trial) {
    const bool blocking = random() % 2 == 0;
    const RandomStep step = random_step(random, blocking);
    const std::size_t depth = 1 + random() % 40;
    constexpr int kIterations = 40;
    const auto ends = reference_ends(step, kIterations, depth);
    const StepTime time = predict_step(
        step.program, machine, c,
        {.copy = blocking ? CopyWay::kBlocking : CopyWay::kNonBlocking, .queue_depth = depth});
    const double last = static_cast<double>(ends[kIterations - 1] - ends[kIterations - 2]);
    EXPECT_NEAR(time.total.count() * 1e-3, last, 1e-6) << "trial " << trial;
  }
}

}  // namespace
}  // namespace stoker
