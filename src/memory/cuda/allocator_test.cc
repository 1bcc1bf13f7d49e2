#include "memory/cuda/allocator.h"

#include <gtest/gtest.h>

#include "memory/cuda/allocator_invariants.h"

namespace stoker {
namespace {

// Worked by hand from the constants and rules of PyTorch's CUDACachingAllocator
// (docs/models/memory.md).

constexpr Bytes kHalf{512};

DeviceMemory device_of(Bytes capacity) { return {capacity, {}}; }

class Allocator : public testing::Test {
 protected:
  BlockId take(Bytes bytes, Stream stream = Stream::kCompute) {
    const auto block = allocator.allocate(bytes, stream);
    EXPECT_TRUE(block.has_value());
    return *block;
  }
  Bytes offset(BlockId block, BlockId from) {
    return allocator.address_of(block) - allocator.address_of(from);
  }

  CachingAllocator allocator;
};

TEST_F(Allocator, TheSmallestRequestTakes512BytesOfATwoMebibyteSegment) {
  const BlockId block = take(Bytes{1});
  EXPECT_EQ(allocator.size_of(block), kHalf);
  EXPECT_EQ(allocator.stats().allocated, kHalf);
  EXPECT_EQ(allocator.stats().requested, Bytes{1});
  EXPECT_EQ(allocator.stats().reserved, 2 * kMiB);
}

TEST_F(Allocator, OneMebibyteIsSmallAndOneBlockMoreIsLarge) {
  take(kMiB);
  EXPECT_EQ(allocator.stats().reserved, 2 * kMiB);
  const BlockId large = take(kMiB + kHalf);
  EXPECT_EQ(allocator.stats().reserved, 22 * kMiB);
  EXPECT_EQ(allocator.size_of(large), kMiB + kHalf);
}

TEST_F(Allocator, RequestsOfTenMebibytesGetTheirOwnSegmentRoundedToTwo) {
  take(10 * kMiB - kHalf);
  EXPECT_EQ(allocator.stats().reserved, 20 * kMiB);
  take(10 * kMiB);  // 10 MiB + 512 are left of the first segment: taken whole, no second one
  EXPECT_EQ(allocator.stats().reserved, 20 * kMiB);
  take(10 * kMiB);
  EXPECT_EQ(allocator.stats().reserved, 30 * kMiB);
  take(11 * kMiB);
  EXPECT_EQ(allocator.stats().reserved, 42 * kMiB);
}

TEST_F(Allocator, SlackOfExactlyOneMebibyteIsNotSplitOff) {
  const BlockId exact = take(29 * kMiB);  // segment of 30 MiB
  EXPECT_EQ(allocator.size_of(exact), 30 * kMiB);
  EXPECT_EQ(allocator.stats().allocated, 30 * kMiB);
  EXPECT_EQ(allocator.stats().requested, 29 * kMiB);
  allocator.free(exact);
  const BlockId less = take(29 * kMiB - kHalf);
  EXPECT_EQ(allocator.size_of(less), 29 * kMiB - kHalf);
  EXPECT_EQ(allocator.stats().reserved, 30 * kMiB);
}

TEST_F(Allocator, TheSmallPoolSplitsDownTo512Bytes) {
  const BlockId first = take(kMiB);
  const BlockId second = take(kMiB - kHalf);
  const BlockId third = take(kHalf);
  EXPECT_EQ(allocator.stats().reserved, 2 * kMiB);
  EXPECT_EQ(offset(second, first), kMiB);
  EXPECT_EQ(offset(third, first), 2 * kMiB - kHalf);
  take(kHalf);
  EXPECT_EQ(allocator.stats().reserved, 4 * kMiB);
}

TEST_F(Allocator, TheSmallestBlockThatFitsWinsAndTheLowestAddressAmongEquals) {
  const BlockId a = take(30 * kMiB), b = take(20 * kMiB), c = take(20 * kMiB);
  const Bytes low = allocator.address_of(b);
  for (const BlockId id : {c, b, a}) allocator.free(id);
  EXPECT_EQ(allocator.address_of(take(18 * kMiB)), low);
}

TEST_F(Allocator, FreedNeighboursMergeOnBothSides) {
  const BlockId a = take(4 * kMiB), b = take(4 * kMiB), c = take(4 * kMiB);
  const Bytes start = allocator.address_of(a);
  allocator.free(a);
  allocator.free(c);  // joins the 8 MiB behind it
  allocator.free(b);  // joins everything
  ASSERT_EQ(allocator.segments().size(), 1u);
  EXPECT_EQ(allocator.segments()[0].blocks.size(), 1u);
  EXPECT_EQ(allocator.address_of(take(19 * kMiB + kHalf)), start);
  EXPECT_EQ(allocator.stats().reserved, 20 * kMiB);
}

TEST_F(Allocator, BlocksOfAnotherStreamAreNotReused) {
  allocator.free(take(20 * kMiB, Stream::kCopy));
  take(20 * kMiB);
  EXPECT_EQ(allocator.stats().reserved, 40 * kMiB);
  take(20 * kMiB, Stream::kCopy);
  EXPECT_EQ(allocator.stats().reserved, 40 * kMiB);
}

TEST_F(Allocator, PeaksStayUntilTheyAreReset) {
  allocator.free(take(20 * kMiB));
  EXPECT_EQ(allocator.stats().allocated_peak, 20 * kMiB);
  EXPECT_EQ(allocator.stats().allocated, Bytes{0});
  allocator.reset_peaks();
  EXPECT_EQ(allocator.stats().allocated_peak, Bytes{0});
  EXPECT_EQ(allocator.stats().reserved_peak, 20 * kMiB);
}

TEST_F(Allocator, FreeingTwiceOrAskingForNothingAborts) {
  const BlockId block = take(kMiB);
  allocator.free(block);
  EXPECT_DEATH(allocator.free(block), "not in use");
  EXPECT_DEATH(allocator.free(BlockId{77}), "not in use");
  EXPECT_DEATH((void)allocator.allocate(Bytes{0}, Stream::kCompute), "no bytes");
}

TEST(AllocatorRetry, WholeCachedSegmentsAreGivenBackAndSplitOnesStay) {
  CachingAllocator allocator({}, device_of(60 * kMiB));
  const BlockId whole = *allocator.allocate(20 * kMiB, Stream::kCompute);
  const BlockId part =
      *allocator.allocate(8 * kMiB, Stream::kCompute);  // 12 MiB of its segment are idle
  allocator.free(whole);
  const auto large = allocator.allocate(40 * kMiB, Stream::kCompute);
  ASSERT_TRUE(large);
  EXPECT_EQ(allocator.stats().retries, 1);
  EXPECT_EQ(allocator.stats().reserved, 60 * kMiB);
  EXPECT_EQ(allocator.stats().reserved_peak, 60 * kMiB);
  allocator.free(*large);
  allocator.free(part);
  EXPECT_EQ(broken_invariant(allocator, 60 << 20), "");
}

TEST(AllocatorRetry, TheErrorCarriesPyTorchsNumbers) {
  CachingAllocator allocator({}, {40 * kMiB, 48 * kMiB});
  ASSERT_TRUE(allocator.allocate(24 * kMiB, Stream::kCompute));
  const auto failed = allocator.allocate(2 * kMiB, Stream::kCompute);
  ASSERT_FALSE(failed);
  const OutOfMemory& error = failed.error();
  EXPECT_EQ(error.tried, 20 * kMiB);  // the segment, not the request
  EXPECT_EQ(error.requested, 2 * kMiB);
  EXPECT_EQ(error.total, 48 * kMiB);
  EXPECT_EQ(error.free, 16 * kMiB);
  EXPECT_EQ(error.allocated, 24 * kMiB);
  EXPECT_EQ(error.reserved_unallocated, Bytes{0});
  EXPECT_FALSE(error.allowed);
  EXPECT_EQ(
      error.text(),
      "tried to allocate 20.00 MiB (for 2.00 MiB) with 16.00 MiB free of 48.00 MiB; 24.00 MiB "
      "allocated by PyTorch, 0 bytes reserved by PyTorch but unallocated");
  EXPECT_EQ(allocator.stats().out_of_memory, 1);
  EXPECT_TRUE(allocator.allocate(kMiB, Stream::kCompute));  // the small pool still finds room
}

TEST(AllocatorRetry, AnAbsurdRequestFailsWithoutOverflow) {
  CachingAllocator allocator;
  const auto failed =
      allocator.allocate(Bytes{std::numeric_limits<std::int64_t>::max()}, Stream::kCompute);
  ASSERT_FALSE(failed);
  EXPECT_EQ(allocator.stats().reserved, Bytes{0});
}

TEST(AllocatorFraction, LimitsByTheTotalAndSaysSo) {
  AllocatorConfig config;
  config.memory_fraction = 0.5;
  CachingAllocator allocator(config, {70 * kMiB, 80 * kMiB});
  ASSERT_TRUE(allocator.allocate(30 * kMiB, Stream::kCompute));
  const auto failed = allocator.allocate(11 * kMiB, Stream::kCompute);  // 30 + 12 > 40
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().allowed, 40 * kMiB);
  EXPECT_EQ(failed.error().free, 40 * kMiB);
  EXPECT_TRUE(allocator.allocate(10 * kMiB, Stream::kCompute));
}

TEST(AllocatorGarbage, OldSegmentsGoBeforeTheDeviceIsAsked) {
  AllocatorConfig config;
  config.memory_fraction = 1.0;
  config.garbage_collection_threshold = 0.5;
  CachingAllocator allocator(config, device_of(100 * kMiB));
  const BlockId old = *allocator.allocate(20 * kMiB, Stream::kCompute);
  const BlockId young = *allocator.allocate(40 * kMiB, Stream::kCompute);
  allocator.free(old);
  for (int i = 0; i < 10; ++i) allocator.free(*allocator.allocate(20 * kMiB, Stream::kCompute));
  EXPECT_EQ(allocator.stats().device_frees, 0);
  allocator.free(young);
  // 60 MiB are 10 above the threshold. Both segments were cached one search ago: of average age,
  // both go.
  ASSERT_TRUE(allocator.allocate(44 * kMiB, Stream::kCompute));
  EXPECT_EQ(allocator.stats().device_frees, 2);
  EXPECT_EQ(allocator.stats().reserved, 44 * kMiB);
  EXPECT_EQ(allocator.stats().retries, 0);
}

TEST(AllocatorGarbage, YoungSegmentsStayOnceTheExcessIsGone) {
  AllocatorConfig config;
  config.memory_fraction = 1.0;
  config.garbage_collection_threshold = 0.325;  // 65 MiB
  CachingAllocator allocator(config, device_of(200 * kMiB));
  const BlockId old = *allocator.allocate(20 * kMiB, Stream::kCompute);
  const BlockId young = *allocator.allocate(40 * kMiB, Stream::kCompute);
  allocator.free(old);
  allocator.free(*allocator.allocate(2 * kMiB, Stream::kCopy));  // a search, and 80 MiB reserved
  allocator.free(young);
  // Ages 2, 1 and 1, on average 4/3: only the oldest goes, and its 20 MiB cover the excess of 15.
  ASSERT_TRUE(allocator.allocate(60 * kMiB, Stream::kCompute));
  EXPECT_EQ(allocator.stats().device_frees, 1);
  EXPECT_EQ(allocator.stats().reserved, 120 * kMiB);
}

TEST(AllocatorMaxSplit, OversizeBlocksServeOnlyRequestsNearTheirSize) {
  CachingAllocator allocator(parse_allocator_config("max_split_size_mb:32").value(), {});
  const BlockId large = *allocator.allocate(64 * kMiB, Stream::kCompute);
  allocator.free(large);
  (void)*allocator.allocate(16 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.stats().reserved,
            80 * kMiB);  // below the limit: may not take the 64 MiB block
  (void)*allocator.allocate(44 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.stats().reserved, 124 * kMiB);  // 20 MiB less than the block: too wasteful
  const BlockId near = *allocator.allocate(44 * kMiB + kHalf, Stream::kCompute);
  EXPECT_EQ(allocator.stats().reserved, 124 * kMiB);
  EXPECT_EQ(allocator.size_of(near), 64 * kMiB);  // whole: never split
}

TEST(AllocatorExpandable, OneRangeGrowsInPagesAndGivesThemBack) {
  CachingAllocator allocator(parse_allocator_config("expandable_segments:True").value(),
                             device_of(100 * kMiB));
  const BlockId a = *allocator.allocate(30 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.stats().reserved, 40 * kMiB);  // two pages of 20 MiB
  const BlockId b = *allocator.allocate(25 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.address_of(b) - allocator.address_of(a), 30 * kMiB);
  EXPECT_EQ(allocator.size_of(b), 25 * kMiB);
  EXPECT_EQ(allocator.stats().reserved, 60 * kMiB);
  allocator.free(a);
  allocator
      .empty_cache();  // of 30 MiB one whole page; the 5 MiB at the end lie inside the last page
  EXPECT_EQ(allocator.stats().reserved, 40 * kMiB);
  EXPECT_EQ(broken_invariant(allocator, 100 << 20), "");
  const BlockId again = *allocator.allocate(30 * kMiB, Stream::kCompute);  // fills the hole
  EXPECT_EQ(allocator.stats().reserved, 60 * kMiB);
  EXPECT_LT(allocator.address_of(again), allocator.address_of(b));
  allocator.free(again);
  allocator.free(b);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, Bytes{0});
  EXPECT_TRUE(allocator.segments().empty());
}

