#include "lower/common/gradient_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lower/common/test_jobs.h"
#include "lower/loop/lower.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

struct Meeting {
  std::string link = "0";          ///< of the operator that adds the gradients
  std::string first = "0, 3";      ///< type and storage of the first summand
  std::string used{};              ///< an event after the sum
  std::string kind = "transient";  ///< of the sum's storage
  std::string made = R"(["o", 0, 0, 8, [0, 1], [0, 3]])";  ///< event that writes the first
};

/// y = a(x) + b(x): the gradients 3 and 4 meet in 5, of which 6 is made.
Step residual(const Meeting& m) {
  auto step =
      parse_step(R"({
  "format": "stoker-step", "schema_version": [1, 0], "name": "residual", "mode": "train",
    "precision": "fp32",
  "provenance": {"spec": "test", "capture": "fake-cuda", "torch": "2.13.0"},
  "dimensions": [{"name": "batch", "default": 8, "min": 1}],
  "diagnostics": {},
  "strings": {"operators": ["aten::relu", "aten::add.Tensor", "aten::mm"], "modules": ["", "fc"]},
  "types": [["f32", [{"batch": 1}, 4096]], ["f32", []], ["f32", [{"batch": 1}, 64, 64]],
    ["f32", [4096, {"batch": 1}], [1, 0]]],
  "storages": [[{"batch": 16384}, "input"], [{"batch": 16384}, "transient"], [4, "output"],
    [{"batch": 16384}, "transient"], [{"batch": 16384}, "transient"],
    [{"batch": 16384}, ")" +
                     m.kind + R"("], [{"batch": 16384}, "transient"]],
  "parameters": [], "buffers": [], "inputs": [{"name": "x", "type": 0, "storage": 0}],
  "events": [
    ["p", "forward"], ["a", 1], ["o", 0, 1, 7, [0, 0], [0, 1]],
    ["p", "loss"], ["a", 2], ["o", 0, 0, 8, [0, 1], [1, 2]],
    ["p", "backward"], ["a", 3], ["a", 4], ["o", 0, 0, 7, [0, 0], [0, 4]], )" +
                     m.made + R"(, ["f", 1], ["a", 5], ["o", 1, 0, )" + m.link + ", [" + m.first +
                     R"(, 0, 4], [0, 5]], )" + m.used + R"( ["f", 3],
    ["f", 4], ["a", 6], ["o", 0, 0, 7, [0, 5], [0, 6]], )" +
                     (m.kind == "transient" ? R"(["f", 5], )" : "") + R"(["f", 6], ["p", "end"]
  ]})",
                 "test");
  EXPECT_TRUE(step) << step.error().text();
  return step ? *step : Step{};
}

std::int64_t sums_in_place(const Meeting& meeting) {
  const GradientSums sums = find_gradient_sums(residual(meeting));
  return std::count(sums.in_place.begin(), sums.in_place.end(), true);
}

std::int64_t allocations(const Meeting& meeting, int accumulate = 1) {
  Job job = testing_support::plain_job();
  job.accumulate = accumulate;
  const auto program = lower(residual(meeting), job, testing_support::ampere());
  EXPECT_TRUE(program) << program.error().text();
  if (!program) return 0;
  return std::count_if(program->iteration.begin(), program->iteration.end(),
                       [](const Instruction& in) { return in.kind == InstructionKind::kAllocate; });
}

TEST(GradientSums, TheEnginesSumLiesWhereTheFirstGradientDid) {
  const GradientSums sums = find_gradient_sums(residual({}));
  EXPECT_EQ(sums.lies_in[3], 5U);
  EXPECT_EQ(sums.lies_in[4], 4U);
  EXPECT_EQ(sums.lies_in[5], 5U);
  EXPECT_EQ(sums_in_place({}), 1);
}

TEST(GradientSums, AnAdditionOfTheModelOrOneWhoseSummandIsHeldIsOutOfPlace) {
  EXPECT_EQ(sums_in_place({.link = "7"}), 0);
  EXPECT_EQ(sums_in_place({.used = R"(["o", 0, 0, 7, [0, 4], [0, 4]],)"}), 0);
  EXPECT_EQ(sums_in_place({.kind = "output"}), 0);
}

/// PyTorch 2.13 and 2.14, under its profiler: two linear layers of one input with three dimensions,
/// and an embedding's weight that is the head's too, add out of place; with two dimensions in
/// place.
TEST(GradientSums, AViewIsHeldByWhatItIsAViewOf) {
  EXPECT_EQ(sums_in_place({.first = "2, 3"}), 0);
  EXPECT_EQ(sums_in_place({.made = R"(["o", 2, 0, 8, [3, 4, 0, 1], [0, 3]])"}), 0) << "of a weight";
  EXPECT_EQ(sums_in_place({.made = R"(["o", 2, 0, 8, [0, 4, 0, 1], [0, 3]])"}), 1);
  EXPECT_EQ(sums_in_place({.made = R"(["o", 2, 0, 8, [3, 0, 0, 1], [0, 3]])"}), 1) << "of x @ w";
}

TEST(GradientSums, ASumInPlaceTakesNoMemory) {
  EXPECT_EQ(allocations({}), allocations({.link = "7"}) - 1);
}

TEST(GradientSums, ASumThatIsAParametersGradientReplacesTheFirstSummand) {
  const Meeting in_place{.kind = "gradient"};
  const Meeting apart{.link = "7", .kind = "gradient"};
  EXPECT_EQ(sums_in_place(in_place), 1);
  EXPECT_EQ(allocations(in_place), allocations(apart) - 1);
  EXPECT_EQ(allocations(in_place, 2), allocations(apart, 2) - 2);
}

}  // namespace
}  // namespace stoker
