#include "snapshot/explanation.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "snapshot/test_pickle.h"

namespace stoker {
namespace {

using namespace test;

constexpr std::int64_t kMi = 1 << 20;

Snapshot training() {
  return read_snapshot(std::filesystem::path(STOKER_SOURCE_DIR) /
                       "src/snapshot/testdata/recorded/training.pickle.gz")
      .value();
}
bool any_has(const std::vector<std::string>& sentences, const std::string& words) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& s) { return s.find(words) != std::string::npos; });
}

TEST(Explanation, AFailureOfARealAllocator) {
  const Snapshot snapshot = training();
  const auto e = explain_snapshot(snapshot, {}, "f");
  ASSERT_TRUE(e) << e.error().text();
  EXPECT_EQ(e->live.moment, MemoryMoment::kOutOfMemory);
  // PyTorch's message, training.json: 24.00 MiB asked, 14.00 MiB free, 442.80 MiB allocated, 43.20
  // MiB reserved but unallocated.
  EXPECT_EQ(e->live.failure->asked, 24 * kMiB);
  EXPECT_EQ(e->live.failure->device_free, 14 * kMiB);
  EXPECT_NEAR(mebibytes(e->live.allocated), 442.80, 0.005);
  EXPECT_NEAR(mebibytes(e->live.reserved - e->live.allocated), 43.20, 0.005);
  EXPECT_EQ(e->live.holders[0].where, "training.py:14 forward");
  EXPECT_TRUE(any_has(e->why, "fragmentation"));
  EXPECT_TRUE(e->replay.identical());
  ASSERT_TRUE(e->reserved_peak_expandable);
  EXPECT_LT(*e->reserved_peak_expandable, e->reserved_peak);
  EXPECT_TRUE(any_has(e->advice, "expandable_segments:True: the same requests"));
  EXPECT_TRUE(e->missing.empty());
}

TEST(Explanation, TheMomentCanBeChosen) {
  const Snapshot snapshot = training();
  EXPECT_EQ(explain_snapshot(snapshot, {MemoryMoment::kPeak, {}, {}}, "f")->live.event, 180);
  EXPECT_EQ(explain_snapshot(snapshot, {MemoryMoment::kEnd, {}, {}}, "f")->live.allocated, Bytes{});
}

TEST(Explanation, WhatIsNotThereIsSaid) {
  const Snapshot plain =
      parse_snapshot(pickle(snapshot(
                         {segment(0, 20 * kMi, "large", 0, {block(20 * kMi, "inactive", 0)})}, {})),
                     "f")
          .value();
  const auto e = explain_snapshot(plain, {}, "f");
  EXPECT_EQ(e->live.moment, MemoryMoment::kEnd);
  EXPECT_TRUE(any_has(e->missing, "there is no trace"));
  EXPECT_TRUE(any_has(e->advice, "empty_cache() would give 20.0 MiB back"));
  const auto peak = explain_snapshot(plain, {MemoryMoment::kPeak, {}, {}}, "f");
  ASSERT_FALSE(peak);
  EXPECT_NE(peak.error().text().find("f: holds no trace, so only --at end"), std::string::npos);
  const auto device = explain_snapshot(plain, {{}, 3, {}}, "f");
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().text().find("nothing of device 3, only of 0"), std::string::npos);
}

TEST(Explanation, BlocksWithoutASegmentSpoilTheFigures) {
  const Snapshot odd =
      parse_snapshot(
          pickle(snapshot(
              {segment(0, 20 * kMi, "large", 0, {block(20 * kMi, "inactive", 0)})},
              {event("alloc", 999 * kMi, 5 * kMi), event("free_requested", 999 * kMi, 5 * kMi),
               event("free_completed", 999 * kMi, 5 * kMi)})),
          "f")
          .value();
  const auto e = explain_snapshot(odd, {}, "f");
  EXPECT_EQ(e->live.blocks_astray, 1);
  EXPECT_TRUE(any_has(e->missing, "1 blocks (5.0 MiB)"));
  EXPECT_TRUE(e->advice.empty());
}

}  // namespace
}  // namespace stoker
