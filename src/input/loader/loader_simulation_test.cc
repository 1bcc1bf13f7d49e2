#include "input/loader/loader_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "input/loader/loader_events.h"
#include "input/loader/loader_twin.h"
#include "input/loader/shared_resource.h"
#include "input/probe/page_cache.h"

namespace stoker {
namespace {

constexpr std::int64_t kPicture = 3 * 224 * 224 * 4;

/// 4 ms a sample, nothing else costs anything.
SampleCost plain(double sample_ms = 4) {
  return sample_cost_given(sample_ms * kMillisecond, {Bytes(kPicture), 2}, {});
}

double interval_ms(const LoaderSettings& settings, const SampleCost& cost, const HostShare& host,
                   Consumer consumer) {
  return milliseconds(simulate_loader(settings, cost, host, consumer).interval);
}

Consumer blocking(double step_ms) {
  return {.step = step_ms * kMillisecond, .consumption = Consumption::kBlocking};
}

TEST(SharedResource, SharesEvenly) {
  SharedResource cores(2, 0);
  cores.start(0_s, 1, 1.0_s);
  EXPECT_DOUBLE_EQ(cores.next_end(0_s).count(), 1.0);
  cores.start(0.5_s, 2, 1.0_s);
  cores.start(0.5_s, 3, 1.0_s);  // three on two cores: rate 2/3
  EXPECT_DOUBLE_EQ(cores.next_end(0.5_s).count(), 0.5 + 0.5 * 1.5);
  EXPECT_EQ(cores.finish(1.25_s), 1U);
  EXPECT_DOUBLE_EQ(cores.next_end(1.25_s).count(),
                   1.75);  // 0.5 done of 1.0, alone on a core each from now on
  cores.finish(1.75_s);
  cores.finish(1.75_s);
  EXPECT_EQ(cores.jobs(), 0U);
  EXPECT_DOUBLE_EQ(cores.busy(5_s).count(), 0.5 + 2 * 0.75 + 2 * 0.5);
  EXPECT_TRUE(std::isinf(cores.next_end(5_s).count()));
}

TEST(SharedResource, SlowsDownByBusyUnits) {
  SharedResource cores(4, 0.1);
  cores.start(0_s, 1, 1.0_s);
  EXPECT_DOUBLE_EQ(cores.next_end(0_s).count(), 1.0);
  cores.start(0_s, 2, 1.0_s);
  cores.start(0_s, 3, 1.0_s);
  EXPECT_DOUBLE_EQ(cores.next_end(0_s).count(), 1.2);
}

TEST(SharedResource, CrowdingCostsUpToItsShare) {
  SharedResource cores(2, 0, 0.1);
  for (std::uint32_t job = 0; job < 3; ++job) cores.start(0_s, job, 1.0_s);
  EXPECT_DOUBLE_EQ(cores.next_end(0_s).count(), 1.5 * 1.05);
  SharedResource crowded(2, 0, 0.1);
  for (std::uint32_t job = 0; job < 8; ++job) crowded.start(0_s, job, 1.0_s);
  EXPECT_DOUBLE_EQ(crowded.next_end(0_s).count(), 4 * 1.1);
}

TEST(Simulation, SamplesFaultTheirMemoryInAgain) {
  SampleCost cost = plain();
  cost.transport.sample_fault_ns = 1e6 / kPicture;  // 1 ms a sample
  const auto in_process = [&](std::int64_t batch) {
    return interval_ms({.batch = batch, .workers = 0, .pin = false}, cost, {.cores = 4},
                       blocking(0)) /
           static_cast<double>(batch);
  };
  EXPECT_NEAR(in_process(32), 4, 1e-6);   // 19 MB: glibc keeps it
  EXPECT_NEAR(in_process(128), 5, 1e-6);  // 77 MB: it does not
  EXPECT_NEAR(
      interval_ms({.batch = 32, .workers = 1, .pin = false}, cost, {.cores = 4}, blocking(0)),
      32 * 5, 1e-6);
}

TEST(SharedResource, FractionOfACore) {
  SharedResource quota(0.5, 0);
  quota.start(0_s, 1, 1.0_s);
  EXPECT_DOUBLE_EQ(quota.next_end(0_s).count(), 2.0);
}

TEST(Simulation, WithoutWorkersLoadAndStepAdd) {
  EXPECT_NEAR(
      interval_ms({.batch = 10, .workers = 0, .pin = false}, plain(), {.cores = 4}, blocking(15)),
      55, 1e-6);
}

TEST(Simulation, WithoutWorkersAnOverlappedStepHidesTheLoad) {
  const LoaderSettings settings{.batch = 10, .workers = 0, .pin = false};
  EXPECT_NEAR(interval_ms(settings, plain(), {.cores = 4}, {.step = 15.0 * kMillisecond}), 40,
              1e-6);
  EXPECT_NEAR(interval_ms(settings, plain(), {.cores = 4}, {.step = 60.0 * kMillisecond}), 60,
              1e-6);
}

TEST(Simulation, EnoughWorkersLeaveTheStep) {
  const LoaderForecast out =
      simulate_loader({.batch = 10, .workers = 4}, plain(), {.cores = 8}, blocking(15));
  EXPECT_NEAR(milliseconds(out.interval), 15, 1e-3 + 15 * 0.01);
  EXPECT_EQ(out.limit, InputLimit::kStep);
  EXPECT_LT(out.worker_utilization, 0.75);
}

TEST(Simulation, CoresBoundTheRate) {
  // 8 workers of 40 ms a batch on 2 cores: 20 ms a batch.
  const LoaderForecast out = simulate_loader({.batch = 10, .workers = 8, .pin = false}, plain(),
                                             {.cores = 2}, blocking(1));
  EXPECT_NEAR(milliseconds(out.interval), 20, 0.2);
  EXPECT_EQ(out.limit, InputLimit::kCores);
  EXPECT_NEAR(out.cores_used, 2, 0.02);
  EXPECT_NEAR(milliseconds(out.wait), 19, 0.2);
}

TEST(Simulation, WorkersBoundTheRate) {
  const LoaderForecast out = simulate_loader({.batch = 10, .workers = 2, .pin = false}, plain(),
                                             {.cores = 16}, blocking(1));
  EXPECT_NEAR(milliseconds(out.interval), 20, 0.2);
  EXPECT_EQ(out.limit, InputLimit::kWorkers);
  EXPECT_GT(out.worker_utilization, 0.99);
}

TEST(Simulation, TransportBoundsTheRate) {
  SampleCost cost = plain(0.1);
  cost.tensors = 10;
  cost.transport.per_tensor_main = 1.0 * kMillisecond;
  const LoaderForecast out =
      simulate_loader({.batch = 10, .workers = 8, .pin = false}, cost, {.cores = 16}, blocking(5));
  EXPECT_NEAR(milliseconds(out.interval), 15, 0.01);
  EXPECT_EQ(out.limit, InputLimit::kMainThread);
  // A pin thread receives beside the step.
  const LoaderForecast pinned =
      simulate_loader({.batch = 10, .workers = 8}, cost, {.cores = 16}, blocking(5));
  EXPECT_LT(milliseconds(pinned.interval), 13);
  EXPECT_EQ(pinned.limit, InputLimit::kPinThread);
}

TEST(Simulation, StorageBoundsTheRate) {
  SampleCost cost = plain(0.1);
  cost.read_bytes = 100'000;
  cost.dataset_bytes = 1000 * kGiB;
  const HostShare host{.cores = 16, .memory = 1 * kGiB, .disk_iops = 500};
  const LoaderForecast out =
      simulate_loader({.batch = 10, .workers = 8, .pin = false}, cost, host, blocking(1));
  EXPECT_NEAR(out.samples_per_s, 500, 5);
  EXPECT_EQ(out.limit, InputLimit::kDisk);
  HostShare roomy = host;
  roomy.memory = 2000 * kGiB;
  const LoaderForecast cached =
      simulate_loader({.batch = 10, .workers = 8, .pin = false}, cost, roomy, blocking(1));
  EXPECT_GT(cached.samples_per_s, 5000);
  EXPECT_EQ(cached.cached_share, 1);
}

TEST(Simulation, CheapSamplesOfWhichNoBatchWasMeasuredAreBandedByTheirCollating) {
  SampleCost cost = plain(0.001);
  cost.output = Bytes(600'000);
  cost.transport.collate_shared_ns = 1;  // 0.6 ms a sample
  const auto rate = [&](double factor) {
    return simulate_loader({.batch = 10, .workers = 1, .pin = false}, at_band_end(cost, factor),
                           {.cores = 16}, blocking(0.1))
        .samples_per_s;
  };
  EXPECT_NEAR(rate(1.25) / rate(1), 1 / 1.25, 0.02);
  EXPECT_NEAR(rate(0.8) / rate(1), 1.25, 0.02);
}

TEST(Simulation, WhatStorageGivesHasABandOfItsOwn) {
  SampleCost cost = plain(0.1);
  cost.read_bytes = 100'000;
  cost.dataset_bytes = 1000 * kGiB;
  const auto rate = [&](double factor, HostShare host) {
    host.cores = 16;
    host.memory = 1 * kGiB;
    return simulate_loader({.batch = 10, .workers = 8, .pin = false}, at_band_end(cost, factor),
                           host, blocking(1))
        .samples_per_s;
  };
  // As stated of a disk, and as a probe measured it: at the ends 2/3 and 3/2 of the rate.
  const HostShare disk{.disk_bandwidth = 20e6};
  EXPECT_NEAR(rate(1, disk), 200, 2);
  EXPECT_NEAR(rate(1.1, disk) / rate(1, disk), 1 / 1.5, 0.01);
  EXPECT_NEAR(rate(0.9, disk) / rate(1, disk), 1.5, 0.02);
  const HostShare reads{.disk_iops = 170};
  EXPECT_NEAR(rate(1.1, reads) / rate(1, reads), 1 / 1.5, 0.01);
  EXPECT_NEAR(rate(0.9, reads) / rate(1, reads), 1.5, 0.02);
  cost.cold_seek_ms = 50;
  EXPECT_NEAR(rate(1.1, {}) / rate(1, {}), 1 / 1.5, 0.02);
}

TEST(Simulation, RanksShareTheCores) {
  const LoaderSettings settings{.batch = 10, .workers = 4, .pin = false};
  const LoaderForecast one = simulate_loader(settings, plain(), {.cores = 4}, blocking(1));
  const LoaderForecast four =
      simulate_loader(settings, plain(), {.cores = 4, .ranks = 4}, blocking(1));
  EXPECT_NEAR(four.samples_per_s * 4 / one.samples_per_s, 1, 0.02);
  EXPECT_NEAR(four.cores_used, 4, 0.05);
  EXPECT_EQ(four.shared_memory.count(), 4 * one.shared_memory.count());
}

TEST(Simulation, FirstBatchIsOneWorkersWholeBatch) {
  SampleCost cost = plain();
  cost.transport.fork_per_worker = 10.0 * kMillisecond;
  cost.transport.worker_startup = 5.0 * kMillisecond;
  cost.transport.per_batch_main = 2.0 * kMillisecond;
  cost.transport.epoch_reset = 1.0 * kMillisecond;
  const LoaderSettings settings{
      .batch = 10, .workers = 3, .pin = false, .persistent = true, .dataset_samples = 1000};
  const LoaderForecast out = simulate_loader(settings, cost, {.cores = 16}, blocking(1));
  EXPECT_NEAR(milliseconds(out.first_batch), 3 * 10 + 40 + 2,
              1e-6);  // worker 0 started during the other forks
  EXPECT_NEAR(milliseconds(out.epoch_start), 1 + 40 + 2, 1e-6);
  LoaderSettings fresh = settings;
  fresh.persistent = false;
  const LoaderForecast again = simulate_loader(fresh, cost, {.cores = 16}, blocking(1));
  EXPECT_EQ(again.epoch_start, again.first_batch);
  EXPECT_NEAR(milliseconds(again.epoch - out.epoch), 30 - 1, 1e-6);
}

TEST(Simulation, LongEpochsGoOnAtTheSteadyPace) {
  LoaderSettings settings{.batch = 10, .workers = 2, .pin = false, .dataset_samples = 100'003};
  const LoaderForecast out = simulate_loader(settings, plain(), {.cores = 2}, blocking(1));
  EXPECT_EQ(out.batches, 10'001);
  EXPECT_NEAR(seconds(out.epoch), 10'001 * 0.020, 0.1);
  settings.drop_last = true;
  EXPECT_EQ(simulate_loader(settings, plain(), {.cores = 2}, blocking(1)).batches, 10'000);
}

TEST(Simulation, ShortEpochsArePlayedOut) {
  // 3 batches of 40 ms on 2 workers: 40, 40, 80 ms, then a step.
  const LoaderSettings settings{.batch = 10, .workers = 2, .pin = false, .dataset_samples = 25};
  const LoaderForecast out = simulate_loader(settings, plain(), {.cores = 2}, blocking(1));
  EXPECT_EQ(out.batches, 3);
  EXPECT_NEAR(milliseconds(out.epoch), 40 + 20 + 1, 1e-6);
}

TEST(Simulation, UnknownDataNeverLimits) {
  const LoaderForecast out =
      simulate_loader({.batch = 64, .workers = 4}, sample_cost_unknown({Bytes(1000), 2}),
                      {.cores = 1}, blocking(10));
  EXPECT_EQ(out.limit, InputLimit::kStep);
  EXPECT_NEAR(out.samples_per_s, 6400, 1e-6);
  EXPECT_EQ(out.wait.count(), 0);
  EXPECT_NE(out.basis.find("no data given"), std::string::npos);
}

TEST(Simulation, MemoryFollowsTheWindow) {
  const LoaderForecast out = simulate_loader({.batch = 32, .workers = 4, .prefetch = 2}, plain(),
                                             {.cores = 4}, blocking(1));
  EXPECT_EQ(out.shared_memory.count(), 4 * 2 * 32 * kPicture);
  EXPECT_EQ(out.pinned_memory.count(), 9 * 32 * 1024 * 1024);  // 19.3 MB sits in blocks of 32 MiB
  EXPECT_EQ(out.file_descriptors, 16);
}

TEST(Simulation, DeeperPrefetchHidesJitterOnly) {
  SampleCost cost = plain();
  cost.cpu.assign(20, 2.0 * kMillisecond);
  cost.cpu.back() = 60.0 * kMillisecond;  // one slow sample in twenty
  const auto wait = [&](int prefetch) {
    return milliseconds(
        simulate_loader({.batch = 8, .workers = 4, .prefetch = prefetch, .pin = false}, cost,
                        {.cores = 8}, blocking(15))
            .wait);
  };
  EXPECT_GT(wait(1), wait(8) * 1.2);
  const auto bound = [&](int prefetch) {  // cores-bound: the mean does not move
    return interval_ms({.batch = 8, .workers = 4, .prefetch = prefetch, .pin = false}, plain(),
                       {.cores = 2}, blocking(1));
  };
  EXPECT_NEAR(bound(2), bound(8), 0.01 * bound(2));
}

TEST(Simulation, OutOfOrderIsNeverMuchSlower) {
  SampleCost cost = plain();
  cost.cpu.assign(50, 2.0 * kMillisecond);
  cost.cpu.back() = 400.0 * kMillisecond;
  LoaderSettings settings{.batch = 8, .workers = 4, .pin = false};
  const double ordered = interval_ms(settings, cost, {.cores = 8}, blocking(10));
  settings.in_order = false;
  EXPECT_LT(interval_ms(settings, cost, {.cores = 8}, blocking(10)), ordered);
}

TEST(Simulation, IsDeterministic) {
  SampleCost cost = plain();
  cost.cpu = {1.0 * kMillisecond, 9.0 * kMillisecond};
  const LoaderSettings settings{.batch = 32, .workers = 3};
  EXPECT_EQ(simulate_loader(settings, cost, {.cores = 2}, blocking(5)).interval,
            simulate_loader(settings, cost, {.cores = 2}, blocking(5)).interval);
}

TEST(PageCache, LeastRecentlyUsedUnderShuffling) {
  EXPECT_EQ(cached_share(100 * kGiB, {}), 1);
  EXPECT_EQ(cached_share(10 * kGiB, 100 * kGiB), 1);
  EXPECT_NEAR(cached_share(80 * kGiB, 50 * kGiB), 0.5 + 0.5 * std::log(0.5), 1e-12);
  // The formula against the cache itself: 600 files, room for half.
  Random random(4);
  std::vector<int> order(600), last(600, -1);
  std::vector<int> history;
  for (int i = 0; i < 600; ++i) order[i] = i;
  int hits = 0, reads = 0;
  for (int epoch = 0; epoch < 12; ++epoch) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const int file : order) {
      if (epoch > 1) {
        std::vector<bool> seen(600, false);
        int distinct = 0;
        for (std::size_t k = last[file] + 1; k < history.size(); ++k) {
          if (!seen[history[k]]) seen[history[k]] = true, ++distinct;
        }
        hits += distinct < 300;
        ++reads;
      }
      last[file] = static_cast<int>(history.size());
      history.push_back(file);
    }
  }
  EXPECT_NEAR(static_cast<double>(hits) / reads, 0.5 + 0.5 * std::log(0.5), 0.01);
}

/// A random setting for both simulations; `uneven`: every batch of its own cost and wait.
struct Pair {
  Twin twin;
  LoaderModel model;
};

std::vector<Seconds> in_seconds(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

Pair random_pair(Random& random, bool uneven) {
  Pair pair;
  Twin& twin = pair.twin;
  LoaderModel& model = pair.model;
  twin.workers = static_cast<int>(random.below(6));
  twin.prefetch = 1 + static_cast<int>(random.below(4));
  twin.batches = 1 + static_cast<std::int64_t>(random.below(30));
  twin.cores = 0.5 + 0.5 * static_cast<double>(random.below(12));
  twin.in_order = random.below(2) == 0 || twin.workers == 0;
  const double cpu = random.uniform(0.01, 0.2);
  const double wait = random.below(2) == 0 ? 0 : random.uniform(0.005, 0.1);
  const std::size_t cards = uneven ? 7 : 1;
  for (std::size_t i = 0; i < cards; ++i) {
    twin.batch_cpu.push_back(uneven ? cpu * random.uniform(0.2, 3) : cpu);
    twin.batch_wait.push_back(uneven && random.below(2) == 0 ? 3 * wait : wait);
  }
  twin.receive_cpu = random.uniform(0.0005, 0.02);
  twin.step = random.below(3) == 0 ? 0 : random.uniform(0.005, 0.1);
  twin.fork = random.uniform(0.001, 0.01);
  twin.startup = random.uniform(0.001, 0.02);
  twin.warm_up = random.below(2) == 0 ? 0 : random.uniform(0.01, 0.05);
  twin.burst = 2.8e-3;
  twin.tick = 2e-5;
  model.batches = twin.batches;
  model.workers = twin.workers;
  model.prefetch = twin.prefetch;
  model.in_order = twin.in_order;
  model.run_ahead = 0;
  model.cores = twin.cores;
  model.samples = SampleDeck(in_seconds(twin.batch_cpu), in_seconds(twin.batch_wait));
  model.receive.fixed = Seconds(twin.workers > 0 ? twin.receive_cpu : 0);
  model.fork = Seconds(twin.fork);
  model.startup = Seconds(twin.startup);
  model.warm_up = Seconds(twin.warm_up);
  model.step = Seconds(twin.step);
  return pair;
}

TEST(Twin, AgreesOnRandomSettings) {
  Random random(20);
  for (int round = 0; round < 60; ++round) {
    const auto [twin, model] = random_pair(random, false);
    const std::vector<double> expected = twin.play();
    const LoaderTrace trace = play_loader(model);
    ASSERT_EQ(trace.yielded.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      // Each of the changes before batch k may come up to a tick late in the twin.
      const double tolerance = 1e-3 + 8e-5 * static_cast<double>(k);
      ASSERT_NEAR(trace.yielded[k].count(), expected[k], tolerance)
          << "round " << round << " batch " << k << " workers " << twin.workers << " cores "
          << twin.cores << " in order " << twin.in_order;
    }
  }
}

/// With uneven batches two that end within a tick of each other may change places, so that single
/// times can differ: the ends of most epochs must still be the same.
TEST(Twin, AgreesOnUnevenBatches) {
  Random random(21);
  int same = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    auto [twin, model] = random_pair(random, true);
    // The deck deals in its own order: give the twin that order.
    Dealer dealer(model.samples, model.first_card);
    for (std::size_t i = 0; i < twin.batch_cpu.size(); ++i) {
      const SampleWork work = dealer.deal(1);
      twin.batch_cpu[i] = work.cpu.count();
      twin.batch_wait[i] = work.wait.count();
    }
    const std::vector<double> expected = twin.play();
    const LoaderTrace trace = play_loader(model);
    ASSERT_EQ(trace.yielded.size(), expected.size());
    const double tolerance = 2e-3 + 1e-4 * static_cast<double>(expected.size());
    same += std::abs(trace.yielded.back().count() - expected.back()) < tolerance ? 1 : 0;
    EXPECT_NEAR(trace.yielded.back().count(), expected.back(), 0.1 * expected.back())
        << "round " << round;
  }
  EXPECT_GE(same, kRounds * 8 / 10);
}

}  // namespace
}  // namespace stoker
