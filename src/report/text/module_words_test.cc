#include "report/text/module_words.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Step with_modules(std::vector<std::string> names) {
  Step step;
  step.module_names = std::move(names);
  return step;
}

ModuleBytes held(std::uint32_t module, std::int64_t bytes) {
  ModuleBytes m{};
  m.module = ModuleId{module};
  m.bytes = Bytes(bytes);
  return m;
}

TEST(ModuleWords, NamesAndWhatHasNone) {
  const Step step = with_modules({"", "layer1.0.conv1"});
  EXPECT_EQ(module_name(step, ModuleId{0}), "(model)");
  EXPECT_EQ(module_name(step, ModuleId{1}), "layer1.0.conv1");
  EXPECT_EQ(module_name(step, ModuleId{2}), "(other)");
}

TEST(ModuleWords, NamesAreCutAtTheirDots) {
  const Step step = with_modules({"", "layer1.0.conv1"});
  EXPECT_EQ(shortened(step, ModuleId{1}, 1), "layer1");
  EXPECT_EQ(shortened(step, ModuleId{1}, 2), "layer1.0");
  EXPECT_EQ(shortened(step, ModuleId{1}, 3), "layer1.0.conv1");
  EXPECT_EQ(shortened(step, ModuleId{1}, 9), "layer1.0.conv1");
  EXPECT_EQ(shortened(step, ModuleId{0}, 2), "(model)");
  EXPECT_EQ(shortened(step, ModuleId{7}, 2), "(other)");
}

TEST(ModuleWords, OneMorePartWhileASingleGroupHoldsMost) {
  // By two parts all is "model.layers"; by three each layer holds half.
  const Step deep = with_modules({"model.layers.0.mlp", "model.layers.1.mlp"});
  EXPECT_EQ(telling_parts(deep, {held(0, 50), held(1, 50)}), 3);
  // 60 of 100 are not most of it, 61 are.
  const Step flat = with_modules({"a.x.p", "b.y.q"});
  EXPECT_EQ(telling_parts(flat, {held(0, 60), held(1, 40)}), 2);
  EXPECT_EQ(telling_parts(flat, {held(0, 61), held(1, 39)}), 4) << "no number of parts tells more";
  EXPECT_EQ(telling_parts(flat, {}), 2);
}

}  // namespace
}  // namespace stoker
