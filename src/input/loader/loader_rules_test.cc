// One test a rule of the DataLoader that the plain simulation tests do not reach.
#include <gtest/gtest.h>

#include <cmath>

#include "input/loader/loader_constants.h"
#include "input/loader/loader_events.h"
#include "input/loader/loader_memory.h"
#include "input/loader/loader_simulation.h"

namespace stoker {
namespace {

constexpr std::int64_t kPicture = 3 * 224 * 224 * 4;

SampleCost plain(double sample_ms = 4) {
  return sample_cost_given(sample_ms * kMillisecond, {Bytes(kPicture), 2}, {});
}

Consumer blocking(double step_ms) {
  return {.step = step_ms * kMillisecond, .consumption = Consumption::kBlocking};
}

/// One rank whose batches cost `batch` of CPU, on many cores, instant steps.
LoaderModel bare(int workers, Seconds batch) {
  LoaderModel model;
  model.workers = workers;
  model.cores = 64;
  model.run_ahead = 0;
  model.samples = SampleDeck({batch});
  return model;
}

TEST(Quota, StandsStillUntilTheNextPeriod) {
  SharedResource cores(2, 0, 0, {.cores = 0.5, .period = 0.1_s});
  cores.start(0_s, 1, 0.2_s);
  EXPECT_NEAR(cores.next_end(0_s).count(), 0.35,
              1e-9);  // three periods of 50 ms each, and 50 ms more
  EXPECT_NEAR(cores.busy(0.25_s).count(), 0.15, 1e-9);
  cores.start(0.25_s, 2, 0.01_s);  // two on two cores use what is left of a period twice as fast
  EXPECT_NEAR(cores.next_end(0.25_s).count(), 0.31, 1e-9);
  EXPECT_EQ(cores.finish(0.31_s), 2U);
  EXPECT_NEAR(cores.next_end(0.31_s).count(), 0.40 + 0.01, 1e-9);
}

TEST(Quota, BoundsTheRateAndTheFirstBatchWaits) {
  const LoaderSettings settings{.batch = 10, .workers = 4, .pin = false};
  const HostShare half{.cores = 8, .quota = {.cores = 0.5}};
  const LoaderForecast out = simulate_loader(settings, plain(), half, blocking(1));
  EXPECT_NEAR(out.samples_per_s, 125, 3);
  EXPECT_NEAR(out.cores_used, 0.5, 0.01);
  EXPECT_EQ(out.limit, InputLimit::kCores);
}

TEST(FirstServed, ShortJobsOfSleepersDoNotQueue) {
  SharedResource cores(2, 0);
  for (std::uint32_t job = 0; job < 4; ++job) cores.start(0_s, job, 1_s);
  cores.start(0_s, 9, 0.01_s, SharedResource::Class::kFirst);
  EXPECT_DOUBLE_EQ(cores.next_end(0_s).count(), 0.01);
  EXPECT_EQ(cores.finish(0.01_s), 9U);
  EXPECT_DOUBLE_EQ(cores.next_end(0.01_s).count(),
                   2.005);  // the others lost those 10 ms of one core
}

TEST(Waiting, NeedsNoCore) {
  SampleCost cost = plain(0.1);
  cost.wait = {10.0 * kMillisecond};
  const LoaderForecast out =
      simulate_loader({.batch = 10, .workers = 8, .pin = false}, cost, {.cores = 1}, blocking(1));
  EXPECT_GT(milliseconds(out.interval), 101.0 / 8);
  EXPECT_LT(milliseconds(out.interval), 14);
  EXPECT_LT(out.cores_used, 0.2);
  EXPECT_EQ(out.limit, InputLimit::kWorkers);
  const LoaderForecast alone =
      simulate_loader({.batch = 10, .workers = 0, .pin = false}, cost, {.cores = 1}, blocking(1));
  EXPECT_NEAR(milliseconds(alone.interval), 102, 0.1);
}

TEST(InProcess, SamplesCostWhatTheyCostThere) {
  SampleCost cost = plain(4);
  cost.in_process_ratio = 0.5;
  const LoaderSettings settings{.batch = 10, .workers = 0, .pin = false};
  EXPECT_NEAR(milliseconds(simulate_loader(settings, cost, {}, blocking(1)).interval), 21, 1e-6);
  LoaderSettings one = settings;
  one.workers = 1;
  EXPECT_NEAR(milliseconds(simulate_loader(one, cost, {.cores = 4}, blocking(1)).interval), 40,
              0.01);
}

TEST(Batches, MeasuredOnesReplaceCoefficients) {
  SampleCost cost = plain(1);
  cost.transport.collate_shared_ns = 1000;  // must not be used
  cost.batches = {{.batch = 10,
                   .samples = 10,
                   .bytes = Bytes(1000),
                   .tensors = 3,
                   .collate_shared = 5.0 * kMillisecond,
                   .collate_private = 2.0 * kMillisecond,
                   .pickled = Bytes(1'000'000),
                   .pickle = {},
                   .unpickle = {}}};
  cost.transport.pickle_worker_ns = 1;  // 1 ms a batch
  cost.transport.pickle_main_ns = 20;   // 20 ms
  const LoaderSettings one{.batch = 10, .workers = 1, .pin = false};
  EXPECT_NEAR(milliseconds(simulate_loader(one, cost, {.cores = 8}, blocking(0)).interval), 21,
              0.01)
      << "the feeder thread pickles for 1 ms, then writes for 20";
  cost.transport.pickle_main_ns = 0;
  // The feeder thread pickles beside the next batch's samples.
  EXPECT_NEAR(milliseconds(simulate_loader(one, cost, {.cores = 8}, blocking(0)).interval), 15,
              0.01);
  LoaderSettings none = one;
  none.workers = 0;
  const LoaderForecast out = simulate_loader(none, cost, {.cores = 8}, blocking(0));
  EXPECT_NEAR(milliseconds(out.interval), 12, 0.01);
  EXPECT_EQ(out.shared_memory.count(), 0);
  EXPECT_EQ(simulate_loader(one, cost, {.cores = 8}, blocking(0)).shared_memory.count(), 3000);
}

TEST(OutOfOrder, GoesToWhoHasRoomAndYieldsOnArrival) {
  // Worker 0 meets a batch of ten seconds; the others go on without it.
  LoaderModel model = bare(2, 0.1_s);
  model.batches = 20;
  model.prefetch = 1;
  std::vector<Seconds> costs(20, 0.1_s);
  costs[0] = 10_s;
  model.samples = SampleDeck(costs);
  LoaderTrace ordered = play_loader(model);
  while (ordered.yielded[0] < 9_s) {  // until the order in which the slow one comes first
    ++model.first_card;
    ordered = play_loader(model);
  }
  model.in_order = false;
  const LoaderTrace free = play_loader(model);
  ASSERT_EQ(free.yielded.size(), 20U);
  EXPECT_NEAR(free.yielded.back().count(), 10, 2.0);
  EXPECT_LT(free.yielded[18], 2.1_s) << "the other worker made the rest meanwhile";
  EXPECT_GT(ordered.yielded[18], 8_s) << "in order all wait for the slow one";
}

TEST(Iterable, EachStreamEndsWithItsOwnShortBatch) {
  LoaderModel model = bare(2, 0.01_s);
  model.batch = 10;
  model.batches = 4;
  model.streams = {25, 10};
  const LoaderTrace all = play_loader(model);
  EXPECT_EQ(all.yielded.size(), 4U);  // 10, 10, 5 and 10
  EXPECT_NEAR(all.yielded.back().count(), 0.25, 1e-9);
  model.drop_last = true;
  EXPECT_EQ(play_loader(model).yielded.size(), 3U);
  model.in_order = false;
  EXPECT_EQ(play_loader(model).yielded.size(), 3U);
}

TEST(Iterable, OneBatchAWorkerMoreThanASampler) {
  SampleCost cost = plain(1);
  cost.iterable = true;
  const LoaderSettings settings{.batch = 10, .workers = 4, .pin = false, .dataset_samples = 100};
  EXPECT_EQ(simulate_loader(settings, cost, {.cores = 8}, blocking(1)).batches, 12);
  cost.iterable = false;
  EXPECT_EQ(simulate_loader(settings, cost, {.cores = 8}, blocking(1)).batches, 10);
}

TEST(Lock, BusyWorkersSendLate) {
  // One tensor a batch; a worker that makes the next batch lets the other threads wait 5 ms a turn.
  LoaderModel model = bare(1, 0.2_s);
  model.batches = 6;
  model.lock_wait = 0.005_s;
  model.send_turns = kSendTurns;
  model.handover_turns = kHandoverTurns;
  const LoaderTrace late = play_loader(model);
  EXPECT_NEAR(late.yielded[0].count(), 0.2 + 0.005 * (kSendTurns + kHandoverTurns), 1e-9);
  EXPECT_NEAR(late.yielded[5].count(), 1.2, 1e-9) << "after the last batch nobody holds the lock";
  model.handover_turns = 100;  // longer than the worker is busy: ends when it is idle
  model.prefetch = 1;
  EXPECT_NEAR(play_loader(model).yielded[0].count(), 0.2, 1e-9) << "no second batch was asked for";
}

TEST(Start, LargeDataSetsGoThroughThePipeOneWorkerAfterTheOther) {
  SampleCost cost = plain(1);
  cost.start.spawn = 1000.0 * kMillisecond;
  cost.start.pickled = Bytes(10'000);
  LoaderSettings settings{
      .batch = 1, .workers = 4, .pin = false, .start_method = StartMethod::kSpawn};
  const HostShare host{.cores = 8};
  const auto first = [&] {
    return milliseconds(simulate_loader(settings, cost, host, blocking(1)).first_batch);
  };
  EXPECT_NEAR(first(), 1000 + 1, 10);
  cost.start.pickled = Bytes(1'000'000);
  EXPECT_NEAR(first(), 4 * 1000 + 1, 10);
  cost.start.spawn = {};
  cost.start.interpreter = 500.0 * kMillisecond;
  cost.start.pickle = cost.start.unpickle = 100.0 * kMillisecond;
  EXPECT_NEAR(first(), 4 * (500 + 100 + 1 + 100) + 1, 10) << "added up where none was measured";
  settings.start_method = StartMethod::kFork;
  cost.start.fork = 30.0 * kMillisecond;
  EXPECT_NEAR(first(), 30 + 1, 1);
}

TEST(Start, AServerThatForksIsStartedOnce) {
  SampleCost cost = plain(1);
  LoaderSettings settings{.batch = 1, .workers = 4, .pin = false, .dataset_samples = 400};
  settings.start_method = StartMethod::kForkserver;
  const HostShare host{.cores = 8};
  const auto now = [&] { return simulate_loader(settings, cost, host, blocking(1)); };
  // Nobody measured anything: each worker imports PyTorch, beside each other.
  EXPECT_NEAR(milliseconds(now().first_batch), 1200 + 1, 10);
  cost.start.server = 700.0 * kMillisecond;
  cost.start.served = 20.0 * kMillisecond;
  EXPECT_NEAR(milliseconds(now().first_batch), 700 + 20 + 1, 10);
  EXPECT_NEAR(milliseconds(now().epoch_start), 20 + 1, 10) << "it lives on";
  cost.start.pickled = Bytes(1'000'000);
  cost.start.forkserver = 50.0 * kMillisecond;
  EXPECT_NEAR(milliseconds(now().first_batch), 700 + 4 * 50 + 1, 10);
  cost.start.server = {};  // a probe of which each start held an interpreter
  EXPECT_NEAR(milliseconds(now().first_batch), 4 * 50 + 1, 10);
}

TEST(Start, WaitingForItNeedsNoCore) {
  SampleCost cost = plain(1);
  const LoaderSettings settings{.batch = 1, .workers = 8, .pin = false, .dataset_samples = 4000};
  const auto now = [&] { return simulate_loader(settings, cost, {.cores = 2}, blocking(1)); };
  cost.start.fork = 1050.0 * kMillisecond;
  cost.start.wait = 1000.0 * kMillisecond;  // an init function that sleeps
  EXPECT_NEAR(milliseconds(now().first_batch), 1000 + 8 * 50 / 2.0, 30);
  cost.start = {};
  const double plain_ms = milliseconds(now().first_batch);
  cost.warm_up_wait = 500.0 * kMillisecond;  // each worker opens a connection
  EXPECT_NEAR(milliseconds(now().first_batch) - plain_ms, 500, 5);
  cost.warm_up_wait = {};
  cost.start.sampler = 3000.0 * kMillisecond;
  EXPECT_NEAR(milliseconds(now().first_batch) - plain_ms, 3000, 5);
  LoaderSettings kept = settings;
  kept.persistent = true;
  EXPECT_GT(milliseconds(simulate_loader(kept, cost, {.cores = 2}, blocking(1)).epoch_start), 3000)
      << "in each epoch";
}

TEST(Waiting, CollatingMayWaitToo) {
  SampleCost cost = plain(0.001);
  cost.batches = {{.batch = 10,
                   .samples = 10,
                   .bytes = Bytes(1000),
                   .tensors = 1,
                   .collate_shared = {},
                   .collate_private = {},
                   .pickled = Bytes(0),
                   .pickle = {},
                   .unpickle = {},
                   .collate_wait = 50.0 * kMillisecond}};
  const auto interval = [&](int workers) {
    return milliseconds(simulate_loader({.batch = 10, .workers = workers, .pin = false}, cost,
                                        {.cores = 1}, blocking(0.1))
                            .interval);
  };
  EXPECT_NEAR(interval(0), 50.1, 0.2);
  EXPECT_NEAR(interval(5), 10, 0.5);
}

TEST(LastBatch, TakesTheStepOfItsSize) {
  SampleCost cost = plain(0.001);
  LoaderSettings settings{.batch = 10, .workers = 0, .pin = false, .dataset_samples = 31};
  Consumer loop = blocking(100);
  const auto epoch = [&] {
    return milliseconds(simulate_loader(settings, cost, {.cores = 8}, loop).epoch);
  };
  EXPECT_NEAR(epoch(), 400, 1) << "a loop that sleeps";
  loop.fixed = 0;
  EXPECT_NEAR(epoch(), 310, 1);
  loop.fixed = 0.5;
  EXPECT_NEAR(epoch(), 300 + 55, 1);
  loop.host_cpu = 60.0 * kMillisecond;
  EXPECT_NEAR(epoch(), 300 + 60, 1) << "never shorter than launching it";
  settings.drop_last = true;
  EXPECT_NEAR(epoch(), 300, 1);
  settings.drop_last = false;
  settings.workers = 2;
  loop = blocking(100);
  loop.fixed = 0;
  const double whole = epoch();
  loop.fixed = 1;
  EXPECT_NEAR(epoch() - whole, 90, 1);
}

TEST(Start, TheFirstBatchOfANewWorkerCostsMore) {
  SampleCost cost = plain(1);
  cost.warm_up = 50.0 * kMillisecond;
  const LoaderSettings settings{
      .batch = 10, .workers = 2, .pin = false, .persistent = true, .dataset_samples = 1000};
  const LoaderForecast out = simulate_loader(settings, cost, {.cores = 8}, blocking(1));
  EXPECT_NEAR(milliseconds(out.first_batch), 60, 0.01);
  EXPECT_NEAR(milliseconds(out.epoch_start), 10, 0.01) << "persistent workers are warm";
}

TEST(Copy, PageableCostsTheLoopPinnedOverlaps) {
  SampleCost cost = plain(0.01);
  const LoaderSettings settings{.batch = 10, .workers = 4, .pin = false};
  const HostShare host{.cores = 16};
  Consumer consumer = {.step = 20.0 * kMillisecond};
  const double bytes = 10.0 * kPicture;
  consumer.copy = {.bandwidth = bytes / 5e-3, .way = CopyWay::kPageable};
  EXPECT_NEAR(milliseconds(simulate_loader(settings, cost, host, consumer).interval), 25, 0.1);
  consumer.copy = {.bandwidth = bytes / 5e-3, .way = CopyWay::kOverlapped};
  EXPECT_NEAR(milliseconds(simulate_loader(settings, cost, host, consumer).interval), 20, 0.1);
  consumer.copy.bandwidth = bytes / 30e-3;
  EXPECT_NEAR(milliseconds(simulate_loader(settings, cost, host, consumer).interval), 30, 0.1);
}

TEST(Foreign, JobsOfOthersTakeCores) {
  const LoaderSettings settings{.batch = 10, .workers = 4, .pin = false};
  const double alone = simulate_loader(settings, plain(), {.cores = 4}, blocking(1)).samples_per_s;
  const HostShare shared{.cores = 4, .foreign_cores = 2};
  EXPECT_NEAR(simulate_loader(settings, plain(), shared, blocking(1)).samples_per_s, alone / 2,
              0.03 * alone);
}

TEST(Queue, FullBeforeASlowLoopEmptyBeforeAFastOne) {
  const LoaderSettings settings{.batch = 10, .workers = 4, .pin = false};
  const LoaderForecast slow = simulate_loader(settings, plain(), {.cores = 8}, blocking(500));
  EXPECT_EQ(slow.queue.median, 8);
  EXPECT_EQ(slow.shared_memory_used.count(), 9 * 10 * kPicture) << "the loop holds one more";
  EXPECT_EQ(slow.shared_memory, slow.shared_memory_used);
  const LoaderForecast fast = simulate_loader(settings, plain(), {.cores = 1}, blocking(0));
  EXPECT_LE(fast.queue.median, 4);
  EXPECT_LT(fast.shared_memory_used, fast.shared_memory);
}

TEST(Memory, OfLoadersInTurn) {
  SampleCost cost = plain();
  cost.transport.worker_private = Bytes(1000);
  cost.copied_on_read = Bytes(100);
  const LoaderSettings train{.batch = 8, .workers = 4, .persistent = true};
  LoaderSettings validate{.batch = 32, .workers = 2, .persistent = false};
  const LoaderMemory alone = loader_memory(train, cost, 1);
  EXPECT_EQ(alone.workers.count(), 4 * 1100);
  EXPECT_EQ(alone.copied.count(), 400);
  EXPECT_EQ(alone.pipes, 4 * 4 + 2);
  const LoaderMemory both = memory_in_turn({{train, &cost}, {validate, &cost}}, 1);
  EXPECT_EQ(both.workers.count(), 6 * 1100) << "the persistent ones stay while the others work";
  validate.persistent = true;
  EXPECT_EQ(memory_in_turn({{validate, &cost}, {train, &cost}}, 1).workers.count(), 6 * 1100);
  LoaderSettings brief = train;
  brief.persistent = false;
  validate.persistent = false;
  EXPECT_EQ(memory_in_turn({{brief, &cost}, {validate, &cost}}, 1).workers.count(), 4 * 1100);
  EXPECT_EQ(both.shared, std::max(alone.shared, loader_memory(validate, cost, 1).shared));
  EXPECT_EQ(both.pinned, alone.pinned + loader_memory(validate, cost, 1).pinned)
      << "pinned blocks are kept";
}

TEST(Memory, SpawnedWorkersShareNothing) {
  const LoaderSettings fork{.batch = 8, .workers = 4};
  LoaderSettings spawn = fork;
  spawn.start_method = StartMethod::kSpawn;
  EXPECT_EQ((loader_memory(spawn, plain(), 1).workers - loader_memory(fork, plain(), 1).workers),
            4 * kInterpreterMemory);
}

}  // namespace
}  // namespace stoker