TEST(AllocatorExpandable, SmallRequestsMapTwoMebibytePages) {
  CachingAllocator allocator(parse_allocator_config("expandable_segments:True").value(),
                             device_of(100 * kMiB));
  (void)*allocator.allocate(kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.stats().reserved, 2 * kMiB);
  (void)*allocator.allocate(kMiB, Stream::kCompute);
  (void)*allocator.allocate(kHalf, Stream::kCompute);
  EXPECT_EQ(allocator.stats().reserved, 4 * kMiB);
}

// Streams beyond a Program's, private pools, frees that wait for another stream.

TEST(Lanes, ABlockReturnsToItsOwn) {
  CachingAllocator allocator;
  const Lane stream = allocator.add_lane(), pool = allocator.add_lane(7);
  const BlockId a = *allocator.allocate(20 * kMiB, stream);
  const BlockId b = *allocator.allocate(20 * kMiB, pool);
  const Bytes address = allocator.address_of(a);
  allocator.free(a);
  allocator.free(b);
  EXPECT_EQ(allocator.stats().segments, 2);
  EXPECT_EQ(allocator.address_of(*allocator.allocate(20 * kMiB, stream)), address);
  (void)*allocator.allocate(20 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.stats().segments, 3);
}

TEST(Lanes, APrivatePoolGivesNothingBack) {
  CachingAllocator allocator;
  const Lane pool = allocator.add_lane(1);
  allocator.free(*allocator.allocate(20 * kMiB, pool));
  allocator.free(*allocator.allocate(30 * kMiB, Stream::kCompute));
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 20 * kMiB);
}

