#include "plan/loader_search.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kPicture = 3 * 224 * 224 * 4;

LoaderCase case_of(double sample_ms, double step_ms, double cores) {
  LoaderCase c;
  c.settings = {.batch = 32, .pin = false, .persistent = true};
  c.sample = sample_cost_given(sample_ms * kMillisecond, {Bytes(kPicture), 2}, {});
  c.host = {.cores = cores};
  c.consumer = {.step = step_ms * kMillisecond};
  return c;
}

/// The best value of every setting that a user could try.
double exhaustive(const LoaderCase& c, bool in_order) {
  double best = 0;
  for (int workers = 0; workers <= 16; ++workers) {
    for (const int prefetch : {1, 2, 3, 4, 8}) {
      LoaderSettings s = c.settings;
      s.workers = workers;
      s.prefetch = prefetch;
      s.in_order = in_order;
      best = std::max(best, simulate_loader(s, c.sample, c.host, c.consumer).samples_per_s);
    }
  }
  return best;
}

TEST(LoaderSearch, WithinThreePercentOfExhaustiveSearch) {
  for (const double sample : {0.05, 1.0, 4.0, 20.0}) {
    for (const double step : {0.0, 20.0, 100.0, 500.0}) {
      for (const double cores : {0.5, 1.0, 2.0, 8.0}) {
        const LoaderCase c = case_of(sample, step, cores);
        const auto found = search_loader(c, {}, {});
        ASSERT_TRUE(found.best);
        EXPECT_GE(found.best->forecast.samples_per_s, 0.97 * exhaustive(c, true))
            << sample << " ms, step " << step << " ms, " << cores << " cores";
      }
    }
  }
}

TEST(LoaderSearch, NoMoreWorkersThanNeeded) {
  // 32 x 4 ms = 128 ms a batch before a step of 100 ms: two workers keep up, also if samples cost
  // an eighth more; a third brings nothing.
  const auto found = search_loader(case_of(4, 100, 8), {}, {});
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->settings.workers, 2);
  EXPECT_EQ(found.best->settings.prefetch, 2);
  EXPECT_TRUE(found.best->settings.in_order);
}

TEST(LoaderSearch, LeavesRoomForSamplesThatCostMore) {
  // One worker needs 96 ms of the step's 100; with an eighth more it would not keep up.
  LoaderCase c = case_of(3, 100, 8);
  c.consumer.consumption = Consumption::kBlocking;
  const auto careful = search_loader(c, {}, {});
  ASSERT_TRUE(careful.best);
  EXPECT_EQ(careful.best->settings.workers, 2);
  c.sample.band = {};  // were the cost known exactly
  const auto certain = search_loader(c, {}, {});
  ASSERT_TRUE(certain.best);
  EXPECT_EQ(certain.best->settings.workers, 1);
}

TEST(LoaderSearch, RespectsWhatIsFixed) {
  LoaderFreedom freedom;
  freedom.workers = 3;
  freedom.prefetch = 7;
  const auto found = search_loader(case_of(4, 100, 8), freedom, {});
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->settings.workers, 3);
  EXPECT_EQ(found.best->settings.prefetch, 7);
  EXPECT_EQ(found.considered, 1);
}

TEST(LoaderSearch, StaysWithinSharedMemory) {
  Host room;
  room.shared_memory = 64 * kMiB;  // one worker, two batches of 19 MB ahead
  const auto found = search_loader(case_of(4, 5, 8), {}, room);
  ASSERT_TRUE(found.best);
  EXPECT_LE(found.best->forecast.shared_memory, room.shared_memory);
  EXPECT_FALSE(found.shortage.empty());
  EXPECT_GT(found.beyond_room.forecast.samples_per_s, found.best->forecast.samples_per_s);
}

TEST(LoaderSearch, GivesUpTheOrderOnlyWhereItPays) {
  LoaderCase c = case_of(4, 0, 8);
  c.settings.batch = 1;
  c.sample.cpu.assign(20, 4 * kMillisecond);
  EXPECT_TRUE(search_loader(c, {}, {}).best->settings.in_order);
  c.sample.cpu[5] = 400 * kMillisecond;
  EXPECT_FALSE(search_loader(c, {}, {}).best->settings.in_order);
  LoaderFreedom freedom;
  freedom.in_order = true;
  EXPECT_TRUE(search_loader(c, freedom, {}).best->settings.in_order);
}

TEST(LoaderSearch, KeepsTheBatchWhereNoOtherIsFaster) {
  LoaderFreedom freedom;
  freedom.batches = batches_around(32);
  EXPECT_EQ(search_loader(case_of(4, 100, 8), freedom, {}).best->settings.batch, 32);
  // A cost a batch of 50 ms in the training process: larger batches share it among more samples.
  LoaderCase c = case_of(1, 5, 8);
  c.sample.transport.per_batch_main = 50 * kMillisecond;
  EXPECT_EQ(search_loader(c, freedom, {}).best->settings.batch, 128);
}

TEST(LoaderSearch, CountsTheStartOfAnEpoch) {
  LoaderCase c = case_of(4, 100, 8);
  c.settings.dataset_samples = 3200;
  const LoaderForecast f = simulate_loader(c.settings, c.sample, c.host, c.consumer);
  EXPECT_LT(value_of(LoaderValue::kEpoch, f), value_of(LoaderValue::kSteadyRate, f));
  EXPECT_NEAR(value_of(LoaderValue::kEpoch, f), 3200 / seconds(f.epoch), 1e-6);
}

TEST(LoaderSearch, TriesMoreWorkersWhereSamplesWait) {
  LoaderCase c = case_of(1, 5, 2);
  const auto busy = search_loader(c, {}, {});
  c.sample.wait.assign(1, 20 * kMillisecond);
  EXPECT_GT(search_loader(c, {}, {}).considered, 2 * busy.considered);
}

}  // namespace
}  // namespace stoker
