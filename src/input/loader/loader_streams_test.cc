#include "input/loader/loader_streams.h"

#include <gtest/gtest.h>

#include <numeric>

#include "input/loader/loader_model.h"

namespace stoker {
namespace {

constexpr Consumer kLoop{.consumption = Consumption::kBlocking};
constexpr HostShare kHost{.cores = 8};

SampleCost instant() {
  SampleCost cost = sample_cost_given(Nanos(1e3), {Bytes(64), 1}, {});
  cost.transport = {};
  return cost;
}

StreamCost stream_of(double sample_ms, std::int64_t samples = -1) {
  return {.cpu = std::vector<Nanos>(16, Nanos(1e3)),
          .wait = std::vector<Nanos>(16, sample_ms * kMillisecond),
          .samples = samples,
          .start = {}};
}

SampleCost striped(double slow_ms, std::int64_t samples = -1) {
  SampleCost cost = instant();
  cost.iterable = true;
  cost.streams = {{.workers = {stream_of(0.01, samples), stream_of(slow_ms, samples)}}};
  return cost;
}

TEST(Streams, TheSlowestSetsThePaceOfBatchesInTurn) {
  const LoaderSettings two{.batch = 4, .workers = 2, .pin = false};
  // Worker 1 takes 4 x 500 ms a batch, and each second batch is its: 8 samples in 2 s.
  const LoaderForecast out = simulate_loader(two, striped(500), kHost, kLoop);
  EXPECT_NEAR(out.samples_per_s, 4, 0.02);
  LoaderSettings one = two;
  one.workers = 1;
  EXPECT_GT(simulate_loader(one, striped(500), kHost, kLoop).samples_per_s, 1e4)
      << "one worker reads what was measured as one worker";
}

TEST(Streams, AnyOrderDoesNotHelpStreamsOfOneLength) {
  const LoaderSettings any{.batch = 4, .workers = 2, .pin = false, .in_order = false};
  SampleCost cost = striped(10, 4000);
  cost.dataset_samples = 8000;
  const LoaderForecast out = simulate_loader(any, cost, kHost, kLoop);
  // Half of the samples are worker 1's: 4000 x 10 ms, whatever worker 0 does meanwhile.
  EXPECT_NEAR(out.samples_per_s, 200, 10);
  EXPECT_NEAR(seconds(out.epoch), 40, 1);
}

TEST(Streams, UnequalOnesLeaveOneWorkerAlone) {
  SampleCost cost = striped(10);
  cost.dataset_samples = 4000;
  for (StreamCost& stream : cost.streams[0].workers) stream = stream_of(10);
  cost.streams[0].workers[0].samples = 3000;
  cost.streams[0].workers[1].samples = 1000;
  for (Nanos& time : cost.cpu) time = Nanos(1e3);
  cost.wait = {10 * kMillisecond};
  const LoaderSettings two{.batch = 10, .workers = 2, .pin = false};
  const LoaderForecast out = simulate_loader(two, cost, kHost, kLoop);
  EXPECT_NEAR(seconds(out.epoch), 30, 0.5) << "as long as the longer stream";
  EXPECT_NEAR(out.samples_per_s, 200, 2) << "while both run";
}

TEST(Streams, FollowWholeUnitsOfWork) {
  SampleCost cost = instant();
  cost.work_units = 5;
  EXPECT_EQ(stream_lengths(cost, 4, 1000), (std::vector<std::int64_t>{400, 200, 200, 200}));
  cost.work_units = 1;
  EXPECT_EQ(stream_lengths(cost, 4, 1000), (std::vector<std::int64_t>{1000, 0, 0, 0}));
  cost.wait = {10 * kMillisecond};
  cost.dataset_samples = 1000;
  const LoaderForecast out =
      simulate_loader({.batch = 10, .workers = 4, .pin = false}, cost, kHost, kLoop);
  EXPECT_NEAR(out.samples_per_s, 100, 1) << "one worker's worth";
  EXPECT_NEAR(seconds(out.epoch), 10, 0.2);
  cost.work_units = 400;
  EXPECT_NEAR(
      simulate_loader({.batch = 10, .workers = 4, .pin = false}, cost, kHost, kLoop).samples_per_s,
      400, 8);
}

TEST(Streams, EmptyOnesShowTheNumberOfUnits) {
  SampleCost cost = instant();
  cost.iterable = true;
  cost.streams = {{.workers = {stream_of(1, 600), stream_of(1, 300), stream_of(1, 0)}}};
  EXPECT_EQ(stream_lengths(cost, 3, 900), (std::vector<std::int64_t>{600, 300, 0}));
  EXPECT_EQ(stream_lengths(cost, 6, 900), (std::vector<std::int64_t>{450, 450, 0, 0, 0, 0}));
}

TEST(Streams, ThatRepeatHoldEverySampleOnceAWorker) {
  SampleCost cost = instant();
  cost.iterable = true;
  cost.dataset_samples = 100;
  cost.streams = {{.same = true, .workers = {stream_of(1), stream_of(1)}}};
  const LoaderSettings two{.batch = 10, .workers = 2, .pin = false};
  EXPECT_EQ(epoch_shape(two, cost, 1).samples, 200);
  EXPECT_EQ(simulate_loader(two, cost, kHost, kLoop).batches, 20);
}

TEST(Streams, ASlowBeginningCountsOnce) {
  SampleCost cost = striped(1, 1000);
  cost.streams[0].workers[0] = stream_of(1, 1000);
  cost.streams[0].workers[0].start = cost.streams[0].workers[1].start = 3 * kSecond;
  cost.wait = {1 * kMillisecond};
  cost.dataset_samples = 2000;
  const LoaderForecast out =
      simulate_loader({.batch = 10, .workers = 2, .pin = false}, cost, kHost, kLoop);
  EXPECT_NEAR(seconds(out.first_batch), 3.01, 0.05);
  EXPECT_NEAR(seconds(out.epoch), 4, 0.1);
}

TEST(Start, ADataSetThroughThePipeOneWorkerAfterTheOther) {
  SampleCost cost = instant();
  cost.start.pickled = Bytes(100'000'000);
  cost.start.pickle = 2 * kSecond;
  cost.start.unpickle = 3 * kSecond;
  const LoaderSettings two{
      .batch = 4, .workers = 2, .pin = false, .start_method = StartMethod::kSpawn};
  // Interpreter 1.2 s, pickling, 0.1 s of pipe, unpickling; the second begins when the first is up.
  EXPECT_NEAR(seconds(simulate_loader(two, cost, kHost, kLoop).first_batch), 2 * 6.3, 0.05);
  cost.start.spawn = 4 * kSecond;  // measured as a whole
  EXPECT_NEAR(seconds(simulate_loader(two, cost, kHost, kLoop).first_batch), 8, 0.05);
}

/// Every second block of `block` samples waits.
SampleCost alternating(int block, double wait_ms) {
  SampleCost cost = instant();
  cost.cpu.assign(160, Nanos(1e3));
  for (int i = 0; i < 160; ++i) cost.wait.push_back((i / block % 2) * wait_ms * kMillisecond);
  cost.stretches = {160};
  return cost;
}

TEST(Order, OneWorkerMeetsAllSlowBatches) {
  const LoaderSettings two{.batch = 8, .workers = 2, .pin = false};
  EXPECT_NEAR(simulate_loader(two, alternating(8, 500), kHost, kLoop).samples_per_s, 4, 0.05);
  LoaderSettings three = two;
  three.workers = 3;  // the slow ones go round
  EXPECT_NEAR(simulate_loader(three, alternating(8, 500), kHost, kLoop).samples_per_s, 12, 0.5);
  SampleCost shuffled = alternating(8, 500);
  shuffled.stretches.clear();
  EXPECT_GT(simulate_loader(two, shuffled, kHost, kLoop).samples_per_s, 6);
}

TEST(Order, AnyOrderLetsTheOthersGoOn) {
  const LoaderSettings any{.batch = 8, .workers = 2, .pin = false, .in_order = false};
  EXPECT_NEAR(simulate_loader(any, alternating(8, 500), kHost, kLoop).samples_per_s, 8, 0.4);
}

TEST(Order, StretchesBeginWithWorkerZero) {
  // Five batches each: the stretch is cut to four, so that the next one's slow ones stay worker
  // 1's.
  SampleCost cost = alternating(8, 500);
  cost.stretches = {40, 40, 40, 40};
  const LoaderSettings two{.batch = 8, .workers = 2, .pin = false};
  EXPECT_EQ(loader_model(two, cost, kHost, kLoop).samples.cards(), 128U);
  cost.whole_epoch = true;
  EXPECT_EQ(loader_model(two, cost, kHost, kLoop).samples.cards(), 160U);
}

TEST(Order, TheFirstBatchIsTheFirst) {
  SampleCost cost = alternating(8, 500);
  cost.whole_epoch = true;
  cost.dataset_samples = 160;
  const LoaderSettings one{.batch = 8, .workers = 1, .pin = false};
  const LoaderForecast out = simulate_loader(one, cost, kHost, kLoop);
  EXPECT_LT(seconds(out.first_batch), 0.1);
  EXPECT_NEAR(seconds(out.epoch), 10 * 4, 0.1) << "ten of twenty batches wait";
}

TEST(StopAfter, TheLoopLeavesTheEpoch) {
  SampleCost cost = instant();
  cost.wait = {10 * kMillisecond};
  cost.iterable = true;
  const LoaderForecast out = simulate_loader(
      {.batch = 10, .workers = 1, .pin = false, .stop_after = 7}, cost, kHost, kLoop);
  EXPECT_EQ(out.batches, 7);
  EXPECT_NEAR(seconds(out.epoch - out.shutdown), 0.7, 0.01);
}

}  // namespace
}  // namespace stoker
