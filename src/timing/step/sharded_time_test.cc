#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "timing/common/testing.h"
#include "timing/gpu/offloaded_step.h"
#include "timing/step/predict_step.h"

/// Steps with collectives that are operators: FSDP's beside the compute stream, DataParallel's in
/// it.
namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::launch;
using timing_test::moving;
using timing_test::round_gpu;
using timing_test::wire;

/// Two GPUs whose link carries a byte in a nanosecond: gathering or reducing 20,000 bytes takes 10
/// us.
struct Pair {
  Machine machine;
  Coefficients coefficients = ideal();
  Program program;

  Pair() {
    machine.device = round_gpu();
    machine.device.gpu()->link = "wire";
    machine.gpu_count = 2;
    coefficients.collective.fits = {wire()};
  }

  /// Returns what kAwaitCommunication calls it.
  std::uint32_t collective(CollectiveKind kind, double microseconds, StepPhase phase,
                           Stream stream = Stream::kCommunication) {
    Kernel kernel = moving(0, phase);
    kernel.kernel_class = KernelClass::kCollective;
    kernel.stream = stream;
    kernel.read = Bytes(static_cast<std::int64_t>(2000 * microseconds));
    kernel.shape = CollectiveShape{kind, 2};
    launch(program, kernel);
    return program.kernels.back().source;
  }
  std::uint32_t gather(double microseconds, StepPhase phase = StepPhase::kForward) {
    return collective(CollectiveKind::kAllGather, microseconds, phase);
  }
  std::uint32_t reduce(double microseconds) {
    return collective(CollectiveKind::kReduceScatter, microseconds, StepPhase::kBackward);
  }
  void await(std::uint32_t source) {
    program.iteration.push_back({InstructionKind::kAwaitCommunication, When::kAlways, source});
  }
  void compute(double microseconds, StepPhase phase = StepPhase::kForward) {
    launch(program, moving(microseconds, phase));
  }
  StepTime time() const { return predict_step(program, machine, coefficients); }
};

double us(Nanos t) { return t.count() * 1e-3; }
double elapsed(const StepTime& step, StepPhase phase) {
  return us(step.phase_elapsed[static_cast<std::size_t>(phase)]);
}

TEST(ShardedTime, TheNextGatherHidesBehindTheUnitBefore) {
  // Gathered 0-10, 10-20, 20-30; computed 10-40, 40-70, 70-100: only the first gather shows.
  Pair pair;
  for (int unit = 0; unit < 3; ++unit) {
    pair.await(pair.gather(10));
    pair.compute(30);
  }
  const StepTime step = pair.time();
  EXPECT_NEAR(us(step.total), 100, 1e-6);
  EXPECT_NEAR(us(step.device), 90, 1e-6);
  EXPECT_NEAR(us(step.communication), 30, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 10, 1e-6);
  EXPECT_NEAR(elapsed(step, StepPhase::kForward), 100, 1e-6);
}

TEST(ShardedTime, GathersRunOneBufferAhead) {
  // Two buffers: the third gather waits for the copy out of the first, which begins at 20. Gathered
  // 0-20, 20-40, 40-60, and the fourth, after the copy at 40, at 60-80. Computed 20-21, 40-41,
  // 60-61, 80-81.
  Pair pair;
  for (int unit = 0; unit < 4; ++unit) {
    pair.await(pair.gather(20));
    pair.compute(1);
  }
  const StepTime step = pair.time();
  EXPECT_NEAR(us(step.total), 81, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 77, 1e-6);
}

TEST(ShardedTime, AReductionDelaysTheNextOneAndTheOptimizer) {
  // Gradients 0-10, packed 10-12, reduced 12-32; gradients 12-22; the packing waits from 22 to 32,
  // packs to 34; reduced 34-54; the optimizer waits from 34 to 54 and ends at 59.
  Pair pair;
  pair.compute(10, StepPhase::kBackward);
  pair.compute(2, StepPhase::kBackward);
  const auto first = pair.reduce(20);
  pair.compute(10, StepPhase::kBackward);
  pair.await(first);
  pair.compute(2, StepPhase::kBackward);
  pair.reduce(20);
  pair.compute(5, StepPhase::kOptimizer);
  const StepTime step = pair.time();
  EXPECT_NEAR(us(step.total), 59, 1e-6);
  EXPECT_NEAR(us(step.communication), 40, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 30, 1e-6);
  EXPECT_NEAR(elapsed(step, StepPhase::kBackward), 54, 1e-6);
  EXPECT_NEAR(elapsed(step, StepPhase::kOptimizer), 5, 1e-6);
}

TEST(ShardedTime, AUnitWaitsForItsOwnGatherOnly) {
  // The second unit is gathered 0-10 while the first runs 0-30; the first's reduction (30-70) runs
  // beside the second (30-60). The optimizer waits for it.
  Pair pair;
  const auto second = pair.gather(10, StepPhase::kBackward);
  pair.compute(30, StepPhase::kBackward);
  pair.reduce(40);
  pair.await(second);
  pair.compute(30, StepPhase::kBackward);
  pair.compute(5, StepPhase::kOptimizer);
  const StepTime step = pair.time();
  EXPECT_NEAR(us(step.total), 75, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 10, 1e-6);
}

