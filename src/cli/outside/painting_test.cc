#include "cli/outside/painting.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(Painting, VerdictsAndLimitsAreColouredAndNothingElse) {
  EXPECT_EQ(painted("FITS: 2 GiB\n  Limited by input\nplain FITS: no\n"),
            "\x1b[1;32mFITS:\x1b[0m 2 GiB\n  \x1b[1mLimited by input\x1b[0m\nplain FITS: no\n");
  EXPECT_EQ(painted("DOES NOT FIT: x"), "\x1b[1;31mDOES NOT FIT\x1b[0m: x");
  EXPECT_EQ(painted("2 BANDS MISSED\n"), "\x1b[1;31m2 BANDS MISSED\x1b[0m\n");
  EXPECT_EQ(painted("the model MISSED\n\n"), "the model MISSED\n\n");
}

TEST(Painting, LongLinesGoOnFurtherIn) {
  EXPECT_EQ(wrapped("  one two three four\nshort\n", 12),
            "  one two\n    three\n    four\nshort\n");
  EXPECT_EQ(wrapped("Next  1. one two three\n", 15),
            "Next  1. one\n         two\n         three\n");
  EXPECT_EQ(wrapped("unbreakableword\n", 5), "unbreakableword\n");
  EXPECT_EQ(wrapped("\xC3\xA4\xC3\xA4\xC3\xA4 b\n", 5), "\xC3\xA4\xC3\xA4\xC3\xA4 b\n");
}

}  // namespace
}  // namespace stoker::cli
