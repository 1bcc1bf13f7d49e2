#include "snapshot/kineto_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stoker {
namespace {

std::string refusal(const std::string& content) {
  const auto memory = parse_kineto_memory(content, "t");
  return memory ? "was read" : memory.error().text();
}
std::string event(int time, std::int64_t bytes, const std::string& more = "", int type = 1) {
  return R"({"ph":"i","s":"t","name":"[memory]","pid":1,"tid":1,"ts":)" + std::to_string(time) +
         R"(,"args":{"Device Type":)" + std::to_string(type) + R"(,"Device Id":0,"Bytes":)" +
         std::to_string(bytes) + more + "}}";
}

Result<KinetoMemory> memory_of_file(const std::filesystem::path& path) {
  KinetoMemorySink sink;
  const TraceReading reading = TRY(read_trace_file(path, sink));
  return sink.memory(reading, path.string());
}

TEST(KinetoMemory, EventsByTimeAndDevice) {
  const std::string trace =
      R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"x"}],"traceEvents":[)" +
      event(30, -1024) + "," + event(10, 512, R"(,"Addr":7,"Total Allocated":600)") +
      R"(,{"name":"aten::add","ts":5,"args":{"Bytes":9,"list":[1,{"Bytes":3}]}},)" +
      event(20, 1024) + "," + event(1, 4, "", 0) + R"(],"traceName":"y"})";
  const auto memory = parse_kineto_memory(trace, "t");
  ASSERT_TRUE(memory) << memory.error().text();
  ASSERT_EQ(memory->events.size(), 3u);
  EXPECT_EQ(memory->events[0].bytes, 512);
  EXPECT_EQ(memory->events[0].address, 7);
  EXPECT_EQ(memory->events[0].total_allocated, 600);
  EXPECT_FALSE(memory->events[0].total_reserved);
  EXPECT_EQ(memory->events[2].bytes, -1024);
  EXPECT_EQ(memory->host_events, 1);
  EXPECT_EQ(memory->reading.events, 5);
  // A bare list of events is a trace too.
  EXPECT_EQ(parse_kineto_memory("[" + event(1, 512) + "]", "t")->events.size(), 1u);
}

TEST(KinetoMemory, WhatIsNotThereIsNamed) {
  EXPECT_NE(refusal("{").find("not whole JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1}").find("key traceEvents is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"traceEvents":[{"name":"k"}]})").find("profile_memory=True"),
            std::string::npos);
}

TEST(KinetoMemory, WhatOtherWritersDoIsUnderstood) {
  // Numbers in quotes, bytes as a real number, no time.
  const auto memory = parse_kineto_memory(
      R"([{"name":"[memory]","ts":"5.5","args":{"Device Type":1,"Device Id":0,"Bytes":"1024"}},)"
      R"({"name":"[memory]","ts":3,"args":{"Device Type":1,"Device Id":0,"Bytes":2048.0}},)"
      R"({"name":"[memory]","args":{"Device Type":1,"Device Id":0,"Bytes":-1024}},)"
      R"({"name":"[memory]","ts":[],"args":7},{"name":"[memory]"}])",
      "t");
  ASSERT_TRUE(memory) << memory.error().text();
  ASSERT_EQ(memory->events.size(), 3u);
  EXPECT_EQ(memory->events[0].bytes, 2048);
  EXPECT_EQ(memory->events[1].bytes, -1024);  // where it stands: behind the event of time 3
  EXPECT_EQ(memory->events[2].bytes, 1024);
  EXPECT_EQ(memory->untimed_events, 1);
  EXPECT_EQ(memory->broken_events, 2);
}

TEST(KinetoMemory, AbsurdSizesCostTheirEventsAlone) {
  std::string text = "[";
  for (int i = 0; i < 20; ++i) {
    for (const char* bytes : {"4.6e15", "-9223372036854775808", "1e308"})
      text += std::string(R"({"name":"[memory]","ts":1,"args":{"Device Type":1,"Bytes":)") + bytes +
              "}},";
  }
  text += R"({"name":"[memory]","ts":2,"args":{"Device Type":1,"Bytes":2048}}])";
  const auto memory = parse_kineto_memory(text, "t");
  ASSERT_TRUE(memory) << memory.error().text();
  ASSERT_EQ(memory->events.size(), 1u);
  EXPECT_EQ(memory->broken_events, 60);
  EXPECT_EQ(compare_with_kineto(*memory).same_size, 1);
}

