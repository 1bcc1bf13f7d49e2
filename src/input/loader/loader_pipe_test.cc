// Objects that workers pickle: who waits for whom on their way through the pipe.
#include <gtest/gtest.h>

#include "input/loader/loader_model.h"
#include "input/loader/loader_simulation.h"

namespace stoker {
namespace {

const HostShare kManyCores{.cores = 32};
const Consumer kNothing{.consumption = Consumption::kBlocking};

/// Batches of one sample: what making, pickling, moving and unpickling it takes, ms.
SampleCost objects(double cpu_ms, double pickle_ms, double pipe_ms, double unpickle_ms) {
  SampleCost cost = sample_cost_given(cpu_ms * kMillisecond, {Bytes(0), 0}, {});
  cost.transport = {};
  cost.batches = {{.batch = 1,
                   .samples = 1,
                   .bytes = Bytes(0),
                   .tensors = 0,
                   .collate_shared = {},
                   .collate_private = {},
                   .pickled = Bytes(1'000'000),
                   .pickle = pickle_ms * kMillisecond,
                   .unpickle = unpickle_ms * kMillisecond,
                   .pipe = pipe_ms * kMillisecond}};
  return cost;
}

double interval_ms(const SampleCost& cost, int workers, bool pin = false) {
  return milliseconds(
      simulate_loader({.batch = 1, .workers = workers, .pin = pin}, cost, kManyCores, kNothing)
          .interval);
}

TEST(Objects, TheFeederThreadPicklesBesideTheNextSamples) {
  EXPECT_NEAR(interval_ms(objects(10, 6, 1, 0), 1), 10, 0.01);
  EXPECT_NEAR(interval_ms(objects(3, 6, 1, 0), 1), 7, 0.01) << "one parcel after the other";
}

TEST(Objects, PicklingKeepsTheLockFromSamplesInPython) {
  SampleCost cost = objects(20, 6, 1, 0);
  cost.lock_wait = 5.0 * kMillisecond;  // the switch interval: pure Python
  EXPECT_NEAR(interval_ms(cost, 1), 26, 0.01);
  // A worker that sleeps for its samples needs no lock.
  cost.wait = {20.0 * kMillisecond};
  cost.cpu = {Nanos(1)};
  EXPECT_NEAR(interval_ms(cost, 1), 20, 0.01);
}

TEST(Objects, OneReceiverReadsOneParcelAfterTheOther) {
  const SampleCost cost = objects(1, 1, 4, 2);
  EXPECT_NEAR(interval_ms(cost, 4), 6, 0.01);
  EXPECT_NEAR(interval_ms(cost, 8), 6, 0.01);
  EXPECT_NEAR(interval_ms(cost, 4, true), 6, 0.01) << "likewise the pin thread";
  const LoaderForecast out =
      simulate_loader({.batch = 1, .workers = 4, .pin = false}, cost, kManyCores, kNothing);
  EXPECT_EQ(out.limit, InputLimit::kMainThread);
}

TEST(Objects, AStepHoldsTheWriterUp) {
  // The receiver comes back after 10 ms and then reads for 4 ms: nothing of it lies beside the
  // step.
  const Consumer step{.step = 10.0 * kMillisecond, .consumption = Consumption::kBlocking};
  const LoaderForecast out = simulate_loader({.batch = 1, .workers = 2, .pin = false},
                                             objects(1, 1, 4, 2), kManyCores, step);
  EXPECT_NEAR(milliseconds(out.interval), 16, 0.01);
}

TEST(Objects, WhatFitsIntoThePipeWaitsForNobody) {
  SampleCost cost = objects(1, 1, 4, 2);
  cost.batches[0].pickled = Bytes(65'536);
  EXPECT_FALSE(
      loader_model({.batch = 1, .workers = 1}, cost, kManyCores, kNothing).sends_objects());
  cost.batches[0].pickled = Bytes(65'537);
  EXPECT_TRUE(loader_model({.batch = 1, .workers = 1}, cost, kManyCores, kNothing).sends_objects());
}

TEST(Objects, AnyOrderAndStreamsThatEndComeThrough) {
  SampleCost cost = objects(1, 1, 2, 1);
  cost.iterable = true;
  cost.dataset_samples = 101;
  for (const bool in_order : {true, false}) {
    const LoaderForecast out = simulate_loader(
        {.batch = 1, .workers = 3, .pin = false, .in_order = in_order}, cost, kManyCores, kNothing);
    EXPECT_EQ(out.batches, 101);
    EXPECT_NEAR(milliseconds(out.epoch), 101 * 3, 6);
  }
}

}  // namespace
}  // namespace stoker
