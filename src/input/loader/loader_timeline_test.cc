#include "input/loader/loader_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

SampleCost ten_milliseconds() {
  SampleCost cost;
  cost.known = true;
  cost.cpu = {10 * kMillisecond};
  return cost;
}

Seconds sum(const LoaderTimeline& timeline, LoaderSpan::Kind kind) {
  Seconds all;
  for (const LoaderSpan& s : timeline.spans) all += s.kind == kind ? s.to - s.from : 0_s;
  return all;
}

TEST(LoaderTimeline, NobodyDoesTwoThingsAtOnce) {
  LoaderSettings settings;
  settings.batch = 8;
  settings.workers = 3;
  const LoaderTimeline timeline =
      loader_timeline(settings, ten_milliseconds(), {.cores = 4}, {.step = 50 * kMillisecond});
  ASSERT_FALSE(timeline.spans.empty());
  EXPECT_EQ(timeline.workers, 3);
  for (int w = 0; w < 3; ++w) {
    Seconds until;
    int batches = 0;
    for (const LoaderSpan& s : timeline.spans) {
      if (s.kind != LoaderSpan::Kind::kPrepare || s.worker != w) continue;
      EXPECT_GE(s.from, until - 1e-9_s);
      until = s.to;
      ++batches;
    }
    EXPECT_GT(batches, 5);
  }
  Seconds until;
  for (const LoaderSpan& s : timeline.spans) {
    if (s.kind != LoaderSpan::Kind::kStep) continue;
    EXPECT_NEAR((s.to - s.from).count(), 0.05, 1e-9);
    EXPECT_GE(s.from, until - 1e-9_s);
    until = s.to;
  }
}

TEST(LoaderTimeline, ASlowLoaderMakesTheLoopWaitAndAFastOneHardly) {
  LoaderSettings settings;
  settings.batch = 8;
  settings.workers = 4;
  const Consumer step{.step = 100 * kMillisecond};
  const LoaderTimeline fast = loader_timeline(settings, ten_milliseconds(), {.cores = 8}, step);
  const LoaderTimeline slow = loader_timeline(settings, ten_milliseconds(), {.cores = 0.5}, step);
  EXPECT_GT(sum(slow, LoaderSpan::Kind::kWait), sum(slow, LoaderSpan::Kind::kStep) * 0.4);
  EXPECT_LT(sum(fast, LoaderSpan::Kind::kWait), sum(fast, LoaderSpan::Kind::kStep));
}

TEST(LoaderTimeline, AShortEpochEndsAndUnknownDataHasNone) {
  LoaderSettings settings;
  settings.batch = 8;
  settings.workers = 2;
  settings.dataset_samples = 40;
  const LoaderTimeline timeline = loader_timeline(settings, ten_milliseconds(), {.cores = 4}, {});
  const auto made =
      std::count_if(timeline.spans.begin(), timeline.spans.end(),
                    [](const LoaderSpan& s) { return s.kind == LoaderSpan::Kind::kPrepare; });
  EXPECT_EQ(made, 5);
  EXPECT_TRUE(loader_timeline(settings, {}, {.cores = 4}, {}).spans.empty());
}

}  // namespace
}  // namespace stoker
