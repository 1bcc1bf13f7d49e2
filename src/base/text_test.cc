#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/random.h"

namespace stoker {
namespace {

/// A code point as UTF-8 by the bit patterns of RFC 3629, also one that it forbids.
std::string utf8(std::uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

/// Whether bytes are UTF-8 by the table of RFC 3629, section 4.
bool is_utf8(std::string_view text) {
  const auto in = [&](std::size_t i, int low, int high) {
    return i < text.size() && static_cast<unsigned char>(text[i]) >= low &&
           static_cast<unsigned char>(text[i]) <= high;
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto rest = [&](std::size_t first, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) {
        if (!in(i + first + k, 0x80, 0xBF)) return false;
      }
      return true;
    };
    if (in(i, 0x00, 0x7F)) i += 1;
    else if (in(i, 0xC2, 0xDF) && rest(1, 1)) i += 2;
    else if (in(i, 0xE0, 0xE0) && in(i + 1, 0xA0, 0xBF) && rest(2, 1)) i += 3;
    else if (in(i, 0xED, 0xED) && in(i + 1, 0x80, 0x9F) && rest(2, 1)) i += 3;
    else if (in(i, 0xE1, 0xEF) && !in(i, 0xED, 0xED) && rest(1, 2)) i += 3;
    else if (in(i, 0xF0, 0xF0) && in(i + 1, 0x90, 0xBF) && rest(2, 2)) i += 4;
    else if (in(i, 0xF1, 0xF3) && rest(1, 3)) i += 4;
    else if (in(i, 0xF4, 0xF4) && in(i + 1, 0x80, 0x8F) && rest(2, 2)) i += 4;
    else return false;
  }
  return true;
}

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

TEST(Printable, HalvesOfUtf16AreNoText) {
  // Python writes the bytes of a path that is no UTF-8 as such halves into a pickle.
  EXPECT_EQ(printable(utf8(0xD800)), "???");
  EXPECT_EQ(printable("a" + utf8(0xDFFF) + "b"), "a???b");
  EXPECT_EQ(printable(utf8(0xD7FF) + utf8(0xE000)), utf8(0xD7FF) + utf8(0xE000));
}

TEST(Printable, WhateverTheBytesTheResultIsUtf8) {
  Random random(11);
  constexpr unsigned char kOdd[] = {0x00, 0x41, 0x7F, 0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xE2,
                                    0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF, 0xA0, 0x9F, 0x90};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (std::uint64_t length = random.below(9); bytes.size() < length;)
      bytes += static_cast<char>(random.below(4) == 0 ? random.below(256)
                                                      : kOdd[random.below(std::size(kOdd))]);
    ASSERT_TRUE(is_utf8(printable(bytes))) << round;
    if (is_utf8(bytes) && bytes.find_first_of("\x7F") == std::string::npos) {
      ASSERT_TRUE(is_utf8(printable_lines(bytes))) << round;
    }
  }
}

TEST(Sizes, AreReadBackAsTheyAreShown) {
  Random random(5);
  for (int round = 0; round < 20'000; ++round) {
    const auto size = static_cast<std::int64_t>(std::exp2(random.uniform(0, 50)));
    const std::string text = human_bytes(Bytes(size));
    const double shown = std::strtod(text.c_str(), nullptr);
    if (text.find("TiB") == std::string::npos) {
      ASSERT_LT(shown, 1024) << text;
    }
    // One digit behind the point of a number that is 1 or more: half of a tenth, relative.
    const auto back = parse_bytes(text);
    ASSERT_TRUE(back) << text;
    ASSERT_NEAR(static_cast<double>(back->count()) / static_cast<double>(size), 1, 0.05) << text;
  }
  EXPECT_EQ(human_bytes(Bytes(1024 * 1024 - 1)), "1.0 MiB");
  EXPECT_EQ(human_bytes(Bytes(1023)), "1023 B");
  EXPECT_EQ(human_bytes(Bytes((1LL << 40) - 1)), "1.00 TiB");
}

TEST(Times, NoUnitIsWrittenThatTheNextOneBegins) {
  EXPECT_EQ(human_time(Nanos(999'400)), "999 us");
  EXPECT_EQ(human_time(Nanos(999'600)), "1.0 ms");
  EXPECT_EQ(human_time(kMillisecond * 99.94), "99.9 ms");
  EXPECT_EQ(human_time(kMillisecond * 99.96), "100 ms");
  EXPECT_EQ(human_time(kMillisecond * 999.4), "999 ms");
  EXPECT_EQ(human_time(kMillisecond * 999.6), "1.0 s");
  EXPECT_EQ(human_time(kSecond * 9.96), "10 s");
  EXPECT_EQ(human_time(kSecond * 119.4), "119 s");
  EXPECT_EQ(human_time(kSecond * 119.6), "2 min 00 s");
  EXPECT_EQ(human_time(kSecond * 3599.6), "1 h 00 min");
  EXPECT_EQ(human_time(kSecond * 200000.0), "2.3 days");
}

TEST(Commas, StandBeforeEachThreeDigitsFromTheEnd) {
  Random random(3);
  for (int round = 0; round < 5'000; ++round) {
    const auto number = static_cast<std::int64_t>(random.next()) >> random.below(64);
    std::string plain;
    const std::string text = with_commas(number);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool expected = (text.size() - i) % 4 == 0 && i > (number < 0 ? 1 : 0);
      ASSERT_EQ(text[i] == ',', expected) << text;
      if (text[i] != ',') plain += text[i];
    }
    ASSERT_EQ(plain, std::to_string(number));
  }
  EXPECT_EQ(with_commas(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Split, KeepsEmptyParts) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split("a,,b,", ','), (Words{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), Words{""});
}

}  // namespace
}  // namespace stoker
