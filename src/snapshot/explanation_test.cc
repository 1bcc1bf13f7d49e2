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

/// `steps` times: activations of 64 MiB come and go, and of each step a block stays if `leaks`.
Snapshot steps_of(int steps, bool leaks) {
  std::vector<P> events, segments;
  std::int64_t at = 0;
  const auto held = [&](const std::string& line) {
    events.push_back(event("segment_alloc", at, 20 * kMi));
    events.push_back(event("alloc", at, 20 * kMi, {frame("train.py", 7, line)}));
    segments.push_back(
        segment(at, 20 * kMi, "large", 20 * kMi, {block(20 * kMi, "active_allocated", 20 * kMi)}));
    at += 32 * kMi;
  };
  held("weights");
  for (int step = 0; step < steps; ++step) {
    const std::int64_t activations = at;
    events.push_back(event("segment_alloc", activations, 64 * kMi));
    events.push_back(event("alloc", activations, 64 * kMi, {frame("model.py", 3, "forward")}));
    at += 128 * kMi;
    if (leaks) held("log_loss");
    for (const char* action : {"free_requested", "free_completed", "segment_free"})
      events.push_back(event(action, activations, 64 * kMi));
  }
  return parse_snapshot(pickle(snapshot(segments, events)), "f").value();
}

TEST(Explanation, WhatStaysOfEveryStepPilesUp) {
  const auto e = explain_snapshot(steps_of(12, true), {MemoryMoment::kEnd, {}, {}}, "f");
  ASSERT_TRUE(e) << e.error().text();
  // The first of twelve steps goes with the start, the last with what goes on.
  EXPECT_TRUE(any_has(e->why, "memory piles up: 200.0 MiB in 10 blocks from train.py:7 log_loss"))
      << (e->why.empty() ? "" : e->why[0]);
  EXPECT_TRUE(any_has(e->advice, "let go of what train.py:7 log_loss keeps"));
  for (const Snapshot& other : {steps_of(12, false), steps_of(3, true)}) {
    const auto quiet = explain_snapshot(other, {MemoryMoment::kEnd, {}, {}}, "f");
    EXPECT_FALSE(any_has(quiet->why, "piles up"));
    EXPECT_FALSE(any_has(quiet->advice, "let go"));
  }
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
  EXPECT_NE(peak.error().text().find("f: holds no trace, so only its end"), std::string::npos);
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

TEST(Explanation, ASplitSegmentIsNamedAsFragmentation) {
  const Snapshot split =
      parse_snapshot(
          pickle(snapshot(
              {segment(1 << 30, 100 * kMi, "large", 2 * kMi,
                       {block(40 * kMi, "inactive", 0),
                        block(2 * kMi, "active_allocated", 2 * kMi, {frame("train.py", 7, "step")}),
                        block(58 * kMi, "inactive", 0)})},
              {})),
          "f")
          .value();
  const auto e = explain_snapshot(split, {}, "f");
  ASSERT_TRUE(e) << e.error().text();
  EXPECT_TRUE(any_has(e->why,
                      "fragmentation: of the segment of 100.0 MiB at 0x40000000, 98.0 MiB "
                      "lie idle in 2 pieces and cannot be given back, held by 1 block of "
                      "2.0 MiB, the largest from train.py:7 step"));
  EXPECT_TRUE(any_has(e->advice, "expandable_segments:True may join"));
}

TEST(Explanation, OnlySettingsThatTheReplayShowsToHelpAreSaidToHelp) {
  const auto e = explain_snapshot(training(), {}, "f");
  ASSERT_TRUE(e && e->split_limit);
  EXPECT_EQ(any_has(e->advice, "max_split_size_mb"),
            e->split_limit->reserved_peak / e->reserved_peak < 0.98);
}

TEST(Explanation, AFailureThatDoesNotSayWhatWasFreeIsReadAllTheSame) {
  P oom = dict({{"action", text("oom")}, {"size", integer(200 * kMi)}, {"frames", list({})}});
  const auto old = parse_snapshot(
      pickle(snapshot({segment(0, 20 * kMi, "large", 0, {block(20 * kMi, "inactive", 0)})}, {oom})),
      "f");
  ASSERT_TRUE(old) << old.error().text();
  EXPECT_EQ(old->findings.count("no_device_free"), 1);
  const auto e = explain_snapshot(*old, {}, "f");
  ASSERT_TRUE(e && e->live.failure);
  EXPECT_LT(e->live.failure->device_free, Bytes{});
  EXPECT_TRUE(any_has(e->why, "what was free there was not recorded"));
}

TEST(Explanation, AListIsTheSegmentsOrTheTrace) {
  const P one = segment(0, 20 * kMi, "large", 0, {block(20 * kMi, "inactive", 0)});
  const auto segments = parse_snapshot(pickle(list({one})), "f");
  ASSERT_TRUE(segments) << segments.error().text();
  EXPECT_EQ(segments->segments.size(), 1U);
  const P alloc = event("alloc", 1 << 30, kMi);
  const auto trace = parse_snapshot(pickle(list({alloc})), "f");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->traces.at(0).size(), 1U);
  const auto traces = parse_snapshot(pickle(list({list({}), list({alloc, alloc})})), "f");
  ASSERT_TRUE(traces) << traces.error().text();
  EXPECT_EQ(traces->traces.at(1).size(), 2U);
  EXPECT_NE(parse_snapshot(pickle(list({})), "f").error().message.find("no segments"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker
