#include "evidence/input/validation.h"

#include <gtest/gtest.h>

#include <string>

#include "json/test_pointer.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr std::int64_t kSampleBytes = 12288, kBatch = 32;

/// A pipeline whose every sample costs 2 ms.
Json probe() {
  const auto batch = [](std::int64_t n) {
    return Json{{"batch", n},
                {"samples", n},
                {"tensors", 1},
                {"bytes", n * kSampleBytes},
                {"pickled_bytes", 0},
                {"collate_shared_ms", 0.01 * static_cast<double>(n)},
                {"collate_private_ms", 0.005 * static_cast<double>(n)}};
  };
  return {{"format", "stoker-pipeline-probe"},
          {"schema_version", {1, 0}},
          {"name", "made"},
          {"kind", "map"},
          {"samples", 640},
          {"sample", {{"cpu_ms", Json::array({2.0, 2.0})}}},
          {"batch", Json::array({batch(8), batch(32)})},
          {"transport", {{"per_batch_main_ms", 0.4}}}};
}

Json point(int workers, double step_ms = 0) {
  return {{"batch", kBatch},    {"workers", workers},     {"prefetch", 2},
          {"in_order", true},   {"step_ms", step_ms},     {"cores", 2},
          {"cold", false},      {"samples", 640},         {"persistent", false},
          {"drop_last", false}, {"start_method", "fork"}, {"repetitions", Json::array()}};
}

Json file(const Json& points) {
  return {{"format", "stoker-input-runs"},
          {"schema_version", {1, 0}},
          {"rule", "as stated"},
          {"provenance",
           {{"date", "2026-11-28"},
            {"cpu_model", "Xeon"},
            {"cores", 2},
            {"python", "3.11"},
            {"torch", "2.13"}}},
          {"scenarios", Json::array({{{"name", "made"},
                                      {"what", "made samples"},
                                      {"batches_differ", false},
                                      {"probe", probe()},
                                      {"points", points}}})}};
}

LoaderRuns parsed(const Json& json) {
  auto runs = parse_loader_runs(json.dump(), "rows.json");
  EXPECT_TRUE(runs) << runs.error().text();
  return runs ? std::move(*runs) : LoaderRuns{};
}

Json repetition(double epoch_ms, double first_ms, std::int64_t shm, bool good = true) {
  return {{"epoch_ms", epoch_ms},
          {"first_batch_ms", first_ms},
          {"interval_ms", 1.0},
          {"shm_bytes", shm},
          {"main_cpu_ms", 1.0},
          {"workers_cpu_ms", 1.0},
          {"foreign_share", 0.0},
          {"steal_share", 0.0},
          {"speed", 1.0},
          {"good", good},
          {"why", good ? "" : "other processes used 9.0% of the cores"}};
}

/// Points whose measured values are the forecasts times 1 + error, twice; the second a bit longer.
Json measured(Json points, const std::vector<double>& errors) {
  const LoaderRuns runs = parsed(file(points));
  const LoaderScenario& scenario = runs.scenarios.front();
  const SampleCost cost = sample_cost_from_pipeline(scenario.probe, {});
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LoaderForecast f = forecast_of(scenario, scenario.points[i], cost);
    const double by = 1 + errors[i];
    for (const double longer : {1.02, 1.0}) {
      points[i]["repetitions"].push_back(
          repetition(milliseconds(f.epoch - f.shutdown) * by * longer, milliseconds(f.first_batch),
                     f.shared_memory_used.count()));
    }
  }
  return points;
}

Result<InputValidation> validated(const Json& json) { return validate_input(parsed(json), {}); }

TEST(InputValidation, ExactForecastsPass) {
  const Json points =
      measured({point(0), point(1), point(2), point(3), point(2, 100)}, {0, 0, 0, 0, 0});
  const auto v = validated(file(points));
  ASSERT_TRUE(v) << v.error().text();
  EXPECT_EQ(v->points.size(), 5U);
  EXPECT_NEAR(v->epoch.mean, 0, 1e-9);
  EXPECT_EQ(v->coverage, 1);
  EXPECT_TRUE(v->failures.empty()) << v->failures.front();
  EXPECT_EQ(v->shared_memory.count + v->shared_memory_elsewhere.count, 4U)
      << "without workers there is none";
  EXPECT_GE(v->shared_memory.count, 1U) << "a long step lets the window fill";
  ASSERT_EQ(v->recommendations.size(), 1U) << "the point with a step is no part of the search";
  EXPECT_EQ(v->recommendations[0].settings, 4U);
  EXPECT_EQ(v->recommendations[0].loss, 0);
}

