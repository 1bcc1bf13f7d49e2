#include "json/value.h"

#include <gtest/gtest.h>

#include <limits>

#include "json/text.h"

namespace stoker::json {
namespace {

TEST(JsonValue, LiteralsBecomeObjectsAndLists) {
  const Value value{
      {"name", "a"}, {"sizes", {1, 2.5}}, {"none", nullptr}, {"inner", {{"b", true}}}};
  EXPECT_EQ(value.dump(), R"({"name":"a","sizes":[1,2.5],"none":null,"inner":{"b":true}})");
  EXPECT_EQ(Value({1, "a"}).dump(), R"([1,"a"])");
  EXPECT_EQ(Value::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ((Value{{{"a", 1}}}).dump(), R"([{"a":1}])");
}

TEST(JsonValue, ContainersOfTheLibraryBecomeListsAndObjects) {
  EXPECT_EQ(Value(std::vector<std::string>{"x", "y"}).dump(), R"(["x","y"])");
  EXPECT_EQ(Value(std::map<std::string, int>{{"b", 2}, {"a", 1}}).dump(), R"({"a":1,"b":2})");
  EXPECT_EQ(or_null(std::optional<int>()).dump(), "null");
  EXPECT_EQ(or_null(std::optional<int>(3)).dump(), "3");
}

TEST(JsonValue, MembersKeepTheirOrderUntilTheyAreSorted) {
  Value value;
  value["z"] = 1;
  value["a"]["y"] = 2;
  value["a"]["b"].push_back(3);
  EXPECT_EQ(value.dump(), R"({"z":1,"a":{"y":2,"b":[3]}})");
  value.sort_keys();
  EXPECT_EQ(value.dump(), R"({"a":{"b":[3],"y":2},"z":1})");
  value.erase("a");
  EXPECT_EQ(value.dump(), R"({"z":1})");
}

TEST(JsonValue, NumbersAreWrittenShortest) {
  const auto text = [](const Value& value) { return value.dump(); };
  EXPECT_EQ(text(1.0), "1.0");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(1e300), "1e+300");
  EXPECT_EQ(text(-0.0), "-0.0");
  EXPECT_EQ(text(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(text(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(text('a' - 0), "97");
}

TEST(JsonValue, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(Value("a\xff\"\n").dump(), "\"a\xef\xbf\xbd\\\"\\n\"");
}

TEST(JsonValue, AnotherKindReadsAsNothing) {
  const Value text("7"), list = Value::array({1});
  EXPECT_EQ(text.as_double(), 0);
  EXPECT_EQ(text.as_integer(), 0);
  EXPECT_FALSE(text.as_bool());
  EXPECT_EQ(list.as_string(), "");
  EXPECT_EQ(text.size(), 0u);
  EXPECT_TRUE(text["key"].is_null());
  EXPECT_TRUE(list[5].is_null());
  EXPECT_EQ(list.find("key"), nullptr);
  EXPECT_EQ(text.begin(), text.end());
}

TEST(JsonValue, EqualityIsByValueNotByOrder) {
  EXPECT_EQ(Value(1), Value(1.0));
  EXPECT_NE(Value(1), Value(2));
  EXPECT_NE(Value(1), Value("1"));
  EXPECT_NE(Value(std::int64_t{-1}), Value(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(Value({{"a", 1}, {"b", 2}}), Value({{"b", 2}, {"a", 1}}));
  EXPECT_NE(Value({{"a", 1}}), Value({{"a", 1}, {"b", 2}}));
}

TEST(JsonValue, CopiesAreIndependent) {
  Value first{{"list", {1, 2}}};
  Value second = first;
  second["list"].push_back(3);
  EXPECT_EQ(first["list"].size(), 2u);
  EXPECT_EQ(second["list"].size(), 3u);
  const Value moved = std::move(second);
  EXPECT_EQ(moved["list"][2], 3);
}

}  // namespace
}  // namespace stoker::json
