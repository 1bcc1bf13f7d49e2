#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "step/sizes.h"
#include "step/step_names.h"
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
                  R"("training": {"clip": true, "ema": false, "averages": ["", "g"]},
         "optimizer": {"name": "lion", "class": "lion_pytorch.Lion",
                       "groups": [{"lr": 1, "betas": [0.9, 0.99], "nesterov": true},
                                  {"optimizer": "adam"}]}, "diagnostics": {})");
  const auto step = parse_step(json, "test");
  ASSERT_TRUE(step) << step.error().text();
  EXPECT_EQ(step->training.clip, true);
  EXPECT_EQ(step->training.ema, false);
  EXPECT_FALSE(step->training.grad_scaler.has_value());
  EXPECT_EQ(step->parameters[0].group, -1) << "the optimizer was not given it";
  EXPECT_EQ(step->optimizer.class_name, "lion_pytorch.Lion");
  const std::map<std::string, double> numbers{{"lr", 1}, {"nesterov", 1}};
  EXPECT_EQ(step->optimizer.groups.at(0).numbers, numbers);
  EXPECT_EQ(step->optimizer.groups.at(0).name, "");
  EXPECT_EQ(step->optimizer.groups.at(1).name, "adam");
  EXPECT_EQ(step->training.averages, (std::vector<std::string>{"", "g"}));
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
        Damage{"\"strings\"", "\"string\"", "strings"},
        Damage{"\"mode\": \"train\"", "\"mode\": \"play\"",
               "mode must be train, forward or inference"},
        Damage{"[1, 0]", "[1]", "schema_version must be [major, minor]"},
        Damage{"\"min\": 1", "\"min\": 1, \"unit\": 3", "default is no multiple of unit"},
        Damage{"\"default\": 8", "\"default\": \"8\"", "dimensions[0].default must be an integer"},
        Damage{"[\"f32\", []]", "[\"f32\"]", "types[3] must be [dtype, shape] or"},
        Damage{"[\"f32\", []]", "\"f32\"", "types[3] must be a list"},
        Damage{"[4, \"output\"]", "[4]", "storages[3] must be [bytes, kind]"},
        Damage{"[4, \"output\"]", "[4, \"toast\"]",
               "storages[3] \"toast\" is not known to this version"},
        Damage{"[4, \"output\"]", "[4, 7]", "storages[3] must be a name"},
        Damage{"\"type\": 0", "\"type\": 5", "parameters[0].type 5 is out of range [0, 4]"},
        Damage{"\"type\": 0", "\"typ\": 0", "parameters[0].type is missing"},
        Damage{"\"inputs\": [{", "\"inputs\": [7, {", "inputs[0] must be an object"},
        Damage{"[\"o\", 0, 1, 7, [1,", "[\"o\", 3, 1, 7, [1,",
               "events[2] 3 is out of range [0, 2]"},
        Damage{"[\"o\", 0, 1, 7, [1,", "[\"o\", 0, 2, 7, [1,",
               "events[2] 2 is out of range [0, 1]"},
        Damage{"{\"v\": 2}", "{\"v\": -2}", "-2 is out of range [0, 16777216]"},
        Damage{"{\"v\": 2}", "{\"window\": [1]}", "a window has a size before and one after"},
        Damage{"{\"v\": 2}", "{\"dropout\": \"x\"}", "must be a number"},
        Damage{"{\"v\": 2}", "{\"causal\": 3}", "3 is out of range [0, 1]"},
        Damage{"{\"batch\": 16}", "{\"batch*batch\": 16}", "names a dimension twice"},
        Damage{"{\"batch\": 16}", "\"16\"", "storages[1] must be an integer or a polynomial"},
        Damage{"\"diagnostics\": {}", "\"diagnostics\": {\"item_calls\": -1}",
               "diagnostics.item_calls -1 is out of range"},
        Damage{"\"diagnostics\"", "\"compiled\": {}, \"diagnostics\"",
               "compiled.graphs is missing"},
        Damage{"\"diagnostics\"", "\"compiled\": 3, \"diagnostics\"", "compiled must be an object"},
        Damage{"\"torch\": \"2.13.0\"", "\"torch\": 2", "torch must be a string"},
        Damage{"\"torch\": \"2.13.0\"", "\"sources\": [3]", "provenance.sources must be objects"},
        Damage{"\"modules\": [\"\", \"fc\"]", "\"modules\": [1]",
               "strings.modules must be strings"},
        Damage{"[\"a\", 2]", "[\"f\", 2]", "is freed while not alive"}));

