#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "step/sizes.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

using testing_support::linear_step_json;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(StepReader, ReadsTheSmallStep) {
  const auto step = parse_step(linear_step_json(), "test");
  ASSERT_TRUE(step) << step.error().text();
  EXPECT_EQ(step->operators.size(), 4U);
  EXPECT_EQ(step->parameters[0].gradient, 5);
  EXPECT_EQ(step->attributes_of(step->operators[2]).views, 2);
  EXPECT_EQ(step->attributes_of(step->operators[0]).views, 0);
  EXPECT_EQ(step->types[4].layout, Layout::kPermuted);
}

TEST(StepReader, UnknownKeysAndNewerMinorsAreAccepted) {
  auto json = replaced(linear_step_json(), "[1, 0]", "[1, 9]");
  json = replaced(json, "\"diagnostics\": {}", "\"diagnostics\": {}, \"later\": [1]");
  EXPECT_TRUE(parse_step(json, "test"));
}

TEST(StepReader, ReadsWhatTheCaptureSaidOfTheLoop) {
  const auto silent = parse_step(linear_step_json(), "test");
  ASSERT_TRUE(silent);
  EXPECT_FALSE(silent->training.clip || silent->training.ema || silent->training.grad_scaler);
  EXPECT_EQ(silent->parameters[0].group, 0);

  auto json = replaced(linear_step_json(), "\"gradient\": 5",
                       "\"gradient\": 5, \"group\": 0, \"updated\": false");
  json = replaced(json, "\"diagnostics\": {}",
                  R"("training": {"clip": true, "ema": false}, "optimizer": {"name": "lion",
                     "class": "lion_pytorch.Lion", "groups": [{"lr": 1, "betas": [0.9, 0.99],
                     "nesterov": true}]}, "diagnostics": {})");
  const auto step = parse_step(json, "test");
  ASSERT_TRUE(step) << step.error().text();
  EXPECT_EQ(step->training.clip, true);
  EXPECT_EQ(step->training.ema, false);
  EXPECT_FALSE(step->training.grad_scaler.has_value());
  EXPECT_EQ(step->parameters[0].group, -1) << "the optimizer was not given it";
  EXPECT_EQ(step->optimizer.class_name, "lion_pytorch.Lion");
  const std::map<std::string, double> numbers{{"lr", 1}, {"nesterov", 1}};
  EXPECT_EQ(step->optimizer.groups.at(0).numbers, numbers);
}

struct Damage {
  const char* from;
  const char* to;
  const char* says;
};

class DamagedStep : public testing::TestWithParam<Damage> {};

TEST_P(DamagedStep, IsRefusedByName) {
  const Damage& damage = GetParam();
  const auto step =
      parse_step(replaced(linear_step_json(), damage.from, damage.to), "file.step.gz");
  ASSERT_FALSE(step);
  EXPECT_NE(step.error().text().find(damage.says), std::string::npos) << step.error().text();
  EXPECT_EQ(step.error().where, "file.step.gz");
}

INSTANTIATE_TEST_SUITE_P(
    Every, DamagedStep,
    testing::Values(
        Damage{"stoker-step", "zebra", "is not a step file"},
        Damage{"[1, 0]", "[2, 0]", "update stoker"},
        Damage{"[1, 0]", "[0, 3]", "capture the model again"},
        Damage{"\"f32\", [4, 3]", "\"f99\", [4, 3]", "types[0]"},
        Damage{"[48, \"parameter\"]", "[-48, \"parameter\"]", "storages[0]"},
        Damage{"[48, \"parameter\"]", "[4e30, \"parameter\"]", "storages[0]"},
        Damage{"{\"batch\": 16}", "{\"length\": 16}", "unknown dimension"},
        Damage{"{\"batch\": 16}", "{\"batch^7\": 16}", "exponent"},
        Damage{"{\"batch\": 16}", "{\"batch\": -16}", "negative"},
        Damage{"{\"batch\": 16}", "{\"batch\": 1.5}", "integer"},
        Damage{"\"name\": \"batch\"", "\"name\": \"side\"", "first dimension"},
        Damage{"[4, {\"batch\": 1}], [1, 0]]", "[4, {\"batch\": 1}], [1, 1]]", "permutation"},
        Damage{"\"gradient\": 5", "\"gradient\": 9", "parameters[0].gradient"},
        Damage{"\"gradient\": 5", "\"gradient\": 4", "gradient of fc.weight"},
        Damage{"[\"f\", 4]", "[\"f\", 5]", "not transient"},
        Damage{"[\"f\", 4],", "", "never freed"},
        Damage{"[\"f\", 2]", "[\"f\", 4]", "used while not alive"},
        Damage{"[\"a\", 5]", "[\"a\", 4]", "allocated twice"},
        Damage{"[2, 2], [3, 3]]", "[2, 4], [3, 3]]", "used while not alive"},
        Damage{"[2, 2], [3, 3]]", "[2, 2, 1], [3, 3]]", "pairs"},
        Damage{"[\"p\", \"loss\"]", "[\"p\", \"load\"]", "out of order"},
        Damage{"[\"p\", \"end\"]", "[\"q\", \"end\"]", "no event"},
        Damage{"\"diagnostics\"", "\"training\": {\"ema\": 2}, \"diagnostics\"", "training.ema"},
        Damage{"\"diagnostics\"", "\"training\": true, \"diagnostics\"", "training must be"},
        Damage{"\"gradient\": 5", "\"gradient\": 5, \"updated\": \"no\"", "updated"},
        Damage{"fake-cuda", "magic", "provenance.capture"},
        Damage{"\"strings\"", "\"string\"", "strings"}));

TEST(StepReader, AnythingCutShortIsAnError) {
  const std::string json = linear_step_json();
  const auto end = json.find_last_of('}');
  for (std::size_t length = 0; length < end; length += 7) {
    EXPECT_FALSE(parse_step(json.substr(0, length), "cut")) << length;
  }
}

TEST(Sizes, EvaluatesEveryPolynomial) {
  const auto step = parse_step(linear_step_json(), "test");
  const auto sizes = Sizes::at(*step, {{"batch", 10}});
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->storage(StorageId{1}), Bytes(160));
  EXPECT_EQ(sizes->elements(TypeId{2}), 30);
  EXPECT_EQ(sizes->shape(TypeId{4})[1], 10);
  EXPECT_EQ(Sizes::at(*step, {})->storage(StorageId{1}), Bytes(128));  // default 8
}

TEST(Sizes, RefusesWhatTheStepCannotServe) {
  const auto step = parse_step(
      replaced(linear_step_json(), "\"min\": 1", "\"min\": 2, \"unit\": 4, \"max\": 64"), "test");
  ASSERT_TRUE(step) << step.error().text();
  EXPECT_NE(Sizes::at(*step, {{"batch", 0}}).error().message.find("at least 2"), std::string::npos);
  EXPECT_NE(Sizes::at(*step, {{"batch", 6}}).error().message.find("multiple of 4"),
            std::string::npos);
  EXPECT_NE(Sizes::at(*step, {{"batch", 128}}).error().message.find("up to 64"), std::string::npos);
  EXPECT_NE(Sizes::at(*step, {{"side", 1}}).error().message.find("no dimension"),
            std::string::npos);
  const auto plain =
      parse_step(replaced(linear_step_json(), "\"batch\": 16", "\"batch^3\": 16"), "test");
  EXPECT_NE(Sizes::at(*plain, {{"batch", 1LL << 32}}).error().message.find("overflows"),
            std::string::npos);
}

TEST(PolynomialTest, AgainstArithmeticByHand) {
  // 3 + 5 b - 2 b s^2
  const Polynomial p(std::vector<Monomial>{{3, {}}, {5, {1}}, {-2, {1, 2}}});
  EXPECT_EQ(p.evaluate({7, 3}), 3 + 5 * 7 - 2 * 7 * 9);
  EXPECT_EQ(Polynomial().evaluate({7, 3}), 0);
  EXPECT_FALSE(p.is_constant());
  EXPECT_TRUE(Polynomial(4).is_constant());
  EXPECT_EQ(Polynomial(std::vector<Monomial>{{1, {3}}})
                .evaluate({std::numeric_limits<std::int64_t>::max()}),
            std::nullopt);
}

}  // namespace
}  // namespace stoker
