#include "json/fields.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace stoker::json {
namespace {

const Value& document() {
  static const Value kDocument{{"format", "stoker-made"},
                               {"schema_version", {1, 4}},
                               {"n", 2.5},
                               {"whole", 7},
                               {"text", "x"},
                               {"yes", true},
                               {"none", nullptr},
                               {"list", {1, 2, 3}},
                               {"object", {{"inner", -1}}}};
  return kDocument;
}

/// The error of one reading, in full.
template <class Read>
std::string error_of(Read&& read) {
  Fields fields("f.json", "make it again");
  read(fields);
  return fields.good() ? "" : fields.error().text();
}

constexpr Format kMade{"stoker-made", 1, "made format", "make it again"};

TEST(Fields, GoodValuesAreRead) {
  Fields fields("f.json", "make it again");
  const Value& root = document();
  EXPECT_TRUE(fields.check_format(root, kMade));
  EXPECT_EQ(fields.number(root, "n", "", 0, 10), 2.5);
  EXPECT_EQ(fields.whole(root, "whole", "", 0, 10), 7);
  EXPECT_EQ(fields.integer(root, "n", "", 0, 10), 2);
  EXPECT_EQ(fields.text(root, "text", ""), "x");
  EXPECT_TRUE(fields.flag(root, "yes", ""));
  EXPECT_EQ(fields.list(root, "list", "", 3).size(), 3u);
  EXPECT_EQ(fields.number(fields.object(root, "object", ""), "inner", "object.", -1, 0), -1);
  EXPECT_TRUE(fields.status());
}

TEST(Fields, AbsentAndNullAreNotMeasured) {
  Fields fields("f.json", "make it again");
  const Value& root = document();
  for (const char* key : {"none", "absent"}) {
    EXPECT_FALSE(fields.maybe(root, key, "", 0, 1));
    EXPECT_FALSE(fields.bytes(root, key, ""));
    EXPECT_EQ(fields.otherwise(root, key, "", 0, 1, 0.25), 0.25);
    EXPECT_EQ(fields.maybe_text(root, key, ""), "");
    EXPECT_TRUE(fields.flag(root, key, "", true));
    EXPECT_TRUE(fields.maybe_list(root, key, "", 1).is_array());
    EXPECT_TRUE(fields.maybe_object(root, key, "").is_object());
    std::int64_t count = 3;
    Nanos time{5};
    std::string text = "kept";
    fields.take(root, key, "", 0, 1, count);
    fields.take(root, key, "", time);
    fields.take(root, key, "", text);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(time, Nanos{5});
    EXPECT_EQ(text, "kept");
  }
  Nanos time{};
  fields.take(root, "n", "", time);
  EXPECT_EQ(time, Nanos{2.5e6});
  EXPECT_TRUE(fields.good());
}

TEST(Fields, WhatIsWrongIsNamedWithFileFieldAndCure) {
  const Value& root = document();
  const auto says = [](const std::string& text) {
    return "f.json: field " + text + "; make it again";
  };
  EXPECT_EQ(error_of([&](Fields& f) { f.number(root, "x", "a.", 0, 1); }),
            says("\"a.x\" is missing"));
  EXPECT_EQ(error_of([&](Fields& f) { f.number(root, "text", "", 0, 1); }),
            says("\"text\" is not a number"));
  EXPECT_EQ(error_of([&](Fields& f) { f.number(root["object"], "inner", "object.", 0, 1); }),
            says("\"object.inner\" is negative"));
  EXPECT_EQ(error_of([&](Fields& f) { f.number(root, "n", "", 3, 9); }),
            says("\"n\" is too small"));
  EXPECT_EQ(error_of([&](Fields& f) { f.number(root, "n", "", 0, 1); }),
            says("\"n\" is impossibly large"));
  EXPECT_EQ(error_of([&](Fields& f) { f.whole(root, "n", "", 0, 9); }),
            says("\"n\" is not a whole number"));
  EXPECT_EQ(error_of([&](Fields& f) { f.list(root, "list", "", 2); }),
            says("\"list\" is impossibly long"));
  EXPECT_EQ(error_of([&](Fields& f) { f.list(root, "n", "", 2); }), says("\"n\" is not a list"));
  EXPECT_EQ(error_of([&](Fields& f) { f.object(root, "n", ""); }), says("\"n\" is not an object"));
  EXPECT_EQ(error_of([&](Fields& f) { f.flag(root, "n", ""); }),
            says("\"n\" is not true or false"));
  EXPECT_EQ(error_of([&](Fields& f) { f.text(root, "n", ""); }), says("\"n\" is not a text"));
  EXPECT_EQ(indexed("a.", "runs", 3), "a.runs[3].");
}

TEST(Fields, TheFirstErrorIsKept) {
  EXPECT_EQ(error_of([](Fields& f) {
              f.refuse("a", "is odd");
              f.refuse("b", "is odd too");
            }),
            "f.json: field \"a\" is odd; make it again");
}

TEST(Fields, FormatAndVersionAreCheckedInOnePlace) {
  const auto check = [](const char* text, const Format& format = kMade) {
    Fields fields("f.json", "make it again");
    const Status status = fields.check_format(parse(text).value(), format);
    EXPECT_EQ(status.has_value(), fields.good());
    return status ? Error{ErrorCode::kAnswerIsNo, "", ""} : status.error();
  };
  EXPECT_EQ(check("[]").text(), "f.json: is no file of format stoker-made; make it again");
  EXPECT_EQ(check(R"({"format":"other"})").message,
            "is no file of format stoker-made; make it again");
  EXPECT_EQ(check("{}", {"stoker-made", 1, "", "", "is no made file"}).message, "is no made file");
  EXPECT_EQ(check(R"({"format":"stoker-made","schema_version":1})").message,
            "field \"schema_version\" is not [major, minor]; make it again");
  const Error newer = check(R"({"format":"stoker-made","schema_version":[2,0]})");
  EXPECT_EQ(newer.code, ErrorCode::kTooNew);
  EXPECT_EQ(newer.message,
            "is of made format 2, this program reads 1; update stoker or make it again");
}

}  // namespace
}  // namespace stoker::json
