#include "snapshot/pickle.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace stoker {
namespace {

using namespace std::string_literals;

Pickle parsed(std::string content) {
  auto pickle = Pickle::parse(std::move(content), "test");
  EXPECT_TRUE(pickle) << pickle.error().text();
  return std::move(*pickle);
}
std::string refusal(std::string content) {
  const auto pickle = Pickle::parse(std::move(content), "f");
  return pickle ? "was read" : pickle.error().text();
}

/// What src/snapshot/testdata/make_plain.py wrote with Python, in each protocol.
class FromPython : public testing::TestWithParam<int> {
 protected:
  static std::string content() {
    const std::filesystem::path path = std::filesystem::path(STOKER_SOURCE_DIR) /
                                       "src/snapshot/testdata" /
                                       ("plain.p" + std::to_string(GetParam()) + ".pickle");
    return read_file(path, kGiB).value();
  }
};

TEST_P(FromPython, NumbersOfEveryWidth) {
  const Pickle pickle = parsed(content());
  const PickleValue numbers = *pickle.root().find("numbers");
  const std::int64_t expected[] = {0,
                                   1,
                                   255,
                                   256,
                                   65535,
                                   65536,
                                   -1,
                                   -70000,
                                   std::int64_t{1} << 31,
                                   -(std::int64_t{1} << 31),
                                   std::int64_t{1} << 40,
                                   std::int64_t{1} << 59,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
  ASSERT_EQ(numbers.size(), std::size(expected) + 2);
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(numbers[i].as_int(), expected[i]);
  EXPECT_EQ(numbers[14].kind(), PickleKind::kHugeInt);
  EXPECT_EQ(numbers[15].kind(), PickleKind::kHugeInt);
  const PickleValue floats = *pickle.root().find("floats");
  EXPECT_EQ(floats[0].as_number(), 0.0);
  EXPECT_EQ(floats[1].as_number(), 1.5);
  EXPECT_EQ(floats[2].as_number(), -2.25e300);
}

TEST_P(FromPython, SwitchesTextsAndTuples) {
  const Pickle pickle = parsed(content());
  const PickleValue switches = *pickle.root().find("switches");
  EXPECT_EQ(switches[0].as_bool(), true);
  EXPECT_EQ(switches[1].as_bool(), false);
  EXPECT_TRUE(switches[2].is(PickleKind::kNone));
  const PickleValue texts = *pickle.root().find("texts");
  EXPECT_EQ(texts[0].as_string(), "");
  EXPECT_EQ(texts[1].as_string(), "\xc3\xa9");
  EXPECT_EQ(texts[2].as_string(), std::string(300, 'x'));
  const PickleValue tuples = *pickle.root().find("tuples");
  for (std::size_t n = 0; n < 5; ++n) {
    ASSERT_EQ(tuples[n].size(), n);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_EQ(tuples[n][i].as_int(), static_cast<std::int64_t>(i) + 1);
  }
}

TEST_P(FromPython, SharedRecordsStayOne) {
  const Pickle pickle = parsed(content());
  const PickleValue shared = *pickle.root().find("shared");
  EXPECT_EQ(shared[0].identity(), shared[1].identity());
  EXPECT_EQ(shared[1].find("line")->as_int(), 12);
  EXPECT_FALSE(shared[0].find("column"));
}

TEST_P(FromPython, LongListsAndWideDicts) {
  const Pickle pickle = parsed(content());
  const PickleValue records = *pickle.root().find("records");
  ASSERT_EQ(records.size(), 1100u);
  const auto a = pickle.key_id("a");
  ASSERT_TRUE(a);
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(records[i].find(*a)->as_int(), static_cast<std::int64_t>(i));
    ASSERT_EQ(records[i].find("b")->as_string(), std::to_string(i));
  }
  const PickleValue wide = *pickle.root().find("wide");
  ASSERT_EQ(wide.size(), 1100u);
  EXPECT_EQ(wide.find("1099")->as_int(), 1099);
  EXPECT_EQ(wide.key(7).as_string(), "7");
  EXPECT_EQ(wide.value(7).as_int(), 7);
  const PickleValue other = *pickle.root().find("other_keys");
  ASSERT_EQ(other.size(), 2u);
  EXPECT_EQ(other.key(0).as_int(), 1);
  EXPECT_EQ(other.find("two")->as_int(), 2);
}

INSTANTIATE_TEST_SUITE_P(Protocols, FromPython, testing::Values(2, 3, 4, 5));

/// {"a": [1, (2, 3)], "b": 1.5} in protocol 4, by hand.
const std::string kSmall =
    "\x80\x04\x95\x20\0\0\0\0\0\0\0}\x94(\x8c\x01"
    "a\x94]\x94(K\x01K\x02K\x03\x86\x94"
    "e\x8c\x01"
    "b\x94G\x3f\xf8\0\0\0\0\0\0u."s;

TEST(Pickle, CutAnywhereKeepsWhatCameBefore) {
  ASSERT_EQ(parsed(kSmall).root().find("b")->as_number(), 1.5);
  std::size_t with_number = 0;
  for (std::size_t length = 0; length < kSmall.size(); ++length) {
    const auto cut = Pickle::parse(kSmall.substr(0, length), "f");
    if (!cut) {  // before the first list or dict
      EXPECT_LE(length, kSmall.find('}'));
      EXPECT_TRUE(length == 0 || cut.error().text().find("cut short") != std::string::npos);
      continue;
    }
    EXPECT_TRUE(cut->cut());
    ASSERT_TRUE(cut->root().is(PickleKind::kDict)) << length;
    with_number += cut->root().find("b") ? 1 : 0;
  }
  EXPECT_EQ(with_number, 2u);  // without STOP, and without SETITEMS
  EXPECT_FALSE(parsed(kSmall).cut());
}

TEST(Pickle, WhatWouldRunCodeIsRefusedByName) {
  // os.system("echo") as an attacker would write it: GLOBAL, a tuple, REDUCE.
  EXPECT_EQ(refusal("\x80\x02"
                    "cos\nsystem\n(X\x04\0\0\0echotR."s),
            "f: opcode GLOBAL at byte 2 would import or run code; a memory snapshot is plain data, "
            "so this file is refused");
  const std::pair<const char*, std::string> hostile[] = {
      {"STACK_GLOBAL at byte 9", "\x80\x04\x8c\x02os\x8c\x01x\x93."s},
      {"REDUCE at byte 4", "\x80\x04)NR."s},
      {"BUILD at byte 4", "\x80\x02}Nb."s},
      {"INST at byte 2", "\x80\x02ios\nsystem\n."s},
      {"OBJ at byte 3", "\x80\x02(o."s},
      {"NEWOBJ at byte 4", "\x80\x02N)\x81."s},
      {"NEWOBJ_EX at byte 2", "\x80\x04\x92."s},
      {"EXT1 at byte 2", "\x80\x02\x82\x01."s},
      {"EXT2 at byte 2", "\x80\x02\x83\x01\0."s},
      {"EXT4 at byte 2", "\x80\x02\x84\x01\0\0\0."s},
      {"PERSID at byte 2", "\x80\x02Px\n."s},
      {"BINPERSID at byte 3", "\x80\x02NQ."s},
      {"NEXT_BUFFER at byte 2", "\x80\x05\x97."s}};
  for (const auto& [opcode, content] : hostile) {
    EXPECT_NE(refusal(content).find("opcode "s + opcode), std::string::npos)
        << opcode << ": " << refusal(content);
  }
}

TEST(Pickle, OtherFormatsAreNamed) {
  EXPECT_NE(refusal("PK\x03\x04rest").find("zip archive"), std::string::npos);
  EXPECT_NE(refusal("\x1f\x8b\x08").find("gzip"), std::string::npos);
  EXPECT_NE(refusal("{\"traceEvents\": []}").find("JSON"), std::string::npos);
  EXPECT_NE(refusal("").find("no pickle"), std::string::npos);
  EXPECT_NE(refusal("(lp0\n.").find("no pickle"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02I1\n.").find("opcode INT"), std::string::npos);
  EXPECT_NE(refusal("\x80\x06N.").find("protocol 6"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02\xff").find("unknown opcode 255 at byte 2"), std::string::npos);
}

TEST(Pickle, BrokenStacksAreErrors) {
  EXPECT_NE(refusal("\x80\x02.").find("STOP"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02NN.").find("STOP"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02u.").find("SETITEMS"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02}(Nu.").find("without a value"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02N(Ne.").find("something else"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02N\x86.").find("too few"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02](\x85.").find("too few"), std::string::npos);  // not across a mark
  EXPECT_NE(refusal("\x80\x02h\x05.").find("never put"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02Nr\xff\xff\xff\xff.").find("memo number"), std::string::npos);
  EXPECT_NE(refusal("\x80\x02X\xff\xff\xff\xff.").find("cut short"), std::string::npos);
}

TEST(Pickle, SharedListsAreNotExpanded) {
  // Thirty lists, each holding the one before twice: a thousand million paths, thirty lists.
  std::string content = "\x80\x02]q\0"s;
  for (int i = 1; i < 30; ++i) {
    content += "](h"s + static_cast<char>(i - 1) + "h" + static_cast<char>(i - 1) + "eq" +
               static_cast<char>(i) + "0";
  }
  // POP is not read, so keep every list on the stack in one tuple instead.
  std::string kept = "\x80\x02(]q\0"s;
  for (int i = 1; i < 30; ++i) {
    kept += "](h"s + static_cast<char>(i - 1) + "h" + static_cast<char>(i - 1) + "eq" +
            static_cast<char>(i);
  }
  const Pickle pickle = parsed(kept + "t.");
  EXPECT_LT(pickle.memory(), 10'000u);
  EXPECT_EQ(pickle.root().size(), 30u);
  EXPECT_EQ(pickle.root()[29][0].identity(), pickle.root()[29][1].identity());
  EXPECT_NE(refusal(content + ".").find("opcode POP"), std::string::npos);
}

TEST(Pickle, AListMayHoldItself) {
  const Pickle pickle = parsed("\x80\x02]q\0h\0a."s);
  EXPECT_EQ(pickle.root()[0].identity(), pickle.root().identity());
}

TEST(Pickle, MemoryIsBoundedByTheInput) {
  const std::string bomb = "\x80\x02(" + std::string(2'000'000, ']') + "t.";
  EXPECT_NE(refusal(bomb).find("times its size in memory"), std::string::npos);
}

TEST(Pickle, TheLastOfEqualKeysCounts) {
  const Pickle record = parsed("\x80\x02}(U\x01xK\x01U\x01xK\x02u."s);
  EXPECT_EQ(record.root().size(), 1u);
  EXPECT_EQ(record.root().find("x")->as_int(), 2);
  const Pickle pairs = parsed("\x80\x02}(K\x05K\x01U\x01xK\x01U\x01xK\x02u."s);
  EXPECT_EQ(pairs.root().find("x")->as_int(), 2);
}

}  // namespace
}  // namespace stoker
