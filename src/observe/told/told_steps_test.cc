#include "observe/told/told_steps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>

#include "observe/told/told_watch.h"

namespace stoker {
namespace {

constexpr std::int64_t kMilli = 1'000'000;

const std::string kHeader =
    R"({"format":"stoker-observation","schema_version":[1,0],"batch":8,)"
    R"("columns":["step","epoch","kind","end","start_ns","gap_ns","total_ns","wait_ns","samples"]})"
    "\n";

/// Steps of 30 ms after waits of 10 ms, written as one block that ends at `clock_ns`.
std::string block(int from, int count, std::int64_t clock_ns, const char* kind = "train") {
  std::string text = "{\"block\":0,\"rows\":" + std::to_string(count) +
                     ",\"lost\":0,\"clock_ns\":" + std::to_string(clock_ns) + "}\n";
  for (int i = from; i < from + count; ++i) {
    const std::int64_t start = (40 * i + 10) * kMilli;
    text += "[" + std::to_string(i) + ",1,\"" + kind + "\",\"ok\"," + std::to_string(start) + "," +
            std::to_string(10 * kMilli) + "," + std::to_string(30 * kMilli) + "," +
            std::to_string(10 * kMilli) + ",8]\n";
  }
  return text;
}

/// The clock when step `last` had ended, of a recording that began at `zero`.
std::int64_t ended(std::int64_t zero, int last) { return zero + 40 * (last + 1) * kMilli; }

TEST(ToldSteps, CountsAsAnObservationDoes) {
  ToldSteps steps(0);
  steps.take(kHeader + block(0, 100, ended(5000 * kMilli, 99)));
  const Told told = steps.told();
  EXPECT_TRUE(steps.known());
  EXPECT_EQ(told.kind, static_cast<std::int64_t>(ToldKind::kObservation));
  // The first ten warm up.
  EXPECT_EQ(told.steps, 90);
  EXPECT_EQ(told.ns, 90 * 40 * kMilli);
  EXPECT_EQ(told.wait_ns, 90 * 10 * kMilli);
  EXPECT_EQ(told.samples, 90 * 8);
}

TEST(ToldSteps, NumbersThatNoRunHasAreCutAtTheEndOfTheRange) {
  constexpr const char* kMost = "9223372036854775807";
  std::string text = kHeader + R"({"block":0,"rows":60,"lost":0,"clock_ns":1e300})" + "\n";
  for (int i = 0; i < 60; ++i) {
    text += "[1,1,\"train\",\"ok\"";
    for (int column = 0; column < 5; ++column) text += std::string(",") + kMost;
    text += "]\n";
  }
  ToldSteps steps(0);
  steps.take(text);
  EXPECT_EQ(steps.told().steps, 60);
  EXPECT_GT(steps.told().ns, 0);

  ToldSteps reports(0);
  reports.take(
      "{\"monotonic\":1,\"step\":0}\n{\"monotonic\":1e300,\"step\":1e300,"
      "\"samples\":1e300}\n");
  EXPECT_EQ(reports.told().steps, std::numeric_limits<std::int64_t>::max());
}

TEST(ToldSteps, APieceMayEndAnywhere) {
  const std::string text = kHeader + block(0, 20, ended(0, 19)) + block(20, 20, ended(0, 39)) +
                           block(40, 5, ended(0, 44), "validation");
  ToldSteps whole(0);
  whole.take(text);
  for (std::size_t size = 1; size < 40; ++size) {
    ToldSteps pieces(0);
    for (std::size_t at = 0; at < text.size(); at += size) pieces.take(text.substr(at, size));
    EXPECT_EQ(pieces.told(), whole.told()) << size;
  }
  EXPECT_EQ(whole.told().steps, 40 - 8);
  EXPECT_EQ(whole.told().validation_steps, 5);
  EXPECT_EQ(whole.told().validation_ns, 5 * 40 * kMilli);
}

TEST(ToldSteps, StepsBeforeTheWatchDoNotCount) {
  const std::int64_t zero = 7000 * kMilli;
  // Step 50 begins 2010 ms after the recording did.
  ToldSteps steps(zero + 2000 * kMilli);
  steps.take(kHeader + block(0, 100, ended(zero, 99)));
  EXPECT_EQ(steps.told().steps, 50);
}

TEST(ToldSteps, DamageIsPassedOver) {
  ToldSteps steps(0);
  std::string text = kHeader + block(0, 60, ended(0, 59));
  // A row in the middle loses its end, another has a word for a number.
  const std::size_t row = text.find("\n[30,");
  text.replace(row, 12, "\n[30");
  text.replace(text.find("[40,1,\"train\",\"ok\","), 19, "[40,1,\"train\",\"ok\",x");
  steps.take(text + "{\"block\":1,\"rows\":\n");
  EXPECT_EQ(steps.told().steps, 58 - 10);
}

TEST(ToldSteps, WhatFollowsAGapBeginsWithABlock) {
  ToldSteps steps(0);
  steps.take(kHeader);
  steps.skip();
  steps.take("0000,8]\n[7,1,\"train\",\"ok\",1,1,1,1,8]\n" + block(1000, 4, ended(0, 1003)));
  // The loop's first steps were not seen: none of these warms up.
  EXPECT_EQ(steps.told().steps, 4);
}

TEST(ToldSteps, ReportsTellStepsAndTheirTime) {
  ToldSteps steps(0);
  steps.take(
      "{\"monotonic\": 100.0, \"step\": 10, \"samples\": 320}\n"
      "{\"monotonic\": 104.0, \"step\": 50, \"samples\": 1280, \"loss\": 0.5}\n");
  const Told told = steps.told();
  EXPECT_EQ(told.kind, static_cast<std::int64_t>(ToldKind::kReports));
  EXPECT_EQ(told.steps, 40);
  EXPECT_EQ(told.ns, 4000 * kMilli);
  EXPECT_EQ(told.samples, 1280);
  EXPECT_EQ(told.wait_ns, 0);
}

TEST(ToldSteps, OtherFilesAreForeign) {
  for (const char* text : {"loss 0.3\n", "{\"loss\": 0.3}\n", "[1, 2]\n", "\n", "\x80\x02}\n"}) {
    ToldSteps steps(0);
    steps.take(text);
    EXPECT_TRUE(steps.foreign()) << text;
    EXPECT_FALSE(steps.known());
    EXPECT_EQ(steps.told(), Told{});
  }
}

TEST(ToldWatch, FindsTheFileThatAProcessAppendsTo) {
  const std::string path = ::testing::TempDir() + "told_watch.obs.jsonl";
  ::unlink(path.c_str());
  const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ASSERT_GE(handle, 0);
  ToldWatch watch("/proc/self", 0);
  EXPECT_EQ(watch.poll(), Told{});
  const std::string first = kHeader + block(0, 20, ended(0, 19));
  ASSERT_EQ(::write(handle, first.data(), first.size()), std::ssize(first));
  EXPECT_EQ(watch.poll().steps, 16);
  const std::string more = block(20, 40, ended(0, 59));
  ASSERT_EQ(::write(handle, more.data(), more.size()), std::ssize(more));
  ::close(handle);
  // Its own handle stays, also where the process has closed the file.
  EXPECT_EQ(watch.poll().steps, 50);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace stoker
