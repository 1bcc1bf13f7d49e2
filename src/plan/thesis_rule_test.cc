#include "plan/thesis_rule.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// 4 ms a sample for one worker, a step of 1 ms a sample and 20 ms whatever the batch.
ThesisTimes times() {
  return {[](std::int64_t batch) { return 4.0 * kMillisecond * static_cast<double>(batch); },
          [](std::int64_t batch) { return (20.0 + static_cast<double>(batch)) * kMillisecond; }};
}

ThesisLimits limits() {
  return {.dram = Bytes(1'000'000'001),
          .sample = Bytes(1'000'000),
          .largest_batch = 160,
          .gpus = 1,
          .most_workers = 64};
}

/// The rule by trying everything.
std::int64_t largest_by_force(const ThesisLimits& l, const ThesisTimes& t) {
  std::int64_t best = 0;
  for (int w = 1; w <= l.most_workers; ++w) {
    for (std::int64_t b = 1; b <= l.largest_batch; ++b) {
      const bool fits = l.sample.count() * b * w < l.dram.count();
      if (fits && t.load(b).count() <= t.step(b).count() / l.gpus * w) best = std::max(best, b);
    }
  }
  return best;
}

TEST(ThesisRule, AgreesWithTryingEverything) {
  for (const int gpus : {1, 2, 4}) {
    for (const std::int64_t megabytes : {100, 500, 2000, 100'000}) {
      for (const std::int64_t most : {8, 160, 1000}) {
        ThesisLimits l = limits();
        l.gpus = gpus;
        l.dram = Bytes(megabytes * 1'000'000);
        l.largest_batch = most;
        const auto answer = thesis_rule(l, times());
        const std::int64_t force = largest_by_force(l, times());
        EXPECT_EQ(answer ? answer->batch : 0, force) << gpus << " " << megabytes << " " << most;
      }
    }
  }
}

TEST(ThesisRule, SaysWhatHoldsTheBatch) {
  const auto memory = thesis_rule(limits(), times());
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->limit, "GPU memory");
  EXPECT_EQ(memory->batch, 160);
  EXPECT_EQ(memory->workers, 4);  // 640 ms a batch, 180 ms a step
  EXPECT_EQ(memory->memory, Bytes(640'000'000));
  ThesisLimits small = limits();
  small.dram = Bytes(150'000'000);
  const auto dram = thesis_rule(small, times());
  ASSERT_TRUE(dram);
  EXPECT_EQ(dram->limit, "DRAM");
  EXPECT_LT(Bytes(dram->batch * dram->workers * 1'000'000), small.dram);
}

TEST(ThesisRule, HasNoAnswerForALoaderThatCannotKeepUp) {
  ThesisLimits l = limits();
  l.most_workers = 1;
  l.gpus = 8;
  ThesisTimes t = times();
  t.step = [](std::int64_t batch) { return kMillisecond * static_cast<double>(batch); };
  const auto none = thesis_rule(l, t);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kAnswerIsNo);
  EXPECT_NE(none.error().message.find("cannot keep up"), std::string::npos);
}

}  // namespace
}  // namespace stoker
