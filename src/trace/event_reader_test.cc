#include "trace/event_reader.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

class Kept final : public TraceSink {
 public:
  void restart() override { events.clear(); }
  void take(const ProfilerEvent& event) override { events.push_back(event); }
  std::vector<ProfilerEvent> events;
};

TEST(EventReader, TimesAreWholeNanosecondsBeyondWhatADoubleOfTheEpochHolds) {
  Kept kept;
  const auto reading = read_trace_events(
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":"stream 7",)"
      R"("ts":4458676522718.702,"dur":108.515,"args":{"correlation":5,"grid":[1,2]}},)"
      R"({"ph":"X","name":"old","ts":1623142623460072,"dur":85,"pid":"x","tid":9}],"z":{"ts":1}})",
      "t", kept);
  ASSERT_TRUE(reading) << reading.error().text();
  EXPECT_EQ(reading->events, 2);
  ASSERT_EQ(kept.events.size(), 2u);
  EXPECT_EQ(kept.events[0].start_ns, 4458676522718702);
  EXPECT_EQ(kept.events[0].duration_ns, 108515);
  EXPECT_EQ(kept.events[0].thread, "stream 7");
  EXPECT_EQ(kept.events[0].process, "0");
  EXPECT_EQ(kept.events[0].arg("correlation"), 5);
  EXPECT_FALSE(kept.events[0].arg("grid"));
  EXPECT_EQ(kept.events[1].start_ns, 1623142623460072000);
  EXPECT_EQ(kept.events[1].process, "x");
  EXPECT_EQ(kept.events[1].thread, "9");
  EXPECT_TRUE(kept.events[1].args.empty());
}

TEST(EventReader, MicrosecondsOfTheEpochKeepTheirDecimals) {
  Kept kept;
  ASSERT_TRUE(read_trace_events(
      R"([{"ts":1694128201429795.123,"dur":0.001},{"ts":"1694128201429795.9996","dur":1e1},)"
      R"({"ts":-5.5,"dur":0}])",
      "t", kept));
  ASSERT_EQ(kept.events.size(), 3u);
  EXPECT_EQ(kept.events[2].start_ns, -5500);
  EXPECT_EQ(kept.events[0].start_ns, 1694128201429795123);
  EXPECT_EQ(kept.events[0].duration_ns, 1);
  EXPECT_EQ(kept.events[1].start_ns, 1694128201429796000);
  EXPECT_EQ(kept.events[1].duration_ns, 10'000);
}

TEST(EventReader, WhatNamesACollectiveIsKeptAsText) {
  Kept kept;
  ASSERT_TRUE(read_trace_events(R"([{"args":{"Process Group Name":"0","Seq":4,"stack":"long"}}])",
                                "t", kept));
  EXPECT_EQ(kept.events[0].text("Process Group Name"), "0");
  EXPECT_EQ(kept.events[0].arg("Seq"), 4);
  EXPECT_EQ(kept.events[0].text("stack"), "");
}

TEST(EventReader, ATimeThatNoClockHasIsNone) {
  Kept kept;
  ASSERT_TRUE(
      read_trace_events(R"([{"ts":1e300,"dur":9223372036854775807},{"ts":-1e19}])", "t", kept));
  ASSERT_EQ(kept.events.size(), 2u);
  EXPECT_FALSE(kept.events[0].start_ns);
  EXPECT_FALSE(kept.events[0].duration_ns);
  EXPECT_FALSE(kept.events[1].start_ns);
}

TEST(EventReader, DamageStartsTheEventsAnewOnce) {
  Kept kept;
  const auto reading = read_trace_events(
      R"([{"name":"a","ts":1},{"name":"b","ts":inf},{"name":"c","ts":3}])", "t", kept);
  ASSERT_TRUE(reading) << reading.error().text();
  ASSERT_EQ(kept.events.size(), 3u);
  EXPECT_EQ(kept.events[2].name, "c");
  EXPECT_EQ(reading->repaired, 1);
}

}  // namespace
}  // namespace stoker
