#include "evidence/input/loader_runs.h"

#include <gtest/gtest.h>

#include <functional>

#include "json/value.h"

namespace stoker {
namespace {

using Json = json::Value;

Json probe() {
  return {{"format", "stoker-pipeline-probe"},
          {"schema_version", {1, 0}},
          {"name", "made"},
          {"kind", "map"},
          {"samples", 64},
          {"sample", {{"cpu_ms", Json::array({2.0, 2.0})}}},
          {"batch", Json::array({Json{{"batch", 8},
                                      {"samples", 8},
                                      {"tensors", 1},
                                      {"bytes", 4096},
                                      {"pickled_bytes", 0},
                                      {"collate_shared_ms", 0.1},
                                      {"collate_private_ms", 0.05}}})},
          {"transport", Json::object()}};
}

Json repetition() {
  return {{"good", true},       {"why", ""},         {"foreign_share", 0.02}, {"steal_share", 0.01},
          {"speed", 0.98},      {"epoch_ms", 1500},  {"first_batch_ms", 120}, {"interval_ms", 12.5},
          {"shm_bytes", 65536}, {"main_cpu_ms", 90}, {"workers_cpu_ms", 1300}};
}

Json point() {
  return {{"batch", 32},
          {"workers", 3},
          {"prefetch", 4},
          {"in_order", false},
          {"step_ms", 40},
          {"cores", 1},
          {"cold", true},
          {"samples", 640},
          {"persistent", true},
          {"drop_last", true},
          {"start_method", "spawn"},
          {"repetitions", Json::array({repetition()})}};
}

Json file() {
  Json scenario{{"name", "pictures"}, {"what", "made pictures"}, {"batches_differ", true}};
  scenario["cut"] = true;
  scenario["probe"] = probe();
  scenario["points"] = Json::array({point()});
  scenario["cold_reads"] = {{"seek_ms", 8}, {"bandwidth", 2e8}, {"speedup", 3}};
  Json root{{"format", "stoker-input-runs"}, {"schema_version", {1, 0}}, {"rule", "as stated"}};
  root["needed"] = 3;
  root["agreement"] = 0.05;
  root["provenance"] = {{"date", "2026-11-28"},
                        {"cpu_model", "Xeon"},
                        {"cores", 2},
                        {"python", "3.11"},
                        {"torch", "2.13"}};
  root["skipped"] = Json::array({Json{{"name", "tokens"}, {"why", "no room"}}});
  root["scenarios"] = Json::array({scenario});
  return root;
}

Result<LoaderRuns> parsed(const Json& json) { return parse_loader_runs(json.dump(), "rows.json"); }

TEST(LoaderRuns, EveryFieldIsRead) {
  const auto runs = parsed(file());
  ASSERT_TRUE(runs) << runs.error().text();
  EXPECT_EQ(runs->rule, "as stated");
  EXPECT_EQ(runs->needed, 3);
  EXPECT_EQ(runs->agreement, 0.05);
  EXPECT_EQ(runs->date + " " + runs->cpu_model + " " + runs->python + " " + runs->torch,
            "2026-11-28 Xeon 3.11 2.13");
  EXPECT_EQ(runs->cores, 2);
  ASSERT_EQ(runs->skipped.size(), 1u);
  EXPECT_EQ(runs->skipped[0].name + ": " + runs->skipped[0].why, "tokens: no room");
  ASSERT_EQ(runs->scenarios.size(), 1u);
  const LoaderScenario& s = runs->scenarios[0];
  EXPECT_EQ(s.name + ": " + s.what, "pictures: made pictures");
  EXPECT_TRUE(s.batches_differ && s.cut && s.cold.measured);
  EXPECT_EQ(s.cold.seek_ms, 8);
  EXPECT_EQ(s.cold.bandwidth, 2e8);
  EXPECT_EQ(s.cold.speedup, 3);
  EXPECT_EQ(s.probe.cpu, (std::vector<Nanos>{kMillisecond * 2, kMillisecond * 2}));
  ASSERT_EQ(s.points.size(), 1u);
  const LoaderPoint& p = s.points[0];
  EXPECT_EQ(p.settings.batch, 32);
  EXPECT_EQ(p.settings.workers, 3);
  EXPECT_EQ(p.settings.prefetch, 4);
  EXPECT_EQ(p.settings.dataset_samples, 640);
  EXPECT_TRUE(p.settings.persistent && p.settings.drop_last && p.cold);
  EXPECT_FALSE(p.settings.in_order || p.settings.pin);
  EXPECT_EQ(p.settings.start_method, StartMethod::kSpawn);
  EXPECT_EQ(p.step, kMillisecond * 40);
  ASSERT_EQ(p.repetitions.size(), 1u);
  const LoaderRepetition& r = p.repetitions[0];
  EXPECT_TRUE(r.good);
  EXPECT_EQ(r.epoch, kMillisecond * 1500);
  EXPECT_EQ(r.first_batch, kMillisecond * 120);
  EXPECT_EQ(r.interval, kMillisecond * 12.5);
  EXPECT_EQ(r.shared_memory, kKiB * 64);
  EXPECT_EQ(r.main_cpu, kMillisecond * 90);
  EXPECT_EQ(r.workers_cpu, kMillisecond * 1300);
  EXPECT_EQ(r.foreign, 0.02);
  EXPECT_EQ(r.steal, 0.01);
  EXPECT_EQ(r.speed, 0.98);
}

TEST(LoaderRuns, WhatIsUsualIsLeftOutOfALabel) {
  const auto runs = parsed(file());
  ASSERT_TRUE(runs);
  LoaderPoint p = runs->scenarios[0].points[0];
  EXPECT_EQ(p.label(),
            "batch 32, 3 workers, prefetch 4, step 40 ms, 1 core, any order, persistent, spawn, "
            "cold files");
  p.settings = {};
  p.settings.batch = 8;
  p.settings.workers = 1;
  p.step = Nanos(0);
  p.cores = 2;
  p.cold = false;
  EXPECT_EQ(p.label(), "batch 8, 1 worker");
  p.settings.workers = 0;
  p.settings.prefetch = 7;  // means nothing without workers
  p.settings.start_method = StartMethod::kForkserver;
  EXPECT_EQ(p.label(), "batch 8, 0 workers, forkserver");
}

TEST(LoaderRuns, AnEpochThatFailedHasNoTimes) {
  Json json = file();
  json["scenarios"][0]["points"][0]["repetitions"] = Json::array({Json{{"good", false},
                                                                       {"why", "out of memory"},
                                                                       {"foreign_share", 0},
                                                                       {"steal_share", 0},
                                                                       {"speed", 1}}});
  const auto runs = parsed(json);
  ASSERT_TRUE(runs) << runs.error().text();
  const LoaderRepetition& r = runs->scenarios[0].points[0].repetitions[0];
  EXPECT_FALSE(r.good);
  EXPECT_EQ(r.why, "out of memory");
  EXPECT_EQ(r.epoch, Nanos(0));
}

TEST(LoaderRuns, WhatIsDamagedIsNamedWithItsPlace) {
  struct Case {
    std::function<void(Json&)> spoil;
    const char* place;
  };
  const auto at_point = [](const char* key, Json value) {
    return [=](Json& json) { json["scenarios"][0]["points"][0][key] = value; };
  };
  const auto at_repetition = [](const char* key, Json value) {
    return [=](Json& json) { json["scenarios"][0]["points"][0]["repetitions"][0][key] = value; };
  };
  const std::vector<Case> cases{
      {at_point("batch", 0), "scenarios[0].points[0].batch"},
      {at_point("batch", 1.5), "scenarios[0].points[0].batch"},
      {at_point("workers", 2000), "scenarios[0].points[0].workers"},
      {at_point("start_method", "thread"), "scenarios[0].points[0].start_method"},
      {at_point("cold", "yes"), "scenarios[0].points[0].cold"},
      {at_repetition("epoch_ms", 0), "repetitions[0].epoch_ms"},
      {at_repetition("first_batch_ms", 0), "repetitions[0].first_batch_ms"},
      {at_repetition("shm_bytes", -1), "repetitions[0].shm_bytes"},
      {at_repetition("good", nullptr), "repetitions[0].good"},
      {[](Json& json) { json["scenarios"][0]["probe"]["samples"] = -3; }, "probe"},
      {[](Json& json) { json["scenarios"] = 5; }, "scenarios"},
      {[](Json& json) { json["needed"] = 0; }, "needed"},
      {[](Json& json) {
         json["schema_version"] = {2, 0};
       },
       "rows format"},
      {[](Json& json) { json["format"] = "stoker-probe"; }, "no file of measured DataLoaders"}};
  for (const Case& c : cases) {
    Json json = file();
    c.spoil(json);
    const auto runs = parsed(json);
    ASSERT_FALSE(runs) << c.place;
    EXPECT_NE(runs.error().text().find(c.place), std::string::npos) << runs.error().text();
    EXPECT_NE(runs.error().text().find("rows.json"), std::string::npos) << runs.error().text();
  }
}

}  // namespace
}  // namespace stoker