TEST(InputValidation, BarsAndBandsFailByName) {
  const Json points = measured({point(0), point(1), point(2)}, {0.05, -0.28, 0.05});
  const auto v = validated(file(points));
  ASSERT_TRUE(v);
  EXPECT_NEAR(v->epoch.worst, 1 / 0.72 - 1, 1e-6);
  EXPECT_EQ(v->epoch.worst_label, "made: batch 32, 1 worker");
  ASSERT_EQ(v->failures.size(), 2U);
  EXPECT_EQ(v->failures[0], "mean error of epochs is 16.1 %, to reach: 4.0 %");
  EXPECT_EQ(v->failures[1], "worst error of an epoch is 38.9 %, to reach: 10.0 %");
  EXPECT_NEAR(v->coverage, 2 / 3.0, 1e-9) << "of three points one outside is no proof";

  std::vector<Json> many(20, point(1));
  std::vector<double> errors(20, 0.3);
  for (std::size_t i = 0; i < many.size(); ++i) many[i]["samples"] = 320 + 32 * i;
  const auto outside = validated(file(measured(many, errors)));
  ASSERT_TRUE(outside);
  EXPECT_NE(outside->failures.back().find("within their 90 % band is 0.0 %"), std::string::npos);
}

TEST(InputValidation, TheBestRepetitionCountsAndFewGoodOnesDropAPoint) {
  Json points = measured({point(1), point(2)}, {0, 0});
  points[1]["repetitions"][0] = repetition(1, 1, 0, false);
  Json failed = repetition(1, 1, 0, false);  // an epoch that broke has no times at all
  failed.erase("epoch_ms");
  failed.erase("first_batch_ms");
  points[1]["repetitions"].push_back(failed);
  const auto v = validated(file(points));
  ASSERT_TRUE(v) << v.error().text();
  ASSERT_EQ(v->points.size(), 1U);
  EXPECT_NEAR(v->points[0].epoch_error, 0, 1e-9);
  ASSERT_EQ(v->dropped.size(), 1U);
  EXPECT_EQ(v->dropped[0].label, "made: batch 32, 2 workers");
  EXPECT_EQ(v->dropped[0].why, "1 of 2 good repetitions (other processes used 9.0% of the cores)");
}

TEST(InputValidation, SharedMemoryIsJudgedWhereTheWindowFills) {
  Json points = measured({point(2), point(2, 100)}, {0, 0});
  const auto multiply = [&points](std::size_t i, std::int64_t percent) {
    for (Json& repetition : points[i]["repetitions"])
      repetition["shm_bytes"] = repetition["shm_bytes"].as_integer() * percent / 100;
  };
  multiply(0, 400);
  multiply(1, 102);
  const auto v = validated(file(points));
  ASSERT_TRUE(v) << v.error().text();
  ASSERT_EQ(v->failures.size(), 2U);
  EXPECT_EQ(v->failures[0],
            "worst error of shared memory where the window fills is 2.0 %, to reach: 1.0 %");
  EXPECT_EQ(v->failures[1],
            "made: batch 32, 2 workers used more shared memory than its window can hold");
}

TEST(InputValidation, RepetitionsThatDisagreeDropAPoint) {
  Json whole = file(measured({point(1), point(2)}, {0, 0}));
  whole["agreement"] = 0.05;
  Json& second = whole["scenarios"][0]["points"][1]["repetitions"][0]["epoch_ms"];
  second = second.as_double() * 1.1;
  const auto v = validated(whole);
  ASSERT_TRUE(v) << v.error().text();
  EXPECT_EQ(v->points.size(), 1U);
  ASSERT_EQ(v->dropped.size(), 1U);
  EXPECT_EQ(v->dropped[0].why, "no 2 repetitions agree within 5.0 %");
}