TEST(ShardedTime, TheFirstGatherWaitsForTheOptimizer) {
  // In a steady state too: 10 gathered, 30 forward, 5 optimizer.
  Pair pair;
  pair.await(pair.gather(10));
  pair.compute(30);
  pair.compute(5, StepPhase::kOptimizer);
  EXPECT_NEAR(us(pair.time().total), 45, 1e-6);
}

TEST(ShardedTime, AnOffloadedOptimizerHoldsTheGpuAndWidensTheBand) {
  // Gathered 0-10, forward to 40; 40,000 bytes of the host's memory at 20 GB/s a rank: to 42.
  Pair pair;
  pair.await(pair.gather(10));
  pair.compute(30);
  const StepTime before = pair.time();
  Kernel update = moving(0, StepPhase::kOptimizer);
  update.read = Bytes(24'000), update.written = Bytes(16'000);
  update.on_host = true;
  launch(pair.program, update);
  const StepTime step = pair.time();
  EXPECT_NEAR(us(step.total), 42, 1e-6);
  EXPECT_NEAR(us(step.device), 30, 1e-6);
  EXPECT_NEAR(us(step.exposed_host), us(before.exposed_host), 1e-6);
  EXPECT_NEAR(elapsed(step, StepPhase::kOptimizer), 2, 1e-6);
  EXPECT_NEAR(step.band.above, std::hypot(before.band.above * 40 / 42, 2.0 / 42), 0.02);
  // A node's memory is shared: 16 ranks get 12.5 GB/s each, and one alone all of it.
  EXPECT_NEAR(us(host_passes(Bytes(40'000), 16).time), 3.2, 1e-6);
  EXPECT_NEAR(us(host_passes(Bytes(40'000), 1).time), 0.2, 1e-6);
}

TEST(ShardedTime, DataParallelHidesNothingAndHasAWideBand) {
  Pair pair;
  pair.compute(30);
  const StepTime alone = pair.time();
  Pair threads;
  threads.collective(CollectiveKind::kBroadcast, 10, StepPhase::kForward, Stream::kCompute);
  threads.compute(30);
  const StepTime step = threads.time();  // a broadcast moves every byte: 20 us
  EXPECT_NEAR(us(step.total), 50, 1e-6);
  EXPECT_NEAR(us(step.device), 30, 1e-6);
  EXPECT_NEAR(us(step.exposed_communication), 20, 1e-6);
  EXPECT_GT(step.band.above, 0.5);
  EXPECT_LT(alone.band.above, 0.5);
  EXPECT_NE(step.basis.find("DataParallel"), std::string::npos);
}

TEST(ShardedTime, ReplicasShareOneLockInTheForwardOnly) {
  // Ten operators of 5 us each way, 10 us to issue one; four replicas take 40 us in the forward.
  Pair one, four;
  for (Pair* pair : {&one, &four}) {
    pair->coefficients.host.forward = pair->coefficients.host.backward = 10_us;
    CollectiveShape shape{CollectiveKind::kBroadcast, 4};
    Kernel kernel = moving(0);
    kernel.kernel_class = KernelClass::kCollective;
    kernel.shape = shape;
    if (pair == &four) launch(pair->program, kernel);
    for (int i = 0; i < 10; ++i) pair->compute(5);
    for (int i = 0; i < 10; ++i) pair->compute(5, StepPhase::kBackward);
  }
  const double alone = us(one.time().host);
  EXPECT_NEAR(alone, 200, 1e-6);
  // The broadcast itself is issued once, by the main thread.
  EXPECT_NEAR(us(four.time().host), 10 + 400 + 100, 1e-6);
}

TEST(ShardedTime, PhasesAddUpAndOneGpuPaysNothing) {
  Pair pair;
  for (int unit = 0; unit < 3; ++unit) {
    pair.await(pair.gather(25));
    pair.compute(10);
  }
  for (int unit = 0; unit < 3; ++unit) {
    pair.await(pair.gather(25, StepPhase::kBackward));
    pair.compute(20, StepPhase::kBackward);
    pair.reduce(25);
  }
  pair.compute(5, StepPhase::kOptimizer);
  const StepTime step = pair.time();
  const double sum =
      std::accumulate(step.phase_elapsed.begin(), step.phase_elapsed.end(), Nanos(0)).count();
  EXPECT_NEAR(sum, step.total.count(), 1e-6);
  EXPECT_NEAR((step.device + step.exposed_communication).count(), step.total.count(), 1e-6);
  pair.machine.gpu_count = 1;
  EXPECT_NEAR(us(pair.time().total), 95, 1e-6);
}

}  // namespace
}  // namespace stoker
