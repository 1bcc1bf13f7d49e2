#include "base/packed_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace stoker {
namespace {

std::string packed(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Text that does not compress to nothing, so that a cut leaves some.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919 % 10007) + " ";
  return text;
}

TEST(PackedFile, PlainAndPackedAreReadWhateverTheyAreCalled) {
  const auto plain = unpacked("hello", "f", kMiB);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->content, "hello");
  EXPECT_FALSE(plain->cut);
  EXPECT_EQ(unpacked("", "f", kMiB)->content, "");
  const auto whole = unpacked(packed("hello"), "f", kMiB);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->content, "hello");
  EXPECT_FALSE(whole->cut);
  // Two members in a row, and zeros behind the last.
  EXPECT_EQ(unpacked(packed("a") + packed("b") + std::string(8, '\0'), "f", kMiB)->content, "ab");
}

TEST(PackedFile, WhatComesBeforeACutOrADamageIsKept) {
  const std::string text = long_text();
  const std::string whole = packed(text);
  const auto half = unpacked(whole.substr(0, whole.size() / 2), "f", 16 * kMiB);
  ASSERT_TRUE(half) << half.error().text();
  EXPECT_TRUE(half->cut);
  EXPECT_GT(half->content.size(), text.size() / 4);
  EXPECT_EQ(half->content, text.substr(0, half->content.size()));
  const auto no_end = unpacked(whole.substr(0, whole.size() - 4), "f", 16 * kMiB);
  ASSERT_TRUE(no_end);
  EXPECT_TRUE(no_end->cut);
  EXPECT_EQ(no_end->content, text);
  std::string damaged = whole;
  damaged[whole.size() - 7] = static_cast<char>(damaged[whole.size() - 7] ^ 0x55);  // its checksum
  EXPECT_TRUE(unpacked(damaged, "f", 16 * kMiB)->cut);
}

TEST(PackedFile, NothingToReadAndTooMuchAreErrors) {
  EXPECT_NE(unpacked(packed("hello").substr(0, 5), "f", kMiB).error().text().find("cut short"),
            std::string::npos);
  EXPECT_NE(unpacked(packed(long_text()), "f", kKiB).error().text().find("decompresses to more"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker
