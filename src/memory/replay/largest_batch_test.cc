#include "memory/replay/largest_batch.h"

#include <gtest/gtest.h>

#include <set>

namespace stoker {
namespace {

/// One activation of `bytes_at(batch)` bytes an iteration, and a context.
LowerAt one_activation(std::function<Bytes(std::int64_t)> bytes_at, Bytes context = Bytes{0}) {
  return [=](std::int64_t batch) -> Result<Program> {
    Program program;
    program.batch = batch;
    program.buffers.push_back(
        {bytes_at(batch), BufferRole::kActivation, Stream::kCompute, false, {}});
    program.iteration = {{InstructionKind::kAllocate, When::kAlways, 0},
                         {InstructionKind::kFree, When::kAlways, 0}};
    program.outside.push_back({"context", context, "test"});
    return program;
  };
}

LowerAt linear(Bytes each, Bytes context = Bytes{0}) {
  return one_activation([each](std::int64_t batch) { return batch * each; }, context);
}

TEST(LargestBatch, IsExactAndTakesTheContextOff) {
  // 100 MiB less 30 MiB for the context, 2 MiB a sample.
  const auto answer = find_largest_batch(linear(2 * kMiB, 30 * kMiB), 100 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 35);
  EXPECT_EQ(answer->first_failing, 36);
  EXPECT_TRUE(answer->holes.empty());
  EXPECT_FALSE(answer->only_by_flushing);
  EXPECT_FALSE(answer->missing);
  EXPECT_EQ(answer->outcome.allocated_peak, 70 * kMiB);
}

TEST(LargestBatch, AHintChangesTheWorkAndNotTheAnswer) {
  const LowerAt lower_at = linear(2 * kMiB);
  const auto plain = find_largest_batch(lower_at, 2000 * kMiB);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->batch, 1000);
  for (const std::int64_t hint : {1, 2, 900, 1000, 1001, 1100, 5000, 1 << 21}) {
    LargestBatchOptions options;
    options.hint = hint;
    const auto hinted = find_largest_batch(lower_at, 2000 * kMiB, options);
    ASSERT_TRUE(hinted);
    EXPECT_EQ(hinted->batch, 1000) << hint;
    EXPECT_EQ(hinted->first_failing, 1001) << hint;
    if (hint == 1000) {
      EXPECT_LT(hinted->simulations, plain->simulations);
    }
  }
}

TEST(LargestBatch, TheLimitEndsTheSearch) {
  LargestBatchOptions options;
  options.limit = 100;
  const auto answer = find_largest_batch(linear(kMiB), 10000 * kMiB, options);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 100);
  EXPECT_FALSE(answer->first_failing);
}

TEST(LargestBatch, WithoutFlushingThePeakOfAnEndlessDeviceCounts) {
  // A small activation and then a large one: the first one's segment can be given back for the
  // second, and is kept as long as nothing forces that.
  const LowerAt lower_at = [](std::int64_t batch) -> Result<Program> {
    Program program;
    program.batch = batch;
    for (const Bytes bytes : {batch * 20 * kMiB, batch * 40 * kMiB})
      program.buffers.push_back({bytes, BufferRole::kActivation, Stream::kCompute, false, {}});
    program.iteration = {{InstructionKind::kAllocate, When::kAlways, 0},
                         {InstructionKind::kFree, When::kAlways, 0},
                         {InstructionKind::kAllocate, When::kAlways, 1},
                         {InstructionKind::kFree, When::kAlways, 1}};
    return program;
  };
  LargestBatchOptions options;
  const auto flushed = find_largest_batch(lower_at, 1200 * kMiB, options);
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->batch, 30);
  EXPECT_TRUE(flushed->only_by_flushing);
  options.flush = CacheFlush::kNever;
  const auto kept = find_largest_batch(lower_at, 1200 * kMiB, options);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->batch, 20);
}

/// Fits up to 40 except at the `bad`, and above 40 only at the `good`.
LowerAt ragged(std::set<std::int64_t> bad, std::set<std::int64_t> good) {
  return one_activation([=](std::int64_t batch) {
    const bool fits = batch <= 40 ? !bad.contains(batch) : good.contains(batch);
    return fits ? 10 * kMiB : 1000 * kMiB;
  });
}

