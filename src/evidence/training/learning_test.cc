#include "evidence/training/learning.h"

#include <gtest/gtest.h>

#include "device/resolve/machine_file.h"
#include "evidence/training/learned_machine.h"
#include "evidence/training/test_rows.h"

namespace stoker {
namespace {

using test_rows::compared;

/// Convolutions take `factor` times their forecast.
std::vector<ComparedRun> slow_convolutions(double factor) {
  std::vector<ComparedRun> runs;
  for (const double share : {0.2, 0.5, 0.7, 0.9})
    runs.push_back(compared("net", 8, 100, 100 * (1 + (factor - 1) * share), share));
  return judge(std::move(runs)).runs;
}

TEST(Learning, HeldOutRunsAreForecastBetter) {
  const Learning l = learn_from(slow_convolutions(1.3), {}, true);
  EXPECT_TRUE(l.helps) << l.why_not;
  EXPECT_EQ(l.held_out, 4u);
  EXPECT_FALSE(l.by_model);
  EXPECT_NEAR(l.before.worst, 1 - 1 / 1.27, 1e-9);
  EXPECT_LT(l.after.median, 0.25 * l.before.median);
  bool found = false;
  for (const MeasuredFigure& f : l.figures) {
    if (f.name != "convolution_pace") continue;
    found = true;
    EXPECT_NEAR(f.value, 1.3, 0.04);
    EXPECT_EQ(f.threads, 2);
  }
  EXPECT_TRUE(found);
}

/// What was learned before stands in the forecasts already: the factors multiply.
TEST(Learning, BuildsOnWhatWasLearned) {
  Calibration known;
  set_figure(known, {.name = "convolution_pace", .threads = 2, .value = 2});
  const Learning l = learn_from(slow_convolutions(1.3), known, true);
  ASSERT_TRUE(l.helps);
  Calibration after = known;
  for (const MeasuredFigure& f : l.figures) set_figure(after, f);
  EXPECT_NEAR(find_figure(after, "convolution_pace", 2)->value, 2.6, 0.08);
}

TEST(Learning, KeepsNothingThatDoesNotHelp) {
  const Learning right = learn_from(slow_convolutions(1), {}, true);
  EXPECT_FALSE(right.helps);
  EXPECT_TRUE(right.figures.empty());
  const auto one = judge({compared("net", 8, 100, 130)}).runs;
  const Learning alone = learn_from(one, {}, true);
  EXPECT_FALSE(alone.helps);
  EXPECT_NE(alone.why_not.find("two batches"), std::string::npos);
  // Errors of both signs teach nothing.
  const auto noisy = judge({compared("net", 8, 100, 115), compared("net", 16, 100, 87),
                            compared("net", 32, 100, 115), compared("net", 64, 100, 87)})
                         .runs;
  EXPECT_FALSE(learn_from(noisy, {}, true).helps);
}

/// A correction that helps one model and harms another is not kept.
TEST(Learning, HoldsOutWholeModels) {
  const auto runs = judge({compared("a", 8, 100, 130), compared("a", 16, 100, 130),
                           compared("b", 8, 100, 80), compared("b", 16, 100, 80)})
                        .runs;
  const Learning l = learn_from(runs, {}, true);
  EXPECT_TRUE(l.by_model);
  EXPECT_FALSE(l.helps);
}

TEST(Learning, AGpuHasOneFactor) {
  const auto runs = judge({compared("net", 8, 100, 120), compared("net", 16, 200, 240),
                           compared("net", 32, 400, 480)})
                        .runs;
  const Learning l = learn_from(runs, {}, false);
  ASSERT_TRUE(l.helps) << l.why_not;
  ASSERT_EQ(l.figures.size(), 1u);
  EXPECT_EQ(l.figures[0].name, "step_pace");
  EXPECT_EQ(l.figures[0].threads, 0);
  EXPECT_GT(l.figures[0].value, 1.1);
  EXPECT_LT(l.figures[0].value, 1.2);
}

/// Runs with other threads are another group: each learns for itself.
TEST(Learning, ThreadsAreLearnedApart) {
  std::vector<ComparedRun> runs = slow_convolutions(1.3);
  for (ComparedRun run : slow_convolutions(1.6)) {
    run.run.threads = 1;
    runs.push_back(std::move(run));
  }
  const Learning l = learn_from(runs, {}, true);
  ASSERT_TRUE(l.helps) << l.why_not;
  EXPECT_EQ(l.held_out, 8u);
  double of_one = 0, of_two = 0;
  for (const MeasuredFigure& f : l.figures) {
    if (f.name == "convolution_pace") (f.threads == 1 ? of_one : of_two) = f.value;
  }
  EXPECT_NEAR(of_one, 1.6, 0.06);
  EXPECT_NEAR(of_two, 1.3, 0.04);
}

TEST(Learning, SaysWhyNothingIsKept) {
  EXPECT_EQ(learn_from(slow_convolutions(1), {}, true).why_not,
            "what was left out of the learning would be forecast no better with it");
  EXPECT_EQ(learn_from({}, {}, true).why_not,
            "one run cannot show whether a correction helps others; measure two batches or more");
}

TEST(Learning, DisturbedRunsTeachNothing) {
  auto runs = slow_convolutions(1.3);
  for (ComparedRun& run : runs) run.fact->good = 0;
  EXPECT_FALSE(learn_from(runs, {}, true).helps);
}

TEST(Learning, FoldsIntoTheMachineFile) {
  static const GpuCatalogue catalogue = *GpuCatalogue::load();
  const auto file = parse_machine_file(
      "[cpu]\nname = \"X\"\ncores = 2\nfp32_tflops = 1\nbandwidth_gbs = 20\nmemory = \"8G\"\n"
      "price_per_hour = 0.2\n[provenance]\nby = \"me\"\n[[calibration.figure]]\nname = "
      "\"fault_us\"\nvalue = 0.25\n",
      "m.toml", catalogue);
  ASSERT_TRUE(file.has_value()) << file.error().text();
  const LearnedMachine learned = learned_machine(*file, slow_convolutions(1.3), "today");
  ASSERT_TRUE(learned.learning.helps);
  const auto again = parse_machine_file(machine_file_text(learned.file), "m.toml", catalogue);
  ASSERT_TRUE(again.has_value()) << again.error().text();
  const Calibration& c = *again->device->facts().calibration;
  EXPECT_NE(find_figure(c, "convolution_pace", 2), nullptr);
  EXPECT_NE(find_figure(c, "fault_us", 0), nullptr);
  EXPECT_EQ(again->provenance.at("by"), "me");
  EXPECT_NE(again->provenance.at("learned").find("4 training runs"), std::string::npos);
  EXPECT_DOUBLE_EQ(again->device->facts().price_per_hour, 0.2);
  const LearnedMachine not_learned = learned_machine(*file, slow_convolutions(1), "today");
  EXPECT_EQ(machine_file_text(not_learned.file), machine_file_text(*file));
}

}  // namespace
}  // namespace stoker
