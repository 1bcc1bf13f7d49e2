#include "memory/glibc/heap.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "memory/replay/replay.h"
#include "memory/replay/test_program.h"

namespace stoker {
namespace {

constexpr Bytes kPage{4096};

BlockId taken(Heap& heap, Bytes bytes) {
  const auto block = heap.allocate(bytes);
  EXPECT_TRUE(block);
  return block.value_or(BlockId{});
}

TEST(Heap, LargeTensorsHaveMappingsOfTheirOwnUntilOneIsFreed) {
  Heap heap;
  const Bytes tensor = kMiB * 8;
  const BlockId first = taken(heap, tensor);
  EXPECT_EQ(heap.stats().reserved, tensor + kPage);  // the header takes a page more
  heap.free(first);
  EXPECT_EQ(heap.stats().reserved, Bytes(0));
  EXPECT_GT(heap.mmap_threshold(), tensor);  // the next one comes from the heap ...
  const BlockId second = taken(heap, tensor);
  heap.free(second);
  EXPECT_GT(heap.stats().reserved, Bytes(0));  // ... which keeps up to twice as much at its top
  const Bytes fresh = heap.fresh();
  heap.free(taken(heap, tensor));
  EXPECT_EQ(heap.fresh(), fresh);  // so the third one has no page fault
}

TEST(Heap, AboveTheLargestThresholdEachUseIsFresh) {
  Heap heap;
  const Bytes tensor = kMiB * 40;
  for (int i = 1; i <= 3; ++i) {
    heap.free(taken(heap, tensor));
    EXPECT_EQ(heap.stats().reserved, Bytes(0));
    EXPECT_GE(heap.fresh(), tensor * i);
  }
}

TEST(Heap, TheTopIsGivenBackOnceItIsTwiceTheThreshold) {
  Heap heap;
  heap.free(taken(heap, kMiB * 4));  // the threshold is 4 MiB now, the top's limit 8
  std::vector<BlockId> tensors;
  for (int i = 0; i < 4; ++i) tensors.push_back(taken(heap, kMiB * 3));
  for (int i = 3; i >= 2; --i) heap.free(tensors[static_cast<std::size_t>(i)]);
  EXPECT_GT(heap.stats().reserved, kMiB * 12);  // 6 MiB at the top: kept
  heap.free(tensors[1]);
  EXPECT_LT(heap.stats().reserved, kMiB * 4);  // 9 MiB: given back but for a little
}

TEST(Heap, AHoleBelowALivingTensorStaysResident) {
  Heap heap;
  heap.free(taken(heap, kMiB * 4));
  const BlockId below = taken(heap, kMiB * 3);
  const BlockId above = taken(heap, kMiB);
  heap.free(below);
  EXPECT_GT(heap.stats().reserved, kMiB * 4 - kPage);
  const Bytes fresh = heap.fresh();
  const BlockId small = taken(heap, kMiB * 2);  // best fit: in the hole
  EXPECT_EQ(heap.fresh(), fresh);
  heap.free(small);
  heap.free(above);
}

TEST(Heap, TheCapacityIsOfResidentBytes) {
  Heap heap({}, {kMiB * 10, kMiB * 16});
  const BlockId first = taken(heap, kMiB * 6);
  const auto second = heap.allocate(kMiB * 6);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().total, kMiB * 16);
  heap.free(first);
}

TEST(Heap, KeptFragmentsKeepHolesFromTheirOldTensors) {
  const auto resident_after = [](double kept) {
    Heap heap({.kept_fragments = kept});
    for (int round = 0; round < 20; ++round) {
      std::vector<BlockId> tensors;
      for (int i = 0; i < 50; ++i) tensors.push_back(taken(heap, kKiB * 100));
      for (const BlockId tensor : tensors) heap.free(tensor);
      if (round == 0) heap.free(taken(heap, kMiB * 30));  // nothing is trimmed from now on
    }
    return heap.stats().reserved_peak;
  };
  EXPECT_GT(resident_after(1.0 / 30), resident_after(0) + kMiB);
  EXPECT_GT(resident_after(1.0), 2 * resident_after(1.0 / 30));
  EXPECT_EQ(resident_after(1.0 / 30), resident_after(1.0 / 30));  // the same in every run
}

TEST(Heap, BooksBalanceWhateverTheOrder) {
  std::mt19937 random(7);
  Heap heap;
  std::vector<BlockId> living;
  for (int i = 0; i < 20000; ++i) {
    if (living.empty() || random() % 5 < 3) {
      living.push_back(taken(
          heap, Bytes(1 + static_cast<std::int64_t>(random() % (1U << (10 + random() % 14))))));
    } else {
      std::swap(living[random() % living.size()], living.back());
      heap.free(living.back());
      living.pop_back();
    }
    ASSERT_GE(heap.stats().reserved + kPage * 2 * heap.stats().allocations, heap.stats().requested);
    ASSERT_LE(heap.stats().requested, heap.stats().allocated);
  }
  for (const BlockId block : living) heap.free(block);
  EXPECT_EQ(heap.stats().requested, Bytes(0));
  EXPECT_EQ(heap.stats().allocated, Bytes(0));
  EXPECT_EQ(heap.stats().allocations, 0);
}

TEST(HeapReplay, SaysWhatEachIterationGetsAnew) {
  testing_support::ProgramBuilder b;
  const auto weight = b.buffer(kMiB * 4, BufferRole::kParameter);
  const auto mapped = b.buffer(kMiB * 64, BufferRole::kActivation);
  const auto kept = b.buffer(kMiB * 20, BufferRole::kGradient);
  b.setup(weight);
  b.allocate(mapped);
  b.launch(StepPhase::kForward);
  b.allocate(kept, When::kFirst);
  b.free(mapped);
  ReplayOptions options;
  options.heap = HeapRules{};
  const MemoryOutcome outcome = replay(b.program, options);
  ASSERT_TRUE(outcome.fits());
  ASSERT_EQ(outcome.iterations.size(), 3U);
  EXPECT_GT(outcome.iterations[0].fresh, kMiB * 84);
  EXPECT_EQ(outcome.iterations[2].fresh, kMiB * 64 + kPage);  // only the mapping comes anew
  EXPECT_GT(outcome.reserved_peak, kMiB * 88);
  EXPECT_EQ(
      outcome.live.by_role[static_cast<std::size_t>(BufferRole::kParameter)].count() / kMiB.count(),
      4);
  options.capacity = kMiB * 80;
  const MemoryOutcome limited = replay(b.program, options);
  ASSERT_FALSE(limited.fits());
  EXPECT_EQ(limited.failure->role, BufferRole::kGradient);
}

}  // namespace
}  // namespace stoker