TEST(KinetoMemory, ATraceThatEndsEarlyIsReadAsFarAsItGoes) {
  std::string whole = R"({"schemaVersion":1,"traceEvents":[)";
  for (int i = 0; i < 40; ++i) whole += (i == 0 ? "" : ",") + event(i, i % 2 == 0 ? 512 : -512);
  whole += R"(],"traceName":"y"})";
  const auto half = parse_kineto_memory(std::string_view(whole).substr(0, whole.size() / 2), "t");
  ASSERT_TRUE(half) << half.error().text();
  EXPECT_TRUE(half->reading.cut);
  EXPECT_GT(half->events.size(), 15u);
  EXPECT_LT(half->events.size(), 21u);
  EXPECT_EQ(half->reading.damaged_places, 0);
  for (std::size_t bytes = 200; bytes < whole.size(); ++bytes)
    ASSERT_TRUE(parse_kineto_memory(std::string_view(whole).substr(0, bytes), "t")) << bytes;
}

TEST(KinetoMemory, DamageInTheMiddleCostsTheEventThatItStandsIn) {
  for (const char* damage : {R"({"ph":"X",,})", R"({"name":"x" "ts":3})", R"({"name":}, "b")"}) {
    const auto memory = parse_kineto_memory(
        R"({"traceEvents":[)" + event(1, 512) + "," + damage + "," + event(2, 512) + "," +
            event(3, -512) + "," + damage + "," + event(4, 1024) + R"(],"traceName":"y"})",
        "t");
    ASSERT_TRUE(memory) << damage << memory.error().text();
    EXPECT_EQ(memory->events.size(), 4u) << damage;
    EXPECT_EQ(memory->reading.damaged_places, 2) << damage;
    EXPECT_FALSE(memory->reading.cut) << damage;
  }
}

TEST(KinetoMemory, BlocksFromBeforeTakeTheirPlace) {
  // Frees one block from before, allocates one that it keeps.
  const auto memory = parse_kineto_memory("[" + event(1, -4096) + "," + event(2, 4096) + "," +
                                              event(3, 512) + "," + event(4, -512) + "]",
                                          "t");
  const KinetoSummary summary = summarize(*memory);
  EXPECT_EQ(summary.freed_from_before, 1);
  EXPECT_EQ(summary.kept, 1);
  EXPECT_EQ(summary.rise, Bytes{512});
  const KinetoComparison comparison = compare_with_kineto(*memory);
  EXPECT_EQ(comparison.same_size, 2);
  EXPECT_EQ(comparison.late_segments, 0);
  EXPECT_EQ(comparison.reserved, 2 * kMiB);
}

TEST(KinetoMemory, ManyBlocksFromBefore) {
  // 400,000 blocks from before are freed and allocated anew. With work that grows with the square
  // of their number this test alone takes longer than all others together.
  constexpr std::int64_t kBlocks = 400'000;
  KinetoMemory memory;
  memory.events.resize(std::size_t{2 * kBlocks});
  for (std::size_t i = 0; i < memory.events.size(); ++i)
    memory.events[i].bytes = i < std::size_t{kBlocks} ? -512 : 512;
  const KinetoComparison many = compare_with_kineto(memory);
  EXPECT_EQ(many.allocations, kBlocks);
  EXPECT_EQ(many.same_size, kBlocks);
  EXPECT_EQ(many.late_segments, 0);
  EXPECT_EQ(many.reserved, Bytes{kBlocks / 4096 * 2 * kMiB.count()} + 2 * kMiB);
}

std::filesystem::path shared_trace(const char* name) {
  const char* shared = std::getenv("STOKER_SHARED");
  const std::filesystem::path folder =
      shared ? std::filesystem::path(shared)
             : std::filesystem::path(STOKER_SOURCE_DIR).parent_path() / "shared";
  return folder / "data/traces" / name;
}

TEST(KinetoMemory, ARealTraceWithTotalsAndAddresses) {
  const auto path = shared_trace("tracelens_h100_bert_small.json.gz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto memory = memory_of_file(path);
  ASSERT_TRUE(memory) << memory.error().text();
  ASSERT_EQ(memory->events.size(), 218u);
  EXPECT_EQ(summarize(*memory).total_mismatches, 0);
  const KinetoComparison c = compare_with_kineto(*memory);
  EXPECT_EQ(c.same_size, c.allocations);
  EXPECT_EQ(c.same_total, c.with_total);
  EXPECT_EQ(c.late_segments, 0);
}

TEST(KinetoMemory, RealTracesOfTrainingComeToRest) {
  for (const char* name : {"kineto_resnet50_v100_workers0.pt.trace.json.gz",
                           "kineto_resnet50_v100_workers4.pt.trace.json.gz"}) {
    const auto path = shared_trace(name);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    const auto memory = memory_of_file(path);
    ASSERT_TRUE(memory) << memory.error().text();
    const KinetoComparison c = compare_with_kineto(*memory);
    EXPECT_EQ(c.late_segments, 0) << name;
    // The heap before the trace is not known, so some blocks come with another slack.
    EXPECT_GT(static_cast<double>(c.same_size), 0.9 * static_cast<double>(c.allocations)) << name;
  }
}

}  // namespace
}  // namespace stoker
