#include "snapshot/live_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "json/text.h"
#include "snapshot/test_pickle.h"

namespace stoker {
namespace {

using namespace test;

constexpr std::int64_t kMi = 1 << 20;
constexpr std::int64_t kBase = 0x7f0000000000;

Snapshot parsed(const P& value) { return parse_snapshot(pickle(value), "s").value(); }

const std::vector<P> kForward{frame("/site-packages/torch/nn/modules/linear.py", 125, "forward"),
                              frame("/home/me/net/block.py", 12, "forward"),
                              frame("/home/me/train.py", 40, "step")};
const std::vector<P> kOptimizer{frame("/home/me/train.py", 44, "step")};

/// A 40 MiB segment: 24 MiB of the forward pass come and go beside 10 MiB of optimizer state, then
/// a request for 30 MiB fails.
std::vector<P> small_run() {
  return {event("segment_alloc", kBase, 40 * kMi),
          event("alloc", kBase, 24 * kMi, kForward),
          event("alloc", kBase + 24 * kMi, 10 * kMi, kOptimizer),
          event("free_requested", kBase, 24 * kMi),
          event("free_completed", kBase, 24 * kMi),
          event("oom", 3 * kMi, 30 * kMi, kForward)};
}
P end_of_run() {
  return segment(
      kBase, 40 * kMi, "large", 10 * kMi,
      {block(24 * kMi, "inactive", 0), block(10 * kMi, "active_allocated", 10 * kMi, kOptimizer),
       block(6 * kMi, "inactive", 0)});
}

TEST(LiveMemory, ThePeakByLineOfTheUser) {
  const Snapshot s = parsed(snapshot({end_of_run()}, small_run()));
  const SnapshotHistory history(s, 0);
  EXPECT_TRUE(history.coverage().from_start());
  EXPECT_EQ(history.coverage().contradictions, 0);
  const LiveMemory peak = history.at(MemoryMoment::kPeak);
  EXPECT_EQ(peak.event, 2);
  EXPECT_EQ(peak.allocated, 34 * kMiB);
  EXPECT_EQ(peak.reserved, 40 * kMiB);
  EXPECT_EQ(peak.idle.bytes, 6 * kMiB);
  ASSERT_EQ(peak.holders.size(), 2u);
  EXPECT_EQ(peak.holders[0].where, "net/block.py:12 forward");
  EXPECT_EQ(peak.holders[0].bytes, 24 * kMiB);
  EXPECT_EQ(peak.holders[1].where, "me/train.py:44 step");
  EXPECT_EQ(history.reserved_peak(), 40 * kMiB);
}

TEST(LiveMemory, WhyItFailedAlthoughEnoughLayIdle) {
  const Snapshot s = parsed(snapshot({end_of_run()}, small_run()));
  const LiveMemory oom = SnapshotHistory(s, 0).at(MemoryMoment::kOutOfMemory);
  ASSERT_TRUE(oom.failure);
  EXPECT_EQ(oom.failure->requested, 30 * kMiB);
  EXPECT_EQ(oom.failure->device_free, 3 * kMiB);
  EXPECT_EQ(oom.failure->where, "net/block.py:12 forward");
  EXPECT_EQ(oom.failure->usable.bytes, 30 * kMiB);
  EXPECT_EQ(oom.failure->usable.largest, 24 * kMiB);
  EXPECT_NE(oom.failure->why.find("fragmentation"), std::string::npos) << oom.failure->why;
}

TEST(LiveMemory, AFullDeviceIsNotFragmentation) {
  std::vector<P> trace = small_run();
  trace.erase(trace.begin() + 3, trace.begin() + 5);  // nothing was freed
  const Snapshot s = parsed(snapshot(
      {segment(kBase, 40 * kMi, "large", 34 * kMi,
               {block(24 * kMi, "active_allocated", 24 * kMi),
                block(10 * kMi, "active_allocated", 10 * kMi), block(6 * kMi, "inactive", 0)})},
      trace));
  const LiveMemory oom = SnapshotHistory(s, 0).at(MemoryMoment::kOutOfMemory);
  EXPECT_NE(oom.failure->why.find("the device is full"), std::string::npos) << oom.failure->why;
}

TEST(LiveMemory, ALostBeginningIsWorkedOutBackwards) {
  std::vector<P> trace = small_run();
  trace.erase(trace.begin(), trace.begin() + 3);
  const Snapshot s = parsed(snapshot({end_of_run()}, trace));
  const SnapshotHistory history(s, 0);
  EXPECT_FALSE(history.coverage().from_start());
  EXPECT_EQ(history.coverage().blocks_before, 2);
  EXPECT_EQ(history.coverage().bytes_before, 34 * kMiB);
  EXPECT_EQ(history.coverage().reserved_before, 40 * kMiB);
  const LiveMemory peak = history.at(MemoryMoment::kPeak);
  EXPECT_EQ(peak.event, -1);
  EXPECT_EQ(peak.allocated, 34 * kMiB);
}

TEST(LiveMemory, WithoutATraceOnlyTheEndIsKnown) {
  const Snapshot s = parsed(snapshot({end_of_run()}, {}));
  const SnapshotHistory history(s, 0);
  EXPECT_FALSE(history.has(MemoryMoment::kPeak));
  EXPECT_FALSE(history.has(MemoryMoment::kOutOfMemory));
  const LiveMemory end = history.at(MemoryMoment::kEnd);
  EXPECT_EQ(end.allocated, 10 * kMiB);
  EXPECT_EQ(end.idle.bytes, 30 * kMiB);
  EXPECT_EQ(end.idle.whole, Bytes{});
}

TEST(LiveMemory, SlackBelongsToItsBlock) {
  const std::int64_t requested = 24 * kMi - 1000;
  const Snapshot s =
      parsed(snapshot({segment(kBase, 24 * kMi, "large", 24 * kMi,
                               {block(24 * kMi, "active_allocated", requested)})},
                      {event("segment_alloc", kBase, 24 * kMi), event("alloc", kBase, requested)}));
  const LiveMemory peak = SnapshotHistory(s, 0).at(MemoryMoment::kPeak);
  EXPECT_EQ(peak.allocated, 24 * kMiB);
  EXPECT_EQ(peak.requested, Bytes{requested});
  EXPECT_EQ(peak.idle.pieces, 0);
  EXPECT_EQ(peak.holders[0].where, "(no stack recorded)");
}

TEST(LiveMemory, ContradictionsAreCountedAndSkipped) {
  std::vector<P> trace = small_run();
  trace.push_back(event("free_completed", kBase + 24 * kMi, 10 * kMi));  // yet it lives at the end
  trace.push_back(event("segment_free", kBase + 999 * kMi, 2 * kMi));
  trace.push_back(event("segment_free", kBase + 999 * kMi, 2 * kMi));
  const Snapshot s = parsed(snapshot({end_of_run()}, trace));
  const SnapshotHistory history(s, 0);
  EXPECT_GT(history.coverage().contradictions, 0);
  EXPECT_GT(history.at(MemoryMoment::kPeak).allocated, Bytes{});
}

/// The state that the walk arrives at is the snapshot's, and its peaks are those PyTorch counted.
TEST(LiveMemory, RealTracesAddUp) {
  const auto folder = std::filesystem::path(STOKER_SOURCE_DIR) / "src/snapshot/testdata/recorded";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gz") continue;
    const std::string name = entry.path().stem().stem().string();
    const Snapshot s = read_snapshot(entry.path()).value();
    const auto summary = json::parse(read_file(folder / (name + ".json"), kMiB).value()).value();
    const SnapshotHistory history(s, 0);
    EXPECT_TRUE(history.coverage().from_start()) << name;
    EXPECT_EQ(history.coverage().contradictions, 0) << name;
    EXPECT_EQ(history.reserved_peak().count(), summary["reserved_peak"]) << name;
    // The first moment of the largest sum of rounded requests; slack may put the true peak
    // elsewhere.
    const LiveMemory peak = history.at(MemoryMoment::kPeak);
    EXPECT_LE(peak.allocated.count(), summary["allocated_peak"].as_integer()) << name;
    EXPECT_GE(static_cast<double>(peak.allocated.count()),
              0.99 * summary["allocated_peak"].as_double())
        << name;
    const LiveMemory end = history.at(MemoryMoment::kEnd);
    std::int64_t allocated = 0;
    for (const SnapshotSegment& segment : s.segments) allocated += segment.allocated;
    EXPECT_EQ(end.allocated.count(), allocated) << name;
    EXPECT_EQ(end.allocated + end.pending + end.idle.bytes, end.reserved) << name;
    ++seen;
  }
  EXPECT_GE(seen, 15);
}

}  // namespace
}  // namespace stoker
