#include "report/text/timeline_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// Eight points that climb to 800 MiB, then the same falling.
Timeline hill() {
  Timeline timeline;
  for (int i = 1; i <= 8; ++i) timeline.points.push_back({0, i * 100 * kMiB, 800 * kMiB, {}});
  for (int i = 8; i >= 1; --i) timeline.points.push_back({0, i * 100 * kMiB, 800 * kMiB, {}});
  timeline.marks = {{"forward", 0}, {"backward", 8}};
  return timeline;
}

TEST(TimelineText, DrawsEighthsOfABlock) {
  EXPECT_EQ(timeline_text(hill(), {.columns = 16, .rows = 1}),
            "  ▁▂▃▄▅▆▇██▇▆▅▄▃▂▁  800.0 MiB reserved\n"
            "  |forward|backwar\n");
}

TEST(TimelineText, DrawsRowsInAsciiWithItsScale) {
  EXPECT_EQ(timeline_text(hill(), {.columns = 16, .rows = 2, .unicode = false}),
            "      .-+##+-.      800.0 MiB reserved\n"
            "  .-+##########+-.  0\n"
            "  |forward|backwar\n");
}

TEST(TimelineText, AColumnShowsTheLargestOfItsPoints) {
  Timeline timeline = hill();
  const std::string two = timeline_text(timeline, {.columns = 2, .rows = 1});
  EXPECT_EQ(two, "  ██  800.0 MiB reserved\n  ||\n");
  timeline.points.resize(1);
  timeline.marks.clear();
  EXPECT_EQ(timeline_text(timeline, {.columns = 4, .rows = 1}), "  ▁▁▁▁  800.0 MiB reserved\n  \n");
}

TEST(TimelineText, NothingForNothing) { EXPECT_EQ(timeline_text({}), ""); }

}  // namespace
}  // namespace stoker
