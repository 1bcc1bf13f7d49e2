#include "snapshot/memory_course.h"

#include <gtest/gtest.h>

#include "snapshot/test_pickle.h"

namespace stoker {
namespace {

using namespace test;

constexpr std::int64_t kMi = 1 << 20;
constexpr std::int64_t kBase = 0x7f0000000000;

const std::vector<P> kForward{frame("/home/me/net/block.py", 12, "forward")};
const std::vector<P> kOptimizer{frame("/home/me/train.py", 44, "step")};

/// 24 MiB of the forward pass come and go in a segment of 40 MiB beside 10 MiB of the optimizer.
Snapshot small_run() {
  const P end = segment(
      kBase, 40 * kMi, "large", 10 * kMi,
      {block(24 * kMi, "inactive", 0), block(10 * kMi, "active_allocated", 10 * kMi, kOptimizer),
       block(6 * kMi, "inactive", 0)});
  const std::vector<P> trace{event("segment_alloc", kBase, 40 * kMi),
                             event("alloc", kBase, 24 * kMi, kForward),
                             event("alloc", kBase + 24 * kMi, 10 * kMi, kOptimizer),
                             event("free_requested", kBase, 24 * kMi),
                             event("free_completed", kBase, 24 * kMi),
                             event("oom", 3 * kMi, 30 * kMi, kForward)};
  return parse_snapshot(pickle(snapshot({end}, trace)), "s").value();
}

TEST(MemoryCourse, TellsBytesByLineAfterEachEvent) {
  const MemoryCourse course = memory_course(small_run(), 0, {"net/block.py:12 forward"}, 100);
  EXPECT_EQ(course.event, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  ASSERT_EQ(course.holders.size(), 2U);
  EXPECT_EQ(course.holders[0].bytes,
            (std::vector<Bytes>{0 * kMiB, 24 * kMiB, 24 * kMiB, 24 * kMiB, 0 * kMiB, 0 * kMiB}));
  EXPECT_EQ(course.holders[1].bytes[2], 10 * kMiB);
  EXPECT_EQ(course.reserved.back(), 40 * kMiB);
  EXPECT_EQ(course.failures, std::vector<std::int64_t>{5});
}

TEST(MemoryCourse, KeepsThePeakOfEveryStretch) {
  const MemoryCourse course = memory_course(small_run(), 0, {}, 1);
  EXPECT_EQ(course.event, std::vector<std::int64_t>{2});
  EXPECT_EQ(course.holders[0].bytes, std::vector<Bytes>{34 * kMiB});
}

TEST(Segments, ArePartsWithoutGapsAtAnyMoment) {
  const Snapshot s = small_run();
  const std::vector<SegmentFill> peak = segments_at(s, 0, 2), end = segments_at(s, 0, 5);
  ASSERT_EQ(peak.size(), 1U);
  ASSERT_EQ(peak[0].parts.size(), 3U);
  EXPECT_EQ(peak[0].parts[0].where, "net/block.py:12 forward");
  EXPECT_EQ(peak[0].parts[1].offset, 24 * kMi);
  EXPECT_EQ(peak[0].idle, 6 * kMi);
  EXPECT_EQ(end[0].idle, 30 * kMi);
  EXPECT_EQ(end[0].largest_idle, 24 * kMi);
  EXPECT_EQ(end[0].idle_pieces, 2);
  EXPECT_TRUE(segments_at(s, 0, -1).empty());
}

}  // namespace
}  // namespace stoker
