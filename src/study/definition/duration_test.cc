#include "study/definition/duration.h"

#include <gtest/gtest.h>

namespace stoker::study {
namespace {

TEST(Duration, IsReadInTheWaysThatPeopleWriteIt) {
  EXPECT_EQ(parse_seconds("90"), 90);
  EXPECT_EQ(parse_seconds("0.5s"), 0.5);
  EXPECT_EQ(parse_seconds("10min"), 600);
  EXPECT_EQ(parse_seconds("1h30min"), 5400);
  EXPECT_EQ(parse_seconds("1h 30m"), 5400);
  EXPECT_EQ(parse_seconds("2d"), 172800);
  EXPECT_EQ(parse_seconds("1:30:00"), 5400);
  EXPECT_EQ(parse_seconds("05:00"), 300);
  EXPECT_EQ(parse_seconds("2-12:00:00"), 216000);
}

TEST(Duration, AnythingElseIsNone) {
  for (const char* text : {"", "soon", "10 parsecs", "-5s", "1:2:3:4", "1h30x", ".", "1e308:00",
                           "99999999999999999999d", "40000000d", "9223372036854775807-0:00:00"})
    EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
}

TEST(Duration, IsWrittenAsSlurmTakesIt) {
  EXPECT_EQ(clock_text(600), "0:10:00");
  EXPECT_EQ(clock_text(0.2), "0:00:01");
  EXPECT_EQ(clock_text(216000), "2-12:00:00");
  EXPECT_EQ(clock_text(36525 * 86400.0), "36525-0:00:00");
}

}  // namespace
}  // namespace stoker::study
