#include "study/definition/expression.h"

#include <gtest/gtest.h>

#include <map>

namespace stoker::study {
namespace {

const std::map<std::string, std::string, std::less<>> kValues{
    {"batch", "64"}, {"gpus", "4"}, {"optimizer", "sgd"}, {"lr", "1e-3"}, {"amp", "true"}};

const std::string* look_up(std::string_view name) {
  const auto found = kValues.find(name);
  return found == kValues.end() ? nullptr : &found->second;
}

std::string value(std::string_view text) {
  const auto parsed = Expression::parse(text);
  if (!parsed) return parsed.error().message;
  const auto result = parsed->value(look_up);
  return result ? result->text : result.error().message;
}

TEST(Expression, Arithmetic) {
  EXPECT_EQ(value("gpus*batch"), "256");
  EXPECT_EQ(value("1 + 2 * 3"), "7");
  EXPECT_EQ(value("(1 + 2) * 3"), "9");
  EXPECT_EQ(value("2^3^2"), "512");
  EXPECT_EQ(value("-2^2"), "-4");
  EXPECT_EQ(value("7 % 4 - 1"), "2");
  EXPECT_EQ(value("batch/gpus/2"), "8");
  EXPECT_EQ(value("lr*batch/64"), "0.001");
  EXPECT_EQ(value("1e-3 + 1E3"), "1000.001");
}

TEST(Expression, Conditions) {
  EXPECT_EQ(value("gpus*batch <= 256"), "1");
  EXPECT_EQ(value("gpus*batch < 256"), "0");
  EXPECT_EQ(value("optimizer == 'sgd' and lr == 0.001"), "1");
  EXPECT_EQ(value("optimizer != \"sgd\" or batch in (32, 64)"), "1");
  EXPECT_EQ(value("batch not in (32, 64)"), "0");
  EXPECT_EQ(value("not amp"), "0");
  EXPECT_EQ(value("!(batch == 64) || gpus == 4 && batch == 64"), "1");
  EXPECT_EQ(value("amp == 'true'"), "1");
}

TEST(Expression, AndStopsBeforeWhatCannotBeComputed) {
  EXPECT_EQ(value("gpus == 0 and batch/0 == 1"), "0");
  EXPECT_EQ(value("batch/0"), "divides 64 by 0");
}

TEST(Expression, NamesAreListedOnce) {
  const auto parsed = Expression::parse("a*b + a > c");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->names(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Expression, RefusalsSayWhere) {
  EXPECT_EQ(value("batch <="), "\"batch <=\" has \"its end\" at column 9, where it cannot stand");
  EXPECT_EQ(value("batch 64"), "\"batch 64\" has \"64\" at column 7, where it cannot stand");
  EXPECT_EQ(value("(batch"), "\"(batch\" needs \")\" at column 7, where it cannot stand");
  EXPECT_EQ(value("batch == 'x"), "\"batch == 'x\" has a quote that nothing closes");
  EXPECT_EQ(value("4x"),
            "\"4x\" has \"4x\", which is no number, at column 1, where it cannot stand");
  EXPECT_EQ(value("bach == 1"), "\"bach\" is no axis of this study");
  EXPECT_EQ(value("optimizer*2"), "\"sgd\" is no number, and * needs numbers");
  EXPECT_EQ(Expression::parse(std::string(5000, '(')).has_value(), false);
  EXPECT_EQ(Expression::parse(std::string(5000, '-')).has_value(), false);
}

}  // namespace
}  // namespace stoker::study