TEST(InputValidation, ALosingRecommendationIsFound) {
  // Measured, two workers are a third slower than forecast, so one worker would have been better.
  Json points = measured({point(0), point(1), point(2), point(3)}, {0, 0, 1.2, 1.2});
  const auto v = validated(file(points));
  ASSERT_TRUE(v);
  ASSERT_EQ(v->recommendations.size(), 1U);
  EXPECT_EQ(v->recommendations[0].chosen, "batch 32, 2 workers");
  EXPECT_NE(v->recommendations[0].best, v->recommendations[0].chosen);
  EXPECT_GT(v->recommendations[0].loss, 0.03);
  bool said = false;
  for (const std::string& text : v->failures)
    said = said || text.find("recommended workers of made") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST(InputValidation, ColdFilesNeedColdReads) {
  Json points = measured({point(1), point(2)}, {0, 0});
  points[1]["cold"] = true;
  const auto v = validated(file(points));
  ASSERT_TRUE(v) << v.error().text();
  ASSERT_EQ(v->dropped.size(), 1U);
  EXPECT_EQ(v->dropped[0].label, "made: batch 32, 2 workers, cold files");
  EXPECT_EQ(v->dropped[0].why, "cold reads were not measured at calibration");
}

TEST(InputValidation, ErrorsByScenarioAreThoseOfItsPoints) {
  const auto v = validated(file(measured({point(1), point(2)}, {0.1, -0.1})));
  ASSERT_TRUE(v) << v.error().text();
  ASSERT_EQ(v->by_scenario.size(), 1U);
  const auto& [name, summary] = v->by_scenario.front();
  EXPECT_EQ(name, "made");
  EXPECT_EQ(summary.count, 2U);
  EXPECT_NEAR(summary.mean, (1 - 1 / 1.1 + 1 / 0.9 - 1) / 2, 1e-6);
  EXPECT_NEAR(summary.bias, (1 / 1.1 - 1 + 1 / 0.9 - 1) / 2, 1e-6);
  EXPECT_EQ(summary.worst_label, "made: batch 32, 2 workers");
}

TEST(InputValidation, NothingToCompareIsAnError) {
  const auto v = validated(file(Json::array({point(1)})));
  ASSERT_FALSE(v);
  EXPECT_NE(v.error().message.find("no measured point is left"), std::string::npos);
}

std::string error_of(const std::string& text) {
  const auto runs = parse_loader_runs(text, "rows.json");
  return runs ? "" : runs.error().text();
}

TEST(LoaderRuns, DamageIsNamed) {
  const Json whole = file(measured({point(1)}, {0}));
  EXPECT_NE(error_of(whole.dump().substr(0, 300)).find("cut short or damaged"), std::string::npos);
  EXPECT_NE(error_of("{}").find("no file of measured DataLoaders"), std::string::npos);
  Json newer = whole;
  newer["schema_version"] = {2, 0};
  EXPECT_NE(error_of(newer.dump()).find("rows format 2"), std::string::npos);
  const auto with = [&whole](const std::string& pointer, const Json& value) {
    Json changed = whole;
    json::at_pointer(changed, pointer) = value;
    return error_of(changed.dump());
  };
  EXPECT_NE(with("/scenarios/0/points/0/workers", -1)
                .find("\"scenarios[0].points[0].workers\" is negative"),
            std::string::npos);
  EXPECT_NE(with("/scenarios/0/points/0/repetitions/1/epoch_ms", "long").find("is not a number"),
            std::string::npos);
  EXPECT_NE(with("/scenarios/0/points/0/repetitions/1/epoch_ms", 0).find("is not above 0"),
            std::string::npos);
  EXPECT_NE(with("/scenarios/0/points/0/start_method", "thread").find("none of fork"),
            std::string::npos);
  EXPECT_NE(with("/scenarios/0/probe/sample/cpu_ms/0", -2).find("sample.cpu_ms[0]"),
            std::string::npos);
  EXPECT_NE(with("/scenarios", 3).find("\"scenarios\" is not a list"), std::string::npos);
}

TEST(LoaderRuns, LabelsSayWhatIsUnusual) {
  LoaderPoint p;
  p.settings = {.batch = 8, .workers = 1, .prefetch = 4, .in_order = false};
  p.step = 40 * kMillisecond;
  EXPECT_EQ(p.label(), "batch 8, 1 worker, prefetch 4, step 40 ms, 1 core, any order");
}

}  // namespace
}  // namespace stoker
