#include "json/repair.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace stoker::json {
namespace {

TEST(Repair, WholeJsonStaysAsItIs) {
  const std::string text =
      R"({"a": [1, -2.5e+10, true, false, null, "inf \u00e4 \" \\ NaN"], "Infinity": {}})";
  const Repaired same = repaired(text);
  EXPECT_EQ(same.text, text);
  EXPECT_EQ(same.count(), 0);
}

TEST(Repair, WordsForNoNumberBecomeNull) {
  const Repaired r = repaired(R"({"a": inf, "b": [-inf, NaN, -Infinity, nan, None], "c": True})");
  EXPECT_EQ(r.text, R"({"a": null, "b": [null, null, null, null, null], "c": true})");
  EXPECT_EQ(r.values, 7);
  EXPECT_TRUE(parse(r.text).has_value());
}

TEST(Repair, StringsBecomeValid) {
  const Repaired r = repaired("{\"C:\\dir\\x\": \"a\tb\xff\\u12\"}");
  EXPECT_EQ(r.text, R"({"C:\\dir\\x": "a\u0009b?\\u12"})");
  EXPECT_EQ(r.strings, 5);
  ASSERT_TRUE(parse(r.text).has_value());
  EXPECT_EQ(parse(r.text)->items()[0].key, R"(C:\dir\x)");
}

TEST(Repair, OtherDamageStays) {
  for (const char* text : {"{\"a\": ", "[1, 2", "{\"a\": nonsense}", "\"open", "\"open\\"})
    EXPECT_FALSE(parse(repaired(text).text).has_value()) << text;
}

}  // namespace
}  // namespace stoker::json
