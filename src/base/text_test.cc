#include "base/text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Printable, NothingOfAFileSteersATerminal) {
  EXPECT_EQ(printable("plain, \xC3\xA4 and \xE2\x82\xAC"), "plain, \xC3\xA4 and \xE2\x82\xAC");
  EXPECT_EQ(printable("a\x1b[31mb\x07"), "a?[31mb?");
  EXPECT_EQ(printable("FITS\nFITS\tx\r"), "FITS?FITS?x?");
  EXPECT_EQ(printable_lines("a\n\tb\x1b]0;title\x07\r\n"), "a\n\tb?]0;title??\n");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m \x9B"
                      "31m"),
            "?31m ?31m")
      << "C1, as UTF-8 and as a byte";
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "cod.exe"),
            "?cod.exe")
      << "right-to-left override";
  EXPECT_EQ(printable("\xF0\x9F\x98"), "???") << "cut short";
  EXPECT_EQ(printable("\xC0\x9B"), "??") << "overlong";
}

TEST(Printable, JsonKeepsItsMeaning) {
  EXPECT_EQ(escaped("{\"a\": \"x\x7f\xC2\x9B\xE2\x80\xAEy\"}\n"),
            "{\"a\": \"x\\u007f\\u009b\\u202ey\"}\n");
  EXPECT_EQ(escaped("\xC3\xA4"), "\xC3\xA4");
}

}  // namespace
}  // namespace stoker
