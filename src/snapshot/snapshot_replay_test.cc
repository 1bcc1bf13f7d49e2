// The recorded snapshots are those of PyTorch's own allocator: testdata/README.md.

#include "snapshot/snapshot_replay.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "json/text.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

fs::path recorded() { return fs::path(STOKER_SOURCE_DIR) / "src/snapshot/testdata/recorded"; }

std::vector<std::string> scenarios() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(recorded())) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Recording {
  Snapshot snapshot;
  json::Value summary;
  SnapshotReplayOptions options;
};

Recording open(const std::string& name) {
  Recording result{read_snapshot(recorded() / (name + ".pickle.gz")).value(), {}, {}};
  result.summary = json::parse(read_file(recorded() / (name + ".json"), kMiB).value()).value();
  result.options.device.total = Bytes{result.summary["device_bytes"].as_integer()};
  if (const double fraction = result.summary["fraction"].as_double(); fraction > 0)
    result.options.memory_fraction = fraction;
  return result;
}

class RealAllocator : public testing::TestWithParam<std::string> {};

TEST_P(RealAllocator, DoesTheSameOnADeviceOfThatSize) {
  Recording recording = open(GetParam());
  recording.options.device.capacity = recording.options.device.total;
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  EXPECT_TRUE(replay.identical()) << replay.not_replayed << replay.difference;
  EXPECT_TRUE(replay.from_start);
  EXPECT_EQ(replay.releases_taken_over, 0);
  EXPECT_EQ(replay.compared, replay.events);
  EXPECT_GT(replay.allocations, 100);
  EXPECT_EQ(replay.stats.reserved_peak.count(), recording.summary["reserved_peak"]);
  EXPECT_EQ(replay.stats.allocated_peak.count(), recording.summary["allocated_peak"]);
}

TEST_P(RealAllocator, DoesTheSameWhereTheCapacityIsNotKnown) {
  const Recording recording = open(GetParam());
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  EXPECT_TRUE(replay.identical()) << replay.not_replayed << replay.difference;
}

TEST_P(RealAllocator, FailsWithTheSameNumbers) {
  Recording recording = open(GetParam());
  if (recording.summary["first_failure"].empty()) GTEST_SKIP() << "nothing failed there";
  recording.options.device.capacity = recording.options.device.total;
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  ASSERT_TRUE(replay.first_failure);
  const std::string ours = replay.first_failure->text();
  // "... Tried to allocate A. GPU 0 has a total capacity of B of which C is free. [D allowed; ]Of
  // the allocated memory E is allocated by PyTorch, [with F allocated in private pools ...,] and G
  // is reserved by PyTorch but unallocated."
  const std::string theirs = recording.summary["first_failure"][0].as_string();
  const auto between = [&](const std::string& before, const std::string& after) {
    const std::size_t from = theirs.find(before) + before.size();
    return theirs.substr(from, theirs.find(after, from) - from);
  };
  EXPECT_NE(ours.find("tried to allocate " + between("Tried to allocate ", ". GPU")),
            std::string::npos)
      << ours << "\n"
      << theirs;
  EXPECT_NE(ours.find("with " + between("of which ", " is free") + " free of " +
                      between("total capacity of ", " of which")),
            std::string::npos)
      << ours << "\n"
      << theirs;
  EXPECT_NE(
      ours.find("; " + between("allocated memory ", " is allocated") + " allocated by PyTorch, " +
                between("PyTorch, and ", " is reserved") + " reserved by PyTorch"),
      std::string::npos)
      << ours << "\n"
      << theirs;
}

TEST_P(RealAllocator, CountsTheSameRetries) {
  Recording recording = open(GetParam());
  recording.options.device.capacity = recording.options.device.total;
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  EXPECT_EQ(replay.stats.retries, recording.summary["retries"]);
}

INSTANTIATE_TEST_SUITE_P(Recorded, RealAllocator, testing::ValuesIn(scenarios()),
                         [](const auto& test) { return test.param; });

TEST(SnapshotReplay, TheRecordingsHoldWhatTheyAreFor) {
  EXPECT_GE(scenarios().size(), 15u);
  const auto count = [](const std::string& name, TraceAction action) {
    const Recording recording = open(name);
    return std::count_if(recording.snapshot.traces[0].begin(), recording.snapshot.traces[0].end(),
                         [&](const TraceEvent& e) { return e.action == action; });
  };
  EXPECT_GT(count("tight", TraceAction::kOutOfMemory), 10);
  EXPECT_GT(count("max_split", TraceAction::kSegmentFree), 10);
  EXPECT_GT(count("expandable", TraceAction::kSegmentUnmap), 5);
  EXPECT_GE(open("streams").snapshot.streams.size(), 5u);
  EXPECT_EQ(open("pools").snapshot.pools.size(), 3u);
}

// A test that finds no difference must be able to find one.

TEST(SnapshotReplay, OtherSettingsAreNoticed) {
  Recording recording = open("default");
  recording.snapshot.config.roundup_power2_divisions.fill(8);
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  EXPECT_FALSE(replay.identical());
  EXPECT_LT(replay.compared, replay.events);
  EXPECT_TRUE(replay.difference.starts_with("event ")) << replay.difference;
}

TEST(SnapshotReplay, OneBlockElsewhereIsNoticed) {
  Recording recording = open("default");
  auto& trace = recording.snapshot.traces[0];
  const std::int64_t before = replay_snapshot(recording.snapshot, 0, recording.options).compared;
  // The last allocation in the file, moved by one block, with the snapshot's own entry.
  for (std::size_t i = trace.size(); i-- > 0;) {
    if (trace[i].action != TraceAction::kAlloc) continue;
    trace[i].address += 512;
    const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
    EXPECT_EQ(replay.compared, static_cast<std::int64_t>(i));
    EXPECT_LT(replay.compared, before);
    EXPECT_NE(replay.difference.find("PyTorch placed it at"), std::string::npos)
        << replay.difference;
    break;
  }
}

TEST(SnapshotReplay, AnotherEndIsNoticed) {
  Recording recording = open("default");
  recording.snapshot.segments[0].blocks[0].size += 512;
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  EXPECT_FALSE(replay.same_end);
  EXPECT_TRUE(replay.difference.starts_with("at the end of the trace")) << replay.difference;
}

TEST(SnapshotReplay, ALostBeginningIsSaid) {
  Recording recording = open("default");
  auto& trace = recording.snapshot.traces[0];
  trace.erase(trace.begin(), trace.begin() + 100);
  const SnapshotReplay replay = replay_snapshot(recording.snapshot, 0, recording.options);
  EXPECT_NE(replay.not_replayed.find("does not begin with an empty allocator"), std::string::npos);
  trace.clear();
  EXPECT_NE(replay_snapshot(recording.snapshot, 0, {}).not_replayed.find("no trace"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker
