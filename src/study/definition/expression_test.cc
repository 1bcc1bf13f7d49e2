#include "study/definition/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "base/random.h"

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

TEST(Expression, WhatHasNoValueIsRefused) {
  EXPECT_EQ(value("(0 - 8) ^ 0.5"), "-8 ^ 0.5 is no number");
  EXPECT_EQ(value("10 ^ 400"), "10 ^ 400 is no number");
  EXPECT_EQ(value("0 ^ (0 - 1) == 3"), "0 ^ -1 is no number");
}

TEST(Expression, WhatIsTooLongToBeEvaluatedIsRefused) {
  std::string sum = "1";
  while (sum.size() < 9'990) sum += "+1";
  EXPECT_EQ(value(sum), "4996");
  EXPECT_EQ(value(sum + std::string(200'000, '1')),
            "an expression of 209,991 characters is too long; at most 10,000 can be read");
}

/// An expression and its value, made side by side, so that neither follows from the other.
struct Made {
  std::string text;
  std::optional<double> value;  ///< nullopt: a division by 0, or no number
  int level = 0;                ///< how tightly its loosest operator binds; 9: a number
};

std::string in_brackets(const Made& made, int least) {
  return made.level < least ? "(" + made.text + ")" : made.text;
}

Made made_of(const Made& a, const Made& b, std::uint64_t which) {
  // Levels: 1 or, 2 and, 4 comparison, 5 sum, 6 product. The right operand of one that goes from
  // left to right binds more tightly.
  struct Operator {
    const char* word;
    int level;
  };
  constexpr Operator kOperators[] = {{"or", 1}, {"and", 2}, {"==", 4}, {"!=", 4},
                                     {"<", 4},  {">=", 4},  {"+", 5},  {"-", 5},
                                     {"*", 6},  {"/", 6},   {"%", 6}};
  Operator op = kOperators[which % std::size(kOperators)];
  // Whole numbers of moderate size, so that no rounding decides.
  const double x = a.value.value_or(0), y = b.value.value_or(0);
  const bool whole_quotient = y == 0 || std::fmod(x, y) == 0;
  if ((*op.word == '/' && !whole_quotient) || (*op.word == '*' && std::fabs(x * y) > 1e6))
    op = {"-", 5};
  const std::string word = op.word;
  Made made;
  made.level = op.level;
  made.text = in_brackets(a, op.level == 4 ? 5 : op.level) + " " + word + " " +
              in_brackets(b, op.level + 1);
  if (!a.value) return made;
  if (word == "or" && x != 0) return made.value = 1, made;
  if (word == "and" && x == 0) return made.value = 0, made;
  if (!b.value) return made;
  if (word == "or" || word == "and") made.value = y != 0;
  if (word == "==") made.value = x == y;
  if (word == "!=") made.value = x != y;
  if (word == "<") made.value = x < y;
  if (word == ">=") made.value = x >= y;
  if (word == "+") made.value = x + y;
  if (word == "-") made.value = x - y;
  if (word == "*") made.value = x * y;
  if (word == "/" && y != 0) made.value = x / y;
  // The remainder has the divisor's sign, as in Python.
  if (word == "%" && y != 0) {
    const double rest = std::fmod(x, y);
    made.value = rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
  return made;
}

Made random_expression(Random& random, int depth) {
  if (depth == 0 || random.below(5) == 0) {
    if (random.below(6) == 0) return {"batch", 64, 9};
    if (random.below(6) == 0) return {"gpus", 4, 9};
    const auto digit = static_cast<double>(random.below(7));
    return {std::to_string(static_cast<int>(digit)), digit, 9};
  }
  const std::uint64_t kind = random.below(10);
  if (kind == 0) {
    const Made inner = random_expression(random, depth - 1);
    Made made{"not " + in_brackets(inner, 3), {}, 3};
    if (inner.value) made.value = *inner.value == 0;
    return made;
  }
  if (kind == 1) {
    const Made inner = random_expression(random, depth - 1);
    Made made{"-" + in_brackets(inner, 7), {}, 7};
    if (inner.value) made.value = 0 - *inner.value;
    return made;
  }
  const Made a = random_expression(random, depth - 1), b = random_expression(random, depth - 1);
  return made_of(a, b, random.next());
}

TEST(Expression, RandomOnesHaveTheValueOfTheirParts) {
  Random random(17);
  int known = 0;
  for (int round = 0; round < 5'000; ++round) {
    const Made made = random_expression(random, 5);
    const auto parsed = Expression::parse(made.text);
    ASSERT_TRUE(parsed) << made.text << ": " << parsed.error().message;
    const auto result = parsed->value(look_up);
    ASSERT_EQ(result.has_value(), made.value.has_value()) << made.text;
    if (!result) continue;
    ++known;
    ASSERT_NEAR(*result->number, *made.value, 1e-9 * (1 + std::fabs(*made.value))) << made.text;
  }
  EXPECT_GT(known, 2'500);
}

}  // namespace
}  // namespace stoker::study