TEST(Lanes, AnUnknownOneIsNoLane) {
  CachingAllocator allocator;
  EXPECT_DEATH((void)allocator.allocate(kMiB, Lane{40}), "never added");
}

TEST(DeferredFree, TheBlockStopsCountingAndComesBackLater) {
  CachingAllocator allocator;
  const BlockId block = *allocator.allocate(20 * kMiB, Stream::kCompute);
  allocator.begin_free(block);
  EXPECT_EQ(allocator.stats().allocated, Bytes{});
  EXPECT_EQ(allocator.stats().requested, 20 * kMiB);
  EXPECT_TRUE(allocator.segments()[0].blocks[0].pending);
  (void)*allocator.allocate(20 * kMiB, Stream::kCompute);  // cannot have it yet
  EXPECT_EQ(allocator.stats().segments, 2);
  EXPECT_EQ(allocator.pending_frees(), 1u);
  allocator.finish_free(block);
  EXPECT_EQ(allocator.stats().requested, 20 * kMiB);
  EXPECT_EQ(allocator.pending_frees(), 0u);
  (void)*allocator.allocate(20 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.stats().segments, 2);
  EXPECT_DEATH(allocator.begin_free(BlockId{99}), "not in use");
  EXPECT_DEATH(allocator.finish_free(block), "not begun");
}

