#include "rewrite/fused_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "step/sizes.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

const std::filesystem::path kZoo = std::filesystem::path(STOKER_SOURCE_DIR) / "data" / "zoo";

Step captured(const std::string& file) { return read_step_file(kZoo / file).value(); }

Step fused(const Step& step) {
  auto result = with_fused_loss(step);
  EXPECT_TRUE(result) << result.error().text();
  const Status valid = check_lifetimes(*result, "fused");
  EXPECT_TRUE(valid) << valid.error().text();
  return *result;
}

std::int64_t launched(const Step& step, const std::string& name) {
  return std::count_if(step.events.begin(), step.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kOperator &&
           step.operator_name(step.operators[event.value]) == name;
  });
}

/// Largest sum of what lives at once of storages with at least `least` bytes.
std::int64_t peak_of_large(const Step& step, std::int64_t batch, std::int64_t least) {
  const auto sizes = Sizes::at(step, {{"batch", batch}});
  EXPECT_TRUE(sizes);
  std::int64_t live = 0, peak = 0;
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kAllocate && event.kind != EventKind::kFree) continue;
    const std::int64_t bytes = sizes->storage(StorageId(event.value)).count();
    if (bytes < least) continue;
    live += event.kind == EventKind::kAllocate ? bytes : -bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

/// Bytes of one batch's scores, from the operator that reads them.
std::int64_t scores_of(const Step& step, std::int64_t batch) {
  const auto sizes = Sizes::at(step, {{"batch", batch}});
  for (const Operator& op : step.operators) {
    if (step.operator_name(op) == "stoker::cross_entropy")
      return sizes->storage(op.inputs[0].storage).count();
  }
  return 0;
}

TEST(FusedLoss, KeepsTheScoresOnceInTheirOwnPrecision) {
  for (const char* file : {"gpt2.amp-bf16.step.gz", "llama_1b.amp-bf16.step.gz"}) {
    SCOPED_TRACE(file);
    const Step plain = captured(file);
    const Step step = fused(plain);
    EXPECT_EQ(launched(plain, "aten::_log_softmax"), 1);
    EXPECT_EQ(launched(step, "aten::_log_softmax"), 0);
    EXPECT_EQ(launched(step, "aten::nll_loss_forward"), 0);
    EXPECT_EQ(launched(step, "stoker::cross_entropy"), 1);
    EXPECT_EQ(launched(step, "stoker::cross_entropy_backward"), 1);
    const std::int64_t scores = scores_of(step, 16);
    ASSERT_GT(scores, 0);
    // Copies in FP32, logarithms and gradients were several times as much.
    EXPECT_GE(peak_of_large(plain, 16, scores), 5 * scores);
    EXPECT_EQ(peak_of_large(step, 16, scores), scores);
  }
}

TEST(FusedLoss, OfImagesToo) {
  const Step step = fused(captured("resnet50.fp32.step.gz"));
  EXPECT_EQ(launched(step, "stoker::cross_entropy_backward"), 1);
}

TEST(FusedLoss, SmoothsLabelsInTheSameKernel) {
  const auto path =
      std::filesystem::path(STOKER_SOURCE_DIR) / "tests/rewrites/smoothed.bf16.plain.step.gz";
  const Step plain = read_step_file(path).value();
  const Step step = fused(plain);
  EXPECT_EQ(launched(plain, "aten::nll_loss_backward"), 1);
  EXPECT_EQ(launched(step, "aten::_log_softmax"), 0);
  EXPECT_EQ(launched(step, "aten::nll_loss_backward"), 0);
  EXPECT_EQ(launched(step, "stoker::cross_entropy_backward"), 1);
  // Scores in bf16; a copy, logarithms and three gradients in FP32 are gone.
  const std::int64_t scores = scores_of(step, 8);
  EXPECT_EQ(peak_of_large(step, 8, scores), scores);
  EXPECT_GT(peak_of_large(plain, 8, scores), 6 * scores);
}

TEST(FusedLoss, IsRefusedWhereThereIsNoCrossEntropy) {
  const Step step = parse_step(testing_support::linear_step_json(), "test").value();
  const auto result = with_fused_loss(step);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("computes no cross entropy"), std::string::npos);
}

}  // namespace
}  // namespace stoker
