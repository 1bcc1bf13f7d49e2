#include "report/model/watch_screen.h"

#include <gtest/gtest.h>

#include "diagnosis/test_job.h"

namespace stoker {
namespace {

/// Characters of UTF-8 text.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

JobTimeline played() {
  test_job::MadeJob job;
  job.workers = {{0.8, 0, WaitKind::kPoll}, {0.8, 0, WaitKind::kPoll}};
  job.seconds = 90;
  return job.play();
}

TEST(WatchScreen, ALineOfBlocksShowsTheLastValues) {
  EXPECT_EQ(sparkline({0, 0.5, 1}, 1, 3), "▁▅█");
  EXPECT_EQ(sparkline({0, 0.5, 1}, 1, 5), "  ▁▅█");
  EXPECT_EQ(sparkline({0, 0.5, 1}, 1, 2), "▅█");
  EXPECT_EQ(sparkline({-1, 7}, 1, 2), " █");
  EXPECT_EQ(sparkline({}, 1, 2), "  ");
}

TEST(WatchScreen, ShowsTheLastMinuteOnEightyColumns) {
  const JobTimeline t = played();
  const auto lines = screen_lines({&t, "process 7", "Too few workers.", 80, 24});
  ASSERT_GT(lines.size(), 7U);
  EXPECT_EQ(lines[0].substr(0, 9), "process 7");
  EXPECT_EQ(lines[1], "Too few workers.");
  bool data = false, gpu = false;
  for (const std::string& line : lines) {
    EXPECT_LE(columns(line), 80U) << line;
    data = data || (line.starts_with("data") && line.ends_with("70 %"));
    gpu = gpu || line.starts_with("GPU");
  }
  EXPECT_TRUE(data);
  EXPECT_FALSE(gpu);  // there is none
}

TEST(WatchScreen, AnySizeOfTerminalHoldsIt) {
  const JobTimeline t = played();
  for (const std::size_t width : {1U, 8U, 20U, 33U, 80U, 300U}) {
    for (const std::size_t height : {1U, 3U, 24U}) {
      const auto lines =
          screen_lines({&t, "process 7 (python train.py)", std::string(200, 'x'), width, height});
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(columns(line), width) << line;
    }
  }
}

}  // namespace
}  // namespace stoker
