#include "evidence/training/training_runs.h"

#include <gtest/gtest.h>

#include "evidence/training/test_rows.h"

namespace stoker {
namespace {

TEST(TrainingRuns, AreRead) {
  const auto rows = parse_training_runs(test_rows::kTraining, "rows.json");
  ASSERT_TRUE(rows.has_value()) << rows.error().text();
  ASSERT_EQ(rows->runs.size(), 3u);
  const MeasuredRun& net = rows->runs[0];
  EXPECT_EQ(net.label(), "net, batch 4, 1 thread, fp32");
  EXPECT_EQ(net.optimizer, "sgd");
  EXPECT_DOUBLE_EQ(*net.momentum, 0.9);
  EXPECT_EQ(rows->runs[1].status, RunStatus::kOutOfMemory);
  EXPECT_EQ(rows->runs[2].status, RunStatus::kFailed);
  EXPECT_EQ(rows->runs[2].name, "models.py:broken");
  EXPECT_TRUE(rows->complete);
  EXPECT_EQ(rows->provenance.count("cuda"), 0u);
}

/// The fastest good repetition's time with its own phases, the middle of the peaks.
TEST(TrainingRuns, FactsAreOfGoodRepetitions) {
  const auto rows = parse_training_runs(test_rows::kTraining, "rows.json");
  ASSERT_TRUE(rows.has_value());
  const auto fact = fact_of(rows->runs[0]);
  ASSERT_TRUE(fact.has_value());
  EXPECT_DOUBLE_EQ(milliseconds(fact->step), 409.9);
  EXPECT_NEAR(milliseconds(*fact->phases.forward), 130.2, 1e-9);  // with the loss
  EXPECT_FALSE(fact->phases.input.has_value());
  EXPECT_EQ(fact->good, 2u);
  EXPECT_TRUE(fact->settled);
  MeasuredRun strict = rows->runs[0];
  strict.needed = 3;
  EXPECT_EQ(fact_of(strict)->disturbed_by, "2 of 3 undisturbed repetitions");
  strict.needed = 2;
  strict.agreement = 0.001;
  EXPECT_FALSE(fact_of(strict)->settled);
  EXPECT_NEAR(fact->spread, 412.3 / 409.9 - 1, 1e-12);
  EXPECT_EQ(fact->peaks.resident->count(), 612400000);
  EXPECT_EQ(fact->peaks.resident_before->count(), 230000000);
  EXPECT_FALSE(fact->peaks.allocated.has_value());
  EXPECT_FALSE(fact_of(rows->runs[1]).has_value());
}

TEST(TrainingRuns, DisturbedRunsSayBy) {
  auto rows = parse_training_runs(test_rows::kTraining, "rows.json");
  ASSERT_TRUE(rows.has_value());
  MeasuredRun run = rows->runs[0];
  run.repetitions = {run.repetitions[1]};
  const auto fact = fact_of(run);
  ASSERT_TRUE(fact.has_value());
  EXPECT_EQ(fact->good, 0u);
  EXPECT_EQ(fact->disturbed_by, "others");
  EXPECT_DOUBLE_EQ(milliseconds(fact->step), 400);
}

TEST(TrainingRuns, RefuseDamageWithFieldAndCure) {
  const std::vector<std::tuple<std::string, std::string, std::string>> damages{
      {"stoker-training-runs", "stoker-input-runs", "no file of format stoker-training-runs"},
      {"[1, 0]", "[3, 0]", "update the older"},
      {"\"batch\": 4,", "\"batch\": 0,", "runs[0].batch\" is too small"},
      {"\"batch\": 4,", "", "runs[0].batch\" is missing"},
      {"\"status\": \"ok\"", "\"status\": \"fine\"", "is none of ok, oom, failed"},
      {"\"status\": \"oom\"", "\"status\": \"ok\"", "runs[1].repetitions\" is empty"},
      {"\"step_ms\": 412.3", "\"step_ms\": 0", "runs[0].repetitions[0].step_ms\" is too small"},
      {"\"step_ms\": 412.3", "\"step_ms\": 1e300", "impossibly large"},
      {"\"forward_ms\": 131.0", "\"forward_ms\": -1", "phases.forward_ms\" is negative"},
      {"\"resident_peak_bytes\": 612000000", "\"resident_peak_bytes\": \"x\"", "is not a number"},
      {"\"runs\": [", "\"runs\": 7, \"x\": [", "runs\" is not a list"},
      {"\"name\": \"Xeon\"", "\"name\": 3", "device.name\" is not a text"},
  };
  for (const auto& [what, by, says] : damages) {
    std::string text = test_rows::kTraining;
    const auto at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
    const auto rows = parse_training_runs(text, "rows.json");
    ASSERT_FALSE(rows.has_value()) << by;
    EXPECT_NE(rows.error().text().find(says), std::string::npos) << rows.error().text();
  }
}

TEST(TrainingRuns, EveryCutIsRefused) {
  const std::string whole = test_rows::kTraining;
  for (std::size_t length = 0; length < whole.find_last_of('}'); length += 5)
    EXPECT_FALSE(parse_training_runs(whole.substr(0, length), "rows.json").has_value()) << length;
}

}  // namespace
}  // namespace stoker
