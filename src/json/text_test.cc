#include "json/text.h"

#include <gtest/gtest.h>

namespace stoker::json {
namespace {

TEST(JsonText, WhatWasReadIsWrittenAgain) {
  for (const char* text :
       {R"({"b":1,"a":[true,null,"x",-2.5]})", "[]", "{}", "18446744073709551615",
        "-9223372036854775808", R"("\u0001é")", "[[[]]]", "0.30000000000000004"}) {
    const auto value = parse(text);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(value->dump(), text);
  }
}

TEST(JsonText, TheLastOfMembersOfOneNameCounts) {
  EXPECT_EQ(parse(R"({"a":1,"b":2,"a":3})")->dump(), R"({"a":3,"b":2})");
  std::string many = "{";
  for (int i = 0; i < 1000; ++i)
    many += "\"k" + std::to_string(i % 500) + "\":" + std::to_string(i) + ",";
  const auto value = parse(many + "\"last\":0}");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), 501u);
  EXPECT_EQ((*value)["k7"], 507);
  EXPECT_EQ(value->items()[7].key, "k7");
}

TEST(JsonText, DamageIsNoticed) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\" 1}", "nan", "1e999", "\"\xff\"", "[1] x", "01"}) {
    const auto value = parse(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error(), Damage::kNotJson) << text;
  }
}

TEST(JsonText, DepthIsLimited) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + "1" +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(parse(nested(8), 8));
  EXPECT_EQ(parse(nested(9), 8).error(), Damage::kTooDeep);
  EXPECT_TRUE(parse(nested(kMostDepth)));
  EXPECT_EQ(parse(nested(1'000'000)).error(), Damage::kTooDeep);
}

TEST(JsonText, ADocumentsErrorNamesFileAndCure) {
  const DocumentKind kind{"a probe file", "probe the folder again", 2};
  EXPECT_EQ(parse_document("{", "p.json", kind).error().text(),
            "p.json: is cut short or damaged (not valid JSON); probe the folder again");
  EXPECT_EQ(parse_document("[[[1]]]", "p.json", kind).error().text(),
            "p.json: is nested too deeply for a probe file");
  EXPECT_EQ(parse_document("[[1]]", "p.json", kind)->dump(), "[[1]]");
}

/// Writes what it is told.
class Recorder final : public Events {
 public:
  bool null() override { return note("null"); }
  bool boolean(bool value) override { return note(value ? "true" : "false"); }
  bool integer(std::int64_t value) override { return note(std::to_string(value)); }
  bool large_integer(std::uint64_t value) override {
    return note("large " + std::to_string(value));
  }
  bool real(double value) override { return note("real " + std::to_string(value)); }
  bool string(std::string& value) override { return note("'" + value + "'"); }
  bool key(std::string& value) override { return note(value + "="); }
  bool begin_object() override { return note("{"); }
  bool end_object() override { return note("}"); }
  bool begin_array() override { return note("["); }
  bool end_array() override { return note("]"); }

  std::string told, stop_at;

 private:
  bool note(const std::string& piece) {
    told += piece + " ";
    return piece != stop_at;
  }
};

TEST(JsonText, EventsComeInTheOrderOfTheText) {
  Recorder recorder;
  EXPECT_FALSE(read_events(R"({"a":[1,18446744073709551615,0.5,null,false],"b":"x"})", recorder));
  EXPECT_EQ(recorder.told,
            "{ a= [ 1 large 18446744073709551615 real 0.500000 null false ] b= 'x' } ");
}

TEST(JsonText, EventsTellWhereTheTextIsDamagedAndCanBeEnded) {
  Recorder recorder;
  const auto position = read_events("[1, 2, x]", recorder);
  ASSERT_TRUE(position);
  EXPECT_EQ(*position, 8u);
  Recorder stopped;
  stopped.stop_at = "2";
  EXPECT_FALSE(read_events("[1, 2, x]", stopped));
  EXPECT_EQ(stopped.told, "[ 1 2 ");
}

}  // namespace
}  // namespace stoker::json
