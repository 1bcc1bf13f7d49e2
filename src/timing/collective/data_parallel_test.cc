#include "timing/collective/data_parallel.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "timing/common/testing.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::launch;
using timing_test::moving;
using timing_test::round_gpu;
using timing_test::wire;

double us(Nanos t) { return t.count() * 1e-3; }

Machine two_wired() {
  Machine machine;
  machine.device = round_gpu();
  machine.device.gpu()->link = "wire";
  machine.gpu_count = 2;
  return machine;
}

/// A byte a nanosecond between two GPUs.
AllReduceModel wired(int ranks = 2) {
  CollectiveCoefficients c;
  c.fits = {wire()};
  return all_reduce_model(two_wired(), {ranks, 1}, c);
}

CollectiveCoefficients losing(double contention, double straggler) {
  CollectiveCoefficients c = ideal().collective;
  c.contention = contention;
  c.straggler = straggler;
  return c;
}

/// Time of a step by moving a clock in small ticks: a backward that runs slower while the wire is
/// busy, and a queue of buckets that it fills.
double by_ticks(const LonelyStep& step, double contention) {
  constexpr double kTick = 5;  // ns
  double time = 0, work = 0, left = 0;
  std::size_t next = 0;
  std::deque<double> waiting;
  const double end = step.backward_end.count();
  while (work < end || left > 0 || !waiting.empty() || next < step.buckets.size()) {
    while (next < step.buckets.size() && step.buckets[next].ready.count() <= work)
      waiting.push_back(static_cast<double>(step.buckets[next++].bytes.count()));
    if (left <= 0 && !waiting.empty()) {
      left = waiting.front();
      waiting.pop_front();
    }
    if (work < end) work += left > 0 ? kTick / (1 + contention) : kTick;
    left -= kTick;
    time += kTick;
  }
  return time + (step.total - step.backward_end).count();
}

LonelyStep random_step(std::mt19937& random) {
  std::uniform_real_distribution<double> share(0, 1);
  LonelyStep step;
  double clock = 20e3;
  const int buckets = 1 + static_cast<int>(random() % 8);
  for (int i = 0; i < buckets; ++i) {
    clock += 30e3 * share(random);
    step.buckets.push_back({Bytes(static_cast<std::int64_t>(40e3 * share(random))), Nanos(clock)});
  }
  step.backward_end = Nanos(clock);
  step.total = Nanos(clock + 10e3);
  return step;
}

TEST(DataParallel, AgreesWithAClockThatTicks) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    const LonelyStep step = random_step(random);
    for (const double contention : {0.0, 0.3}) {
      const double closed = data_parallel_time(step, wired(), losing(contention, 0)).total.count();
      EXPECT_NEAR(closed, by_ticks(step, contention), 150) << "trial " << trial;
    }
  }
}

TEST(DataParallel, AgreesWithTheReplayOfAProgram) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 50; ++trial) {
    Program program;
    LonelyStep step;
    launch(program, moving(20));
    double clock = 20e3;
    const std::uint32_t buckets = 1 + random() % 6;
    for (std::uint32_t i = 0; i < buckets; ++i) {
      const double time = 1 + static_cast<double>(random() % 30);
      launch(program, moving(time, StepPhase::kBackward));
      clock += 1e3 * time;
      const Bytes bytes(1 + static_cast<std::int64_t>(random() % 40000));
      program.buckets.push_back({bytes, 1});
      program.iteration.push_back({InstructionKind::kBucketReady, When::kAlways, i});
      step.buckets.push_back({bytes, Nanos(clock)});
    }
    launch(program, moving(7, StepPhase::kOptimizer));
    step.backward_end = Nanos(clock);
    step.total = Nanos(clock + 7e3);
    Coefficients c = ideal();
    c.collective.fits = {wire()};
    c.collective.straggler = 0.05;
    const StepTime replayed = predict_step(program, two_wired(), c);
    const DataParallelTime closed = data_parallel_time(step, wired(), losing(0, 0.05));
    EXPECT_NEAR(us(closed.total), us(replayed.total), 1e-3);
    EXPECT_NEAR(us(closed.communication), us(replayed.communication), 1e-3);
    EXPECT_NEAR(us(closed.exposed), us(replayed.exposed_communication), 1e-3);
  }
}

