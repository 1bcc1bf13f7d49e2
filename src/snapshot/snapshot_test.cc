#include "snapshot/snapshot.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "snapshot/test_pickle.h"

namespace stoker {
namespace {

using namespace test;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STOKER_TEST_SANITIZED 1
#endif
#endif

constexpr std::int64_t kMi = 1 << 20;

Snapshot parsed(const P& value) {
  auto result = parse_snapshot(pickle(value), "s");
  EXPECT_TRUE(result) << result.error().text();
  return result ? std::move(*result) : Snapshot{};
}
std::string refusal(const P& value) {
  const auto result = parse_snapshot(pickle(value), "s");
  return result ? "was read" : result.error().text();
}

P small_segment() {
  return segment(0x1000000, 2 * kMi, "small", 1024,
                 {block(1024, "active_allocated", 1000, {frame("a.py", 3, "f")}),
                  block(2 * kMi - 1024, "inactive", 0)});
}

TEST(Snapshot, SegmentsBlocksAndEvents) {
  const Snapshot s =
      parsed(snapshot({small_segment()}, {event("segment_alloc", 0x1000000, 2 * kMi),
                                          event("alloc", 0x1000000, 1000, {frame("a.py", 3, "f")}),
                                          event("oom", 5 * kMi, 12 * kMi)}));
  ASSERT_EQ(s.segments.size(), 1u);
  EXPECT_TRUE(s.segments[0].small);
  ASSERT_EQ(s.segments[0].blocks.size(), 2u);
  EXPECT_EQ(s.segments[0].blocks[1].address, 0x1000000 + 1024);  // was not given
  EXPECT_EQ(s.segments[0].blocks[0].requested, 1000);
  ASSERT_EQ(s.traces.size(), 1u);
  ASSERT_EQ(s.traces[0].size(), 3u);
  EXPECT_EQ(s.traces[0][1].action, TraceAction::kAlloc);
  EXPECT_EQ(s.traces[0][2].address, 5 * kMi);  // device_free
  // Equal stacks are one, wherever they were written.
  EXPECT_NE(s.traces[0][1].stack, kNoStack);
  EXPECT_EQ(s.traces[0][1].stack, s.segments[0].blocks[0].stack);
  EXPECT_EQ(s.traces[0][0].stack, kNoStack);
  EXPECT_EQ(s.frames.size(), 1u);
  EXPECT_TRUE(s.findings.empty());
}

TEST(Snapshot, BlocksOfOlderPyTorchTellByTheirHistory) {
  const P newest = dict({{"addr", integer(0x1000000)},
                         {"real_size", integer(1000)},
                         {"frames", list({frame("a.py", 3, "f")})}});
  const P before = dict({{"addr", integer(0x1000000)}, {"real_size", integer(40)}});
  const P used = dict({{"size", integer(1024)},
                       {"state", text("active_allocated")},
                       {"history", list({newest, before})}});
  const Snapshot s = parsed(list(
      {segment(0x1000000, 2 * kMi, "small", 1024, {used, block(2 * kMi - 1024, "inactive", 0)})}));
  ASSERT_EQ(s.segments.size(), 1u);
  const SnapshotBlock& block = s.segments[0].blocks[0];
  EXPECT_EQ(block.requested, 1000);
  ASSERT_NE(block.stack, kNoStack);
  ASSERT_EQ(s.frames.size(), 1u);
  EXPECT_TRUE(s.findings.empty());
}

TEST(Snapshot, BothSpellingsOfAPendingFree) {
  for (const char* state : {"active_pending_free", "active_awaiting_free"}) {
    const Snapshot s =
        parsed(snapshot({segment(0, 2 * kMi, "small", 0,
                                 {block(512, state, 4), block(2 * kMi - 512, "inactive", 0)})},
                        {}));
    EXPECT_EQ(s.segments[0].blocks[0].state, SnapshotBlockState::kPendingFree);
    EXPECT_TRUE(s.findings.empty());
  }
}

TEST(Snapshot, SettingsComeFromTextAndKeys) {
  const P divisions = dict({{"1", integer(4)}, {"256", integer(2)}});
  const Snapshot s =
      parsed(snapshot({small_segment()}, {},
                      {{"PYTORCH_CUDA_ALLOC_CONF", text("large_segment_size_mb:32")},
                       {"max_split_size", integer(64 * kMi)},
                       {"expandable_segments", boolean(true)},
                       {"garbage_collection_threshold", {"G\x3f\xe0" + std::string(6, '\0')}},
                       {"roundup_power2_divisions", divisions}}));
  EXPECT_TRUE(s.has_settings);
  EXPECT_EQ(s.config.large_segment, 32 * kMiB);
  EXPECT_EQ(s.config.max_split_size, 64 * kMiB);
  EXPECT_TRUE(s.config.expandable_segments);
  EXPECT_EQ(s.config.garbage_collection_threshold, 0.5);
  EXPECT_EQ(s.config.roundup_power2_divisions[0], 4u);
  EXPECT_EQ(s.config.roundup_power2_divisions[8], 2u);
  const Snapshot unlimited =
      parsed(snapshot({small_segment()}, {}, {{"max_split_size", integer(-1)}}));
  EXPECT_EQ(unlimited.config.max_split_size, kNoSplitLimit);
}

TEST(Snapshot, ASettingOfAnotherTypeIsCountedAndTheTextIsTaken) {
  const Snapshot s = parsed(snapshot({small_segment()}, {},
                                     {{"PYTORCH_CUDA_ALLOC_CONF", text("max_split_size_mb:64")},
                                      {"max_split_size", text("a lot")}}));
  EXPECT_EQ(s.config.max_split_size, 64 * kMiB);
  EXPECT_EQ(s.findings.count("unknown_setting"), 1);
}

TEST(Snapshot, OtherAllocatorsAreRefusedByName) {
  EXPECT_NE(refusal(snapshot({small_segment()}, {},
                             {{"PYTORCH_CUDA_ALLOC_CONF", text("backend:cudaMallocAsync")}}))
                .find("cudaMallocAsync"),
            std::string::npos);
  EXPECT_NE(refusal(snapshot({small_segment()}, {}, {{"backend", text("cudaMallocAsync")}}))
                .find("allocator_settings.backend is cudaMallocAsync"),
            std::string::npos);
  const auto none = parse_snapshot(pickle(snapshot({}, {})), "s");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(none.error().text().find("another allocator back end"), std::string::npos);
}

TEST(Snapshot, ErrorsNameTheKey) {
  EXPECT_NE(refusal(integer(3)).find("where a snapshot is a dict"), std::string::npos);
  EXPECT_NE(refusal(dict({})).find("key segments is missing"), std::string::npos);
  EXPECT_NE(refusal(dict({{"segments", integer(1)}})).find("key segments is an int, not a list"),
            std::string::npos);
  EXPECT_NE(refusal(dict({{"segments", list({integer(1)})}})).find("key segments[0] is an int"),
            std::string::npos);
  EXPECT_NE(refusal(snapshot({dict({{"address", integer(1)}})}, {}))
                .find("key segments[0].total_size is missing"),
            std::string::npos);
  EXPECT_NE(refusal(snapshot({segment(0, -5, "small", 0, {})}, {}))
                .find("key segments[0].total_size is -5 bytes"),
            std::string::npos);
  // A list of one bad entry holds nothing to tell.
  EXPECT_NE(refusal(list({dict({{"action", integer(1)}})})).find("key device_traces.action is an"),
            std::string::npos);
}

/// The first of what could not be read, as the findings quote it.
std::string first_odd(const Snapshot& s) {
  for (const Diagnostic& d : s.findings.all())
    if (d.name == "unreadable_entries") return d.advice;
  return "";
}

TEST(Snapshot, WhatCannotBeReadIsLeftOutAndCounted) {
  const P good = event("alloc", 0x1000000, 1000), nothing{"N"};
  const Snapshot s = parsed(snapshot(
      {small_segment(), dict({{"address", integer(5)}}), integer(7),
       segment(0x2000000, 4096, "large", 0, {block(4096, "asleep", 0), block(-1, "inactive", 0)})},
      {good, dict({{"size", integer(1)}}), dict({{"action", text("alloc")}, {"size", text("x")}}),
       nothing, good, event("alloc", -5, 1000)}));
  EXPECT_EQ(s.segments.size(), 2u);
  EXPECT_EQ(s.traces[0].size(), 2u);
  EXPECT_EQ(s.findings.count("unreadable_entries"), 8);
  EXPECT_NE(first_odd(s).find("key segments[1].total_size is missing"), std::string::npos);
  const Snapshot events = parsed(snapshot({small_segment()}, {dict({{"size", integer(1)}})}));
  EXPECT_NE(first_odd(events).find("key device_traces[0][0].action is missing"), std::string::npos);
}

TEST(Snapshot, WhatOlderOnesLackIsTakenFromWhatIsThere) {
  const auto bare = [](std::int64_t size) {
    return dict({{"address", integer(size * 4)},
                 {"total_size", integer(size)},
                 {"blocks", list({block(size, "active_allocated", 9)})}});
  };
  const Snapshot s = parsed(list({bare(2 * kMi), bare(20 * kMi)}));
  ASSERT_EQ(s.segments.size(), 2u);
  EXPECT_TRUE(s.segments[0].small);
  EXPECT_FALSE(s.segments[1].small);
  EXPECT_EQ(s.findings.count("no_segment_type"), 2);
  // A tuple around the segments, or around a whole snapshot, holds them all the same.
  for (const P& held : {list({bare(2 * kMi), bare(20 * kMi)}),
                        snapshot({bare(2 * kMi), bare(20 * kMi)}, {event("alloc", 1, 512)})}) {
    const Snapshot wrapped = parsed({held.bytes + integer(7).bytes + "\x86"});
    ASSERT_EQ(wrapped.segments.size(), 2u);
    EXPECT_EQ(wrapped.segments[1].size, 20 * kMi);
    EXPECT_EQ(wrapped.findings.count("unreadable_entries"), 0);
  }
  // Traces alone, and settings of another type.
  const Snapshot traced = parsed(dict({{"device_traces", list({list({event("alloc", 1, 512)})})},
                                       {"allocator_settings", integer(3)}}));
  EXPECT_EQ(traced.traces[0].size(), 1u);
  EXPECT_EQ(traced.findings.count("unknown_setting"), 1);
}

TEST(Snapshot, OneThatEndsEarlyTellsWhatCameBefore) {
  const std::vector<P> events(50, event("alloc", 0x1000000, 1000, {frame("a.py", 3, "f")}));
  const std::string whole = pickle(snapshot({small_segment(), small_segment()}, events));
  std::size_t with_segments = 0, with_both = 0, with_none = 0;
  for (std::size_t bytes = 3; bytes < whole.size(); ++bytes) {
    const auto s = parse_snapshot(whole.substr(0, bytes), "s");
    if (!s) {
      ++with_none;
      continue;
    }
    EXPECT_EQ(s->findings.count("cut_short"), 1) << bytes;
    with_segments += s->segments.size() == 2 && s->segments[1].blocks.size() == 2 ? 1 : 0;
    // Only a trace that is whole is kept beside segments of its end.
    if (s->has_trace(0)) {
      EXPECT_EQ(s->traces[0].size(), 50u) << bytes;
      ++with_both;
    }
  }
  EXPECT_GT(with_segments, whole.size() / 2);
  EXPECT_GT(with_none, 3u);
  EXPECT_LT(with_none, whole.size() / 8);
  EXPECT_GT(with_both, 0u);
  // A trace alone begins where the run did, and is told as far as it goes.
  const std::string alone = pickle(list(events));
  const auto half = parse_snapshot(alone.substr(0, alone.size() / 2), "s");
  ASSERT_TRUE(half) << half.error().text();
  EXPECT_GT(half->traces[0].size(), 20u);
  EXPECT_LT(half->traces[0].size(), 26u);
}

TEST(Snapshot, APickleOfSingleElementsIsCutAnywhere) {
  // Picklers add the one element of a list without a mark: APPEND, SETITEM.
  const auto one = [](const P& value) { return P{"]" + value.bytes + "a"}; };
  const std::string whole = pickle(
      {"}(" + text("segments").bytes + one(small_segment()).bytes + text("device_traces").bytes +
       one(list(std::vector<P>(9, event("alloc", 0x1000000, 1000)))).bytes + "u"});
  ASSERT_EQ(parse_snapshot(whole, "s")->traces[0].size(), 9u);
  for (std::size_t bytes = whole.size() / 2; bytes < whole.size(); ++bytes) {
    const auto s = parse_snapshot(whole.substr(0, bytes), "s");
    ASSERT_TRUE(s) << bytes << s.error().text();
    ASSERT_EQ(s->segments.size(), 1u) << bytes;
    EXPECT_EQ(s->segments[0].blocks.size(), 2u) << bytes;
  }
}

TEST(Snapshot, WhatDoesNotFitTogetherIsCounted) {
  const Snapshot s =
      parsed(snapshot({segment(0, 2 * kMi, "small", 7,
                               {block(512, "active_allocated", 600), block(512, "inactive", 0)}),
                       segment(kMi, 2 * kMi, "large", 0, {})},
                      {dict({{"action", text("user_defined")}})}));
  EXPECT_EQ(s.findings.count("segment_not_filled"), 2);
  EXPECT_EQ(s.findings.count("segment_sum_differs"), 1);
  EXPECT_EQ(s.findings.count("request_exceeds_block"), 1);
  EXPECT_EQ(s.findings.count("segments_overlap"), 1);
  EXPECT_EQ(s.findings.count("unknown_action"), 1);
}

/// The value, kept in the memo under `number`; and a reference to it.
P kept(const P& value, char number) { return {value.bytes + "q" + number}; }
P again(char number) { return {std::string("h") + number}; }

TEST(Snapshot, WhatIsSharedIsNotExpandedWithoutBound) {
  constexpr std::size_t kReferences = 20'000;  // squared: 400 million blocks from 80 KB
  std::vector<P> blocks(kReferences, again('\1'));
  blocks[0] = kept(block(512, "active_allocated", 4), '\1');
  const std::string sentence = "s: refers to the same segments, blocks or events so often";
  std::vector<P> segments(kReferences, again('\2'));
  segments[0] = kept(segment(0, 2 * kMi, "small", 512, blocks), '\2');
  EXPECT_EQ(refusal(snapshot(segments, {})).find(sentence), 0u);
  segments[0] = kept(segment(0, 0, "small", 0, {}), '\2');
  EXPECT_EQ(refusal(snapshot(segments, {})).find(sentence), 0u);
  // Each trace is within the bound, their sum is not.
  const P trace = list(std::vector<P>(100, event("alloc", 0, 512)));
  std::vector<P> traces(1000, again('\3'));
  traces[0] = kept(trace, '\3');
  EXPECT_EQ(refusal(dict({{"segments", list({})}, {"device_traces", list(traces)}})).find(sentence),
            0u);
  // Written out, as PyTorch writes them, as many are read as there are.
  EXPECT_EQ(
      parsed(dict({{"segments", list({})}, {"device_traces", list({trace})}})).traces[0].size(),
      100u);
}

TEST(Snapshot, TooLittleMemoryIsAnErrorNotAnException) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || STOKER_TEST_SANITIZED
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#endif
  std::vector<P> trace;
  for (std::int64_t i = 0; i < 200'000; ++i) trace.push_back(event("alloc", 512 * i, 512));
  const std::string content = pickle(snapshot({}, trace));
  const auto parse_in_little_memory = [&] {
    std::string copy = content;
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (4 << 20);
    const rlimit limit{bytes, bytes};
    if (pages == 0 || setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    const auto result = parse_snapshot(std::move(copy), "s");
    std::fputs(result ? "was read" : result.error().text().c_str(), stderr);
    std::exit(result ? 1 : 0);
  };
  EXPECT_EXIT(parse_in_little_memory(), testing::ExitedWithCode(0),
              "s: does not fit into this machine's memory");
}

TEST(Snapshot, EverySizeCountsTowardsTheSumThatCannotBe) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 50;
  const auto segments_of = [](std::size_t count) {
    return snapshot(std::vector<P>(count, segment(0, kLargest, "large", 0, {})), {});
  };
  const auto requests_of = [](std::size_t count) {
    const std::vector<P> blocks(count, block(0, "active_allocated", kLargest));
    return snapshot({segment(0, 0, "large", 0, blocks)}, {});
  };
  // 1,024 of them are just the bound.
  EXPECT_EQ(refusal(segments_of(1024)), "was read");
  EXPECT_EQ(refusal(segments_of(1025)), "s: holds sizes that no run can add up to");
  EXPECT_EQ(refusal(requests_of(1024)), "was read");
  EXPECT_EQ(refusal(requests_of(1025)), "s: holds sizes that no run can add up to");
}

TEST(Snapshot, TheMosaicSampleIsRead) {
  const char* shared = std::getenv("STOKER_SHARED");
  const std::filesystem::path folder =
      shared ? std::filesystem::path(shared)
             : std::filesystem::path(STOKER_SOURCE_DIR).parent_path() / "shared";
  const auto file = folder / "data/memory/mosaic_sample_snapshot.pickle";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const auto s = read_snapshot(file);
  ASSERT_TRUE(s) << s.error().text();
  EXPECT_EQ(s->segments.size(), 5u);
  ASSERT_EQ(s->traces.size(), 1u);
  EXPECT_EQ(s->traces[0].size(), 1040u);
  EXPECT_FALSE(s->has_settings);
  EXPECT_GT(s->findings.count("segment_not_filled"), 0);  // its numbers were made up
}

}  // namespace
}  // namespace stoker