/// A type is written by the name that it is read by.
TEST(StepNames, TypesOfElementsAreReadByTheirNames) {
  std::size_t known = 0;
  for (std::size_t i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const auto& [name, value] : kDTypeNames) known += value == dtype && name == name_of(dtype);
    EXPECT_GT(size_of(dtype), 0) << name_of(dtype);
  }
  EXPECT_EQ(known, kDTypes);
  EXPECT_EQ(size_of(DType::kC64), 8);
  EXPECT_EQ(size_of(DType::kTf32), 4) << "stored as FP32";
  EXPECT_EQ(size_of(DType::kBf16), 2);
  EXPECT_EQ(size_of(DType::kBool), 1);
}

TEST(StepReader, KnowsWhatACaptureWasMadeFrom) {
  const auto step =
      parse_step(replaced(linear_step_json(), "\"torch\": \"2.13.0\"",
                          R"("torch": "2.13.0", "libraries": {"timm": "1.0", "odd": 3},
                  "sources": [{"file": "net.py", "bytes": 120, "crc32": 4294967295},
                              {"file": "large.bin", "bytes": 5000000000},
                              {"file": "weights", "entries": 7, "crc32": 1},
                              {"file": "config.yaml", "absent": true}],
                  "environment": {"SEED": 17, "MODE": null})"),
                 "test");
  ASSERT_TRUE(step) << step.error().text();
  const Provenance& p = step->provenance;
  EXPECT_EQ(p.libraries, (std::map<std::string, std::string>{{"timm", "1.0"}}));
  ASSERT_EQ(p.sources.size(), 4U);
  EXPECT_EQ(p.sources[0].kind, SourceKind::kFile);
  EXPECT_EQ(p.sources[0].crc32, 0xffffffffU);
  EXPECT_EQ(p.sources[1].bytes, 5'000'000'000);
  EXPECT_FALSE(p.sources[1].crc32) << "too large to be read each time";
  EXPECT_EQ(p.sources[2].kind, SourceKind::kFolder);
  EXPECT_EQ(p.sources[2].bytes, 7) << "names in it";
  EXPECT_EQ(p.sources[3].kind, SourceKind::kAbsent);
  EXPECT_EQ(p.environment.at("SEED"), 17U);
  EXPECT_EQ(p.environment.at("MODE"), std::nullopt) << "it was not set";
}

TEST(StepReader, AttributesOfEveryKind) {
  const auto step =
      parse_step(replaced(linear_step_json(), "{\"v\": 2}",
                          R"({"stride": [2, 1], "padding": 3, "mask": [true, 0, 1], "groups": 4,
                   "transposed": true, "causal": 1, "train": false, "dropout": 0.5,
                   "scale": null, "mask_kind": "bool", "window": [8, -1], "mode": "lstm",
                   "layers": 2, "hidden": 16, "bidirectional": true, "c": 3, "later": {}})"),
                 "test");
  ASSERT_TRUE(step) << step.error().text();
  const Attributes& a = step->attributes_of(step->operators[2]);
  using Integers = std::vector<std::int32_t>;
  EXPECT_EQ(a.stride, (Integers{2, 1}));
  EXPECT_EQ(a.padding, Integers{3}) << "one number is a list of one";
  EXPECT_EQ(a.gradients, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(a.groups, 4);
  EXPECT_TRUE(a.transposed && a.causal && a.bidirectional && !a.train && !a.batch_first);
  EXPECT_EQ(a.dropout, 0.5);
  EXPECT_EQ(a.scale, 0) << "the default";
  EXPECT_EQ(a.mask_kind, "bool");
  EXPECT_EQ(a.window, (Integers{8, -1}));
  EXPECT_EQ(a.rnn_mode, "lstm");
  EXPECT_EQ(a.layers * 100 + a.hidden, 216);
  EXPECT_EQ(a.graph, 3);
}

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
  EXPECT_NE(Sizes::at(*plain, {{"batch", 1LL << 32}}).error().message.find("too large a one"),
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
