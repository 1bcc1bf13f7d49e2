#include "scenario/request/sample_facts.h"

#include <gtest/gtest.h>

#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The linear step whose input is [batch, `channels`, 24, 32] of `dtype`.
Step images(const std::string& dtype, int channels, int bytes_each) {
  const std::string bytes = std::to_string(channels * 24 * 32 * bytes_each);
  std::string json = testing_support::linear_step_json();
  // A sixth type, so that the operators keep theirs.
  json = replaced(json, R"(["f32", [4, {"batch": 1}], [1, 0]]])",
                  R"(["f32", [4, {"batch": 1}], [1, 0]], [")" + dtype + R"(", [{"batch": 1}, )" +
                      std::to_string(channels) + ", 24, 32]]]");
  json = replaced(json, R"([{"batch": 16}, "input"])", R"([{"batch": )" + bytes + R"(}, "input"])");
  json = replaced(json, R"({"name": "x", "type": 1, "storage": 1})",
                  R"({"name": "x", "type": 5, "storage": 1})");
  auto step = parse_step(json, "test");
  EXPECT_TRUE(step) << step.error().text();
  return std::move(step).value();
}

TEST(SampleFacts, PicturesHaveASideAndAName) {
  for (const int channels : {1, 3, 4}) {
    EXPECT_EQ(image_side(images("f32", channels, 4)), 32) << channels;
    EXPECT_EQ(sample_word(images("f32", channels, 4)), "img");
  }
  EXPECT_EQ(image_side(images("u8", 3, 1)), 32);
  EXPECT_EQ(image_side(images("bf16", 3, 2)), 32);
  EXPECT_EQ(image_side(images("f32", 16, 4)), 0) << "features, no picture";
  EXPECT_EQ(image_side(images("i64", 3, 8)), 0) << "tokens have no pixels";
}

TEST(SampleFacts, OtherSamplesGoByWhatTheCaptureSaid) {
  Step step = parse_step(testing_support::linear_step_json(), "test").value();
  EXPECT_EQ(image_side(step), 0);
  EXPECT_EQ(sample_word(step), "sample");
  step.sample_what = "sequence";
  EXPECT_EQ(sample_word(step), "seq");
  step.sample_what = "video";
  EXPECT_EQ(sample_word(step), "clip");
  step.sample_what = "graph";
  EXPECT_EQ(sample_word(step), "graph");
  step.inputs.clear();
  EXPECT_EQ(image_side(step), 0);
}

TEST(SampleFacts, TheLoaderHandsOverOneSamplesBytes) {
  const Step step = images("u8", 3, 1);
  const auto at_default = loader_output(step, {});
  ASSERT_TRUE(at_default) << at_default.error().text();
  EXPECT_EQ(at_default->bytes_per_sample, Bytes(3 * 24 * 32));
  EXPECT_EQ(at_default->tensors, 1);
  EXPECT_EQ(loader_output(step, {{"batch", 100}})->bytes_per_sample, Bytes(3 * 24 * 32));
  EXPECT_FALSE(loader_output(step, {{"batch", 0}})) << "no batch of nothing";
}

}  // namespace
}  // namespace stoker