TEST(DeferredFree, GivingTheCacheBackWaitsForIt) {
  CachingAllocator allocator({}, {50 * kMiB, {}});
  allocator.begin_free(*allocator.allocate(40 * kMiB, Stream::kCompute));
  EXPECT_TRUE(allocator.allocate(30 * kMiB, Stream::kCompute));
  EXPECT_EQ(allocator.stats().retries, 1);
  EXPECT_EQ(allocator.pending_frees(), 0u);
  EXPECT_EQ(allocator.stats().reserved, 30 * kMiB);
}

TEST(DeferredFree, ANeighbourDoesNotSwallowIt) {
  CachingAllocator allocator;
  const BlockId a = *allocator.allocate(Bytes{512}, Stream::kCompute);
  const BlockId b = *allocator.allocate(Bytes{512}, Stream::kCompute);
  (void)*allocator.allocate(Bytes{512}, Stream::kCompute);
  allocator.begin_free(a);
  allocator.free(b);
  EXPECT_EQ(allocator.segments()[0].blocks.size(), 4u);
  allocator.finish_free(a);
  EXPECT_EQ(allocator.segments()[0].blocks.size(), 3u);
}

// What a replay of a real allocator needs.

TEST(DeviceEvents, SegmentsAndPagesInOrder) {
  using Kind = DeviceEvent::Kind;
  CachingAllocator allocator;
  allocator.record_device_events();
  const BlockId block = *allocator.allocate(3 * kMiB, Stream::kCopy);
  const Bytes address = allocator.address_of(block);
  allocator.free(block);
  allocator.empty_cache();
  const std::vector<DeviceEvent> expected{
      {Kind::kMalloc, lane_of(Stream::kCopy), address, 20 * kMiB},
      {Kind::kFree, lane_of(Stream::kCopy), address, 20 * kMiB}};
  EXPECT_EQ(allocator.take_device_events(), expected);
  EXPECT_TRUE(allocator.take_device_events().empty());

  CachingAllocator growing(parse_allocator_config("expandable_segments:True").value());
  growing.record_device_events();
  const BlockId first = *growing.allocate(30 * kMiB, Stream::kCompute);
  const Bytes base = growing.address_of(first);
  growing.free(first);
  growing.empty_cache();
  const std::vector<DeviceEvent> pages{{Kind::kMap, Lane{0}, base, 40 * kMiB},
                                       {Kind::kUnmap, Lane{0}, base, 40 * kMiB}};
  EXPECT_EQ(growing.take_device_events(), pages);
  EXPECT_EQ(growing.range_of(base + kMiB), base);
  EXPECT_FALSE(growing.range_of(base - kMiB));
}

