#include "observe/record/varint.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace stoker::record {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

std::string unsigned_bytes(std::uint64_t value) {
  std::string out;
  put(out, value);
  return out;
}

std::string signed_bytes(std::int64_t value) {
  std::string out;
  put_signed(out, value);
  return out;
}

TEST(Varint, IsTheLeb128OfDwarf) {
  // DWARF 5, table 7.7, and the example of 624,485 in appendix C.
  EXPECT_EQ(unsigned_bytes(2), "\x02");
  EXPECT_EQ(unsigned_bytes(127), "\x7F");
  EXPECT_EQ(unsigned_bytes(128), "\x80\x01");
  EXPECT_EQ(unsigned_bytes(129), "\x81\x01");
  EXPECT_EQ(unsigned_bytes(12'857), "\xB9\x64");
  EXPECT_EQ(unsigned_bytes(624'485), "\xE5\x8E\x26");
  EXPECT_EQ(unsigned_bytes(~0ULL), std::string(9, '\xFF') + "\x01");
}

TEST(Varint, SignsAreFolded) {
  // 0, -1, 1, -2 are 0, 1, 2, 3.
  EXPECT_EQ(signed_bytes(0), std::string(1, '\0'));
  EXPECT_EQ(signed_bytes(-1), "\x01");
  EXPECT_EQ(signed_bytes(1), "\x02");
  EXPECT_EQ(signed_bytes(-2), "\x03");
  EXPECT_EQ(signed_bytes(Limits::max()), "\xFE" + std::string(8, '\xFF') + "\x01");
  EXPECT_EQ(signed_bytes(Limits::min()), std::string(9, '\xFF') + "\x01");
}

TEST(Varint, ComesBack) {
  std::string out;
  std::vector<std::int64_t> values{0, 1, -1, 63, -64, 64, -65, Limits::max(), Limits::min()};
  for (int bit = 0; bit < 63; ++bit) {
    for (const std::int64_t off : {-1, 0, 1}) values.push_back((std::int64_t{1} << bit) + off);
  }
  for (const std::int64_t value : values) put_signed(out, value);
  Varints in(out);
  for (const std::int64_t value : values) ASSERT_EQ(in.take_signed(), value);
  EXPECT_TRUE(in.good());
  EXPECT_TRUE(in.at_end());
}

TEST(Varint, WhatIsCutOrTooLongIsNotGood) {
  Varints cut("\x80");
  EXPECT_EQ(cut.take(), 0U);
  EXPECT_FALSE(cut.good());
  EXPECT_EQ(cut.take(), 0U);  // and stays so
  Varints long_one(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"));
  EXPECT_EQ(long_one.take(), 0U);
  EXPECT_FALSE(long_one.good());
}

}  // namespace
}  // namespace stoker::record
