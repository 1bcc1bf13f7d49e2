#include "rewrite/evaluation.h"

#include <string>

#include "rewrite/rewrite_testing.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

using testing_support::live_bytes;
using testing_support::rewrite_case;
using testing_support::zoo_files;

/// A capture of the same model under no_grad. It has no loss, evaluates dropout and batch norm
/// differently, and knows which local variables outlive their last use: all else is the same.
TEST(Evaluation, WithoutGradientsPeaksAsACaptureWithoutGradients) {
  for (const std::string model : {"transformer", "convolutional"}) {
    for (const std::string precision : {".fp32", ".amp-bf16"}) {
      const Step truth = rewrite_case(model + precision + ".inference");
      const Step step = evaluation_step(rewrite_case(model + precision + ".plain"), true);
      const auto expected = static_cast<double>(live_bytes(truth, 64).peak);
      const auto found = static_cast<double>(live_bytes(step, 64).forward_peak);
      EXPECT_NEAR(found / expected, 1, 0.15) << model << precision;
    }
  }
}

TEST(Evaluation, WithGradientsKeepsWhatTheBackwardWouldNeed) {
  const Step plain = rewrite_case("transformer.fp32.plain");
  const Step step = evaluation_step(plain, false);
  EXPECT_EQ(live_bytes(step, 8).at_backward, live_bytes(plain, 8).at_backward);
  EXPECT_GT(live_bytes(step, 8).peak, 4 * live_bytes(evaluation_step(plain, true), 8).peak);
}

TEST(Evaluation, KeepsEveryStepOfTheZooInOrder) {
  for (const auto& file : zoo_files()) {
    const auto step = read_step_file(file);
    ASSERT_TRUE(step) << step.error().text();
    for (const bool no_grad : {true, false}) {
      const Step evaluation = evaluation_step(*step, no_grad);
      EXPECT_TRUE(check_lifetimes(evaluation, file.filename()));
      EXPECT_EQ(evaluation.mode, "inference");
      EXPECT_EQ(live_bytes(evaluation, 4).transient_at_end, 0) << file;
      for (const Event& event : evaluation.events) {
        EXPECT_FALSE(event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward);
      }
    }
  }
}

/// The linear step with a recurrent layer of oneDNN in its place, whose workspace has 100 bytes a
/// sample.
Step recurrent_step() {
  std::string text = testing_support::linear_step_json();
  const auto replace = [&](std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("aten::mm", "aten::mkldnn_rnn_layer");
  replace(R"([48, "gradient"]],)", R"([48, "gradient"], [{"batch": 100}, "transient"]],)");
  replace(R"(["a", 2], ["o", 0, 1, 7, [1, 1, 0, 0], [2, 2]])",
          R"(["a", 2], ["a", 6], ["o", 0, 1, 7, [1, 1, 0, 0], [2, 2, 2, 2, 2, 2, 2, 6]])");
  replace(R"([4, 1, 2, 4], [0, 5]], ["f", 4])",
          R"([4, 1, 2, 4, 2, 6], [0, 5]], ["f", 6], ["f", 4])");
  return parse_step(text, "test").value();
}

TEST(Evaluation, WithoutGradientsARecurrentLayerMakesNoWorkspace) {
  constexpr std::int64_t kBatch = 8, kWorkspace = 100 * kBatch;
  const Step step = recurrent_step();
  const auto peak = [&](bool no_grad) {
    return live_bytes(evaluation_step(step, no_grad), kBatch).peak;
  };
  EXPECT_EQ(peak(false) - peak(true), kWorkspace);
}

TEST(Evaluation, LeavesAnInferenceStepAsItIs) {
  const Step inference = rewrite_case("transformer.fp32.inference");
  EXPECT_EQ(evaluation_step(inference, true).events.size(), inference.events.size());
}

}  // namespace
}  // namespace stoker