TEST(DeviceEvents, SegmentsCanBePlacedAndGivenBackByAddress) {
  CachingAllocator allocator;
  allocator.place_next_segment(Bytes{0x10000000});
  const BlockId high = *allocator.allocate(20 * kMiB, Stream::kCompute);
  allocator.place_next_segment(Bytes{0x4000000});
  const BlockId low = *allocator.allocate(20 * kMiB, Stream::kCompute);
  EXPECT_EQ(allocator.address_of(high), Bytes{0x10000000});
  EXPECT_FALSE(allocator.release_segment_at(Bytes{0x4000000}));  // in use
  allocator.free(high);
  allocator.free(low);
  // Among equals the lowest address.
  EXPECT_EQ(allocator.address_of(*allocator.allocate(20 * kMiB, Stream::kCompute)),
            Bytes{0x4000000});
  EXPECT_TRUE(allocator.release_segment_at(Bytes{0x10000000}));
  EXPECT_FALSE(allocator.release_segment_at(Bytes{0x10000000}));
  EXPECT_EQ(allocator.stats().segments, 1);
}

TEST(DeviceEvents, TheDeviceCanBeLimitedForAWhile) {
  CachingAllocator allocator({}, {100 * kMiB, {}});
  const BlockId block = *allocator.allocate(20 * kMiB, Stream::kCompute);
  allocator.limit_device(40 * kMiB);
  EXPECT_FALSE(allocator.allocate(30 * kMiB, Stream::kCompute));
  allocator.free(block);
  EXPECT_TRUE(allocator.allocate(20 * kMiB, Stream::kCompute));  // from the cache
  allocator.restore_device();
  EXPECT_TRUE(allocator.allocate(30 * kMiB, Stream::kCompute));
}

}  // namespace
}  // namespace stoker