TEST(DataParallel, OneGpuCommunicatesNothing) {
  const LonelyStep step{Nanos(100e3), Nanos(90e3), {{Bytes(50000), Nanos(80e3)}}};
  const DataParallelTime time = data_parallel_time(step, wired(1), losing(0.1, 0.1));
  EXPECT_EQ(time.total.count(), 100e3);
  EXPECT_EQ(time.exposed.count(), 0);
}

TEST(DataParallel, LaterGradientsAndMoreOfThemNeverHelp) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 100; ++trial) {
    LonelyStep step = random_step(random);
    const double before = data_parallel_time(step, wired(), losing(0.1, 0.02)).total.count();
    EXPECT_GE(before, step.total.count());
    LonelyStep more = step;
    for (ReadyBucket& bucket : more.buckets) bucket.bytes += Bytes(1000);
    EXPECT_GE(data_parallel_time(more, wired(), losing(0.1, 0.02)).total.count(), before);
    for (ReadyBucket& bucket : step.buckets) bucket.ready = step.backward_end;
    EXPECT_GE(data_parallel_time(step, wired(), losing(0, 0.02)).total.count(),
              data_parallel_time(step, wired(), losing(0, 0)).total.count());
  }
}

TEST(DataParallel, SmallBucketsOverlapWellButPayLatency) {
  // 100 MB in a backward of 30 ms on eight GPUs whose all-reduce has a latency of 200 us: buckets
  // of 1 MiB take 96 x 0.2 ms more than four of 25 MiB, of which a part shows.
  CollectiveCoefficients c;
  c.alpha = 200_us;
  c.alpha_rank = 0_us;
  Machine machine = two_wired();
  machine.device.gpu()->link = "NVLink 9";
  machine.device.gpu()->link_bandwidth = 20e9;
  const AllReduceModel slow = all_reduce_model(machine, {8, 1}, c);
  const auto total = [&](Bytes cap) {
    const Nanos end = 90 * kMillisecond;
    const LonelyStep step{97 * kMillisecond, end,
                          even_buckets(Bytes(100'000'000), 60 * kMillisecond, end, kMiB, cap)};
    return data_parallel_time(step, slow, losing(0, 0)).total;
  };
  EXPECT_GT(total(kMiB), total(Bytes(25 << 20)));
  EXPECT_GT(total(Bytes(200 << 20)), total(Bytes(25 << 20)));  // one bucket: nothing overlaps
}

TEST(DataParallel, EvenBucketsByHand) {
  const auto buckets = even_buckets(Bytes(10 << 20), Nanos(100), Nanos(200), kMiB, Bytes(4 << 20));
  ASSERT_EQ(buckets.size(), 4u);  // 1 + 4 + 4 + 1 MiB
  EXPECT_EQ(buckets[0].bytes, kMiB);
  EXPECT_EQ(buckets[3].bytes, kMiB);
  EXPECT_NEAR(buckets[1].ready.count(), 150, 1e-9);
  EXPECT_NEAR(buckets[3].ready.count(), 200, 1e-9);
  EXPECT_TRUE(even_buckets(Bytes(0), Nanos(1), Nanos(2), kMiB, kMiB).empty());
}

TEST(DataParallel, TheSlowestOfMoreIsSlower) {
  EXPECT_EQ(slowest_of(1), 0);
  EXPECT_NEAR(slowest_of(2), 0.5642, 1e-3);  // 1 / sqrt(pi)
  EXPECT_NEAR(slowest_of(8), 1.4236, 1e-3);  // tables of normal order statistics
  EXPECT_GT(slowest_of(16), slowest_of(8));
}

}  // namespace
}  // namespace stoker
