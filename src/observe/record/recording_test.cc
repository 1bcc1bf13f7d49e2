#include "observe/record/recording.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <limits>

#include "base/files.h"
#include "observe/record/block.h"
#include "observe/record/sample_block.h"

namespace stoker {
namespace {

Sample sample_at(std::int64_t at_ns) {
  Sample s;
  s.at_ns = at_ns;
  ProcessSample p;
  p.serial = 1;
  p.leader = {at_ns / 2, at_ns / 4};
  p.looks.add(WaitKind::kPoll);
  p.messages = at_ns / 1000;
  p.resident = 5 << 20;
  s.processes.push_back(p);
  p.serial = 7;
  p.alive = false;
  p.minor_faults = -3;
  s.processes.push_back(p);
  s.has_host = at_ns % 2 == 0;
  if (s.has_host) s.host.busy_ns = at_ns * 3;
  GpuSample g;
  g.busy_percent = at_ns % 100;
  s.gpus.push_back(g);
  return s;
}

std::string folder() {
  const auto path =
      std::filesystem::temp_directory_path() / ("recording_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(path);
  return path.string();
}

/// A recording of several blocks.
std::string recording() {
  const std::string path = folder() + "/a.rec";
  std::filesystem::remove(path);
  WatchFacts facts;
  facts.cores = 8;
  facts.kernel = "6.1";
  auto writer = RecordingWriter::create(path, facts);
  EXPECT_TRUE(writer);
  ProcessFacts p;
  p.serial = 1;
  p.pid = 4242;
  p.role = ProcessRole::kTraining;
  p.command = "python train.py";
  writer->add({p});
  for (std::int64_t i = 1; i <= 40; ++i) writer->add(sample_at(i * 1'000'000'000));
  writer->end("ended");
  return read_file(path, Bytes(1 << 20)).value_or("");
}

RecordingSummary parsed(std::string_view bytes, std::vector<Sample>& samples) {
  RecordingEvents events;
  events.sample = [&](const Sample& s) { samples.push_back(s); };
  const auto summary = parse_recording(bytes, "a.rec", events);
  EXPECT_TRUE(summary) << summary.error().text();
  return summary.value_or(RecordingSummary{});
}

void expect_same(const Sample& a, const Sample& b) {
  EXPECT_EQ(record::encode_samples({a}), record::encode_samples({b}));
}

TEST(Recording, ComesBackAsItWasWritten) {
  std::vector<Sample> samples;
  const RecordingSummary summary = parsed(recording(), samples);
  ASSERT_EQ(samples.size(), 40U);
  for (std::size_t i = 0; i < samples.size(); ++i)
    expect_same(samples[i], sample_at(static_cast<std::int64_t>(i + 1) * 1'000'000'000));
  EXPECT_EQ(summary.facts.cores, 8);
  EXPECT_EQ(summary.facts.kernel, "6.1");
  ASSERT_EQ(summary.processes.size(), 1U);
  EXPECT_EQ(summary.processes[0].pid, 4242);
  EXPECT_EQ(summary.processes[0].command, "python train.py");
  EXPECT_EQ(summary.end, "ended");
  EXPECT_EQ(summary.damaged_bytes, 0);
  EXPECT_EQ(summary.cut_bytes, 0);
}

TEST(Recording, NumbersOfBothEndsOfTheRangeComeBack) {
  std::vector<Sample> samples{sample_at(1'000'000'000), sample_at(2'000'000'000)};
  samples[0].at_ns = std::numeric_limits<std::int64_t>::min();
  samples[1].at_ns = std::numeric_limits<std::int64_t>::max();
  samples[0].processes[0].leader.cpu_ns = std::numeric_limits<std::int64_t>::max();
  samples[1].processes[0].leader.cpu_ns = std::numeric_limits<std::int64_t>::min();
  const auto read = record::decode_samples(record::encode_samples(samples));
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[1].at_ns, samples[1].at_ns);
  EXPECT_EQ((*read)[1].processes[0].leader.cpu_ns, samples[1].processes[0].leader.cpu_ns);
}

TEST(Recording, CutAtAnyByteItIsReadUpToThere) {
  const std::string whole = recording();
  std::size_t before = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string_view cut = std::string_view(whole).substr(0, size);
    if (size < record::kFileMark.size()) {
      EXPECT_FALSE(parse_recording(cut, "a.rec", {})) << size;
      continue;
    }
    std::vector<Sample> samples;
    const RecordingSummary summary = parsed(cut, samples);
    EXPECT_GE(samples.size(), before) << size;  // nothing whole is lost
    EXPECT_EQ(summary.damaged_bytes, 0) << size;
    EXPECT_EQ(summary.end.empty(), size < whole.size()) << size;
    before = samples.size();
  }
  EXPECT_EQ(before, 40U);
}

TEST(Recording, ADamagedBlockIsPassedOverAndTheRestIsRead) {
  const std::string whole = recording();
  for (std::size_t at = record::kFileMark.size(); at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    std::vector<Sample> samples;
    const RecordingSummary summary = parsed(damaged, samples);
    EXPECT_GT(summary.damaged_bytes + summary.cut_bytes, 0) << at;
    EXPECT_GE(samples.size(), 30U) << at;  // one block is lost at most
  }
}

TEST(Recording, WhatIsNoneIsRefusedByName) {
  const auto text = [](const auto& result) { return result ? "" : result.error().text(); };
  EXPECT_EQ(text(parse_recording("", "a", {})), "a: was cut within its first line; record again");
  EXPECT_EQ(text(parse_recording("PK\3\4", "a", {})), "a: is no recording of `stoker watch -o`");
  EXPECT_EQ(text(parse_recording("STOKER-RECORDING-2\nx", "a", {})),
            "a: is a recording of version 2, this program reads 1; update stoker");
  EXPECT_EQ(text(parse_recording("STOKER-RECORDING-x\n", "a", {})), "a: its first line is damaged");
}

TEST(Recording, ABlockOfNonsenseIsNoSample) {
  const std::string nonsense(64, '\x7f');
  EXPECT_FALSE(record::decode_samples(nonsense));
  std::vector<Sample> samples;
  const RecordingSummary summary =
      parsed(std::string(record::kFileMark) + record::framed(record::BlockKind::kSamples, nonsense),
             samples);
  EXPECT_EQ(samples.size(), 0U);
  EXPECT_GT(summary.damaged_bytes, 0);
}

TEST(Recording, AFileThatIsThereIsNotWrittenOver) {
  const std::string path = folder() + "/there.rec";
  ASSERT_TRUE(write_file(path, "mine"));
  const auto writer = RecordingWriter::create(path, {});
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().text().find("is there already"), std::string::npos);
  EXPECT_EQ(read_file(path, Bytes(100)).value_or(""), "mine");
}

TEST(Recording, AFullDiskEndsTheRecordingAndWhatIsWrittenIsRead) {
  const std::string path = folder() + "/full.rec";
  std::filesystem::remove(path);
  auto writer = RecordingWriter::create(path, {});
  ASSERT_TRUE(writer);
  // A limit on the size of files stands in for a disk without room.
  ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(writer->bytes()) + 300;
  ::setrlimit(RLIMIT_FSIZE, &small);
  for (std::int64_t i = 1; i <= 40; ++i) writer->add(sample_at(i * 1'000'000'000 + i * i));
  writer->end("ended");
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(writer->failure().empty());
  std::vector<Sample> samples;
  const RecordingSummary summary = parsed(read_file(path, Bytes(1 << 20)).value_or(""), samples);
  EXPECT_EQ(summary.damaged_bytes, 0);
  EXPECT_LT(samples.size(), 40U);
}

}  // namespace
}  // namespace stoker