TEST(LargestBatch, AnIslandWithinTheNeighboursIsFound) {
  const auto answer = find_largest_batch(ragged({}, {43}), 100 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 43);
  EXPECT_EQ(answer->first_failing, 44);
  EXPECT_EQ(answer->holes, (std::vector<std::int64_t>{42, 41}));
}

TEST(LargestBatch, IslandsAreFollowedAsFarAsTheyGo) {
  const auto answer = find_largest_batch(ragged({}, {44, 48, 53}), 100 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 48);  // 53 lies five above
}

TEST(LargestBatch, AHoleThatMisleadsTheBisectionIsSteppedOver) {
  const auto answer = find_largest_batch(ragged({36}, {}), 100 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 40);
  EXPECT_EQ(answer->holes, (std::vector<std::int64_t>{36}));
}

TEST(LargestBatch, BatchOneThatDoesNotFitSaysByHowMuch) {
  const auto answer = find_largest_batch(linear(50 * kMiB, 30 * kMiB), 60 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 0);
  EXPECT_EQ(answer->missing, 20 * kMiB);
  EXPECT_EQ(answer->first_failing, 1);
  EXPECT_FALSE(answer->outcome.fits());
}

TEST(LargestBatch, AContextLargerThanTheDeviceFitsNothing) {
  const auto answer = find_largest_batch(linear(Bytes{0}, 30 * kMiB), 20 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 0);
  EXPECT_EQ(answer->missing, 10 * kMiB);
}

TEST(LargestBatch, SaysWhenOnlyFlushingMakesItFit) {
  // Two tensors one after the other; the second is a little larger, so that both segments stay
  // cached.
  const LowerAt lower_at = [](std::int64_t batch) -> Result<Program> {
    Program program;
    program.buffers = {
        {batch * 2 * kMiB, BufferRole::kActivation, Stream::kCompute, false, {}},
        {batch * 2 * kMiB + 2 * kMiB, BufferRole::kActivation, Stream::kCompute, false, {}}};
    for (const std::uint32_t id : {0u, 1u}) {
      program.iteration.push_back({InstructionKind::kAllocate, When::kAlways, id});
      program.iteration.push_back({InstructionKind::kFree, When::kAlways, id});
    }
    return program;
  };
  const auto answer = find_largest_batch(lower_at, 100 * kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch, 49);
  EXPECT_TRUE(answer->only_by_flushing);
}

TEST(LargestBatch, TheBatchAloneIsTheSameWithFewerSimulations) {
  LargestBatchOptions alone;
  alone.detail = LargestBatchDetail::kBatch;
  for (const LowerAt& lower_at : {linear(2 * kMiB, 30 * kMiB), ragged({36}, {43, 44})}) {
    const auto described = find_largest_batch(lower_at, 100 * kMiB);
    const auto batch = find_largest_batch(lower_at, 100 * kMiB, alone);
    ASSERT_TRUE(described && batch);
    EXPECT_EQ(batch->batch, described->batch);
    EXPECT_EQ(batch->first_failing, described->first_failing);
    EXPECT_LT(batch->simulations, described->simulations);
    EXPECT_EQ(batch->outcome.allocated_peak, Bytes{0});
  }
  const auto none = find_largest_batch(linear(50 * kMiB, 30 * kMiB), 60 * kMiB, alone);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->batch, 0);
  EXPECT_EQ(none->missing, 20 * kMiB);
  EXPECT_FALSE(none->outcome.fits());
}

TEST(LargestBatch, WhereSizesEndTheSearchEnds) {
  const LowerAt linear_at = linear(kMiB);
  const LowerAt lower_at = [&](std::int64_t batch) -> Result<Program> {
    if (batch > 70) return fail(ErrorCode::kBadInput, "a queue of 70 less the batch");
    return linear_at(batch);
  };
  for (const std::int64_t hint : {0, 200}) {
    LargestBatchOptions options;
    options.hint = hint;
    const auto answer = find_largest_batch(lower_at, 10000 * kMiB, options);
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_EQ(answer->batch, 70);
  }
}

TEST(LargestBatch, AnErrorOfTheLoweringIsPassedOn) {
  const LowerAt broken = [](std::int64_t batch) -> Result<Program> {
    if (batch > 4) return fail(ErrorCode::kUnsupported, "no such kernel");
    return Program{};
  };
  const auto answer = find_largest_batch(broken, 100 * kMiB);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no such kernel");
}

}  // namespace
}  // namespace stoker
