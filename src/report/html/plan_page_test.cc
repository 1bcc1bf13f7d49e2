#include <gtest/gtest.h>

#include <random>

#include "json/text.h"
#include "report/model/page_report.h"
#include "report/test_forecast.h"

namespace stoker {
namespace {

using testing_support::give_epoch;
using testing_support::made_context;
using testing_support::made_forecast;

/// What the script of a page is given to draw.
json::Value document_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = page.find(begin) + begin.size();
  auto parsed = json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_TRUE(parsed);
  return parsed.value_or(json::Value());
}

/// The first block of a kind, wherever it stands.
json::Value block_of(const json::Value& document, const std::string& kind) {
  for (const json::Value& section : document["sections"]) {
    for (const json::Value& block : section["blocks"]) {
      if (block["kind"] == kind) return block;
    }
  }
  return {};
}

/// Label -> text of the figures in large print.
std::map<std::string, std::string> tiles_of(const json::Value& document) {
  std::map<std::string, std::string> tiles;
  for (const json::Value& tile : document["tiles"])
    tiles[tile["label"].as_string()] = tile["figure"]["text"].as_string();
  return tiles;
}

GridSetting setting(int gpus, std::int64_t batch, double rate, double money) {
  GridSetting s;
  s.gpus = gpus;
  s.batch = batch;
  s.device_peak = exact(1.0 * kGiB.count() * static_cast<double>(batch), "simulated");
  if (rate <= 0) return s;  // it does not fit
  s.verdict = MemoryVerdictWord::kFits;
  s.samples_per_s = {rate, rate * 0.9, rate * 1.1, "rows"};
  s.epoch_s = {1e5 / rate, 1e5 / rate / 1.1, 1e5 / rate / 0.9, "rows"};
  s.epoch_cost = exact(money, "");
  s.limiter.what = "GPU compute";
  return s;
}

PlanPicture picture() {
  PlanPicture p;
  p.grid = {setting(1, 8, 100, 1.0), setting(1, 16, 120, 0.9), setting(1, 32, 0, 0),
            setting(2, 8, 180, 1.1), setting(2, 16, 200, 1.2), setting(2, 32, 0, 0)};
  p.grid[3].verdict = MemoryVerdictWord::kRisky;
  p.grid[3].input_known = true;
  p.grid[3].workers = 1;
  p.grid[4].chosen = true;
  return p;
}

Plan plan() {
  Plan p;
  p.best.forecast = made_forecast();
  give_epoch(p.best.forecast, 90, 0.0012);
  p.by_gpus = {p.best, p.best};
  p.by_gpus[1].forecast.job.gpus = 2;
  p.by_gpus[1].forecast.input.known = true;
  p.by_gpus[1].forecast.loader.workers = 6;
  p.next = {{"channels-last", 0.25, -0.2}};
  return p;
}

TEST(PlanPage, TheHeadlineAndItsTilesAreTheForecasts) {
  const json::Value document = document_of(plan_page(plan(), picture(), made_context()));
  EXPECT_EQ(document["title"], "Plan: resnet50");
  EXPECT_EQ(document["headline"]["verdict"], "good");
  EXPECT_EQ(document["headline"]["text"], "1 GPU, batch 32 per GPU, fp32, pinned");
  EXPECT_EQ(document["tool"], "9.8.7");
  const auto tiles = tiles_of(document);
  EXPECT_EQ(tiles.at("Throughput"), "320 img/s");
  EXPECT_EQ(tiles.at("Epoch"), "90 s");
  EXPECT_EQ(tiles.at("Cost an epoch"), "$0.0012");
  EXPECT_EQ(tiles.at("Step"), "100 ms");
  EXPECT_EQ(tiles.at("GPU busy"), "90 %");
  EXPECT_EQ(tiles.at("Memory per GPU"), "4.0 GiB");
  EXPECT_FALSE(tiles.contains("Energy an epoch")) << "no TDP";
}

TEST(PlanPage, TheMapHasACellForEachSetting) {
  const json::Value map =
      block_of(document_of(plan_page(plan(), picture(), made_context())), "heat_map");
  EXPECT_EQ(map["columns"].dump(), R"(["8","16","32"])");
  EXPECT_EQ(map["metrics"][1]["name"], "cost of an epoch ($)");
  EXPECT_EQ(map["metrics"][1]["more_is_better"], false);
  ASSERT_EQ(map["panels"].size(), 1U);
  const json::Value& rows = map["panels"][0]["rows"];
  ASSERT_EQ(rows.size(), 2U);
  for (const json::Value& row : rows) EXPECT_EQ(row["cells"].size(), 3U) << "one a column";
  const json::Value& risky = rows[1]["cells"][0];
  EXPECT_EQ(risky["verdict"], "risky");
  EXPECT_EQ(risky["figures"][0]["text"], "180");
  EXPECT_EQ(risky["figures"][1]["text"], "$1.10");
  EXPECT_EQ(risky["figures"][2]["text"], "8.0 GiB");
  EXPECT_EQ(rows[1]["cells"][1]["chosen"], true);
  EXPECT_EQ(rows[0]["cells"][1]["chosen"], false);
  const json::Value& unfit = rows[0]["cells"][2];
  EXPECT_EQ(unfit["verdict"], "bad");
  EXPECT_TRUE(unfit["figures"][0].is_null() && unfit["figures"][1].is_null());
  EXPECT_EQ(unfit["figures"][2]["text"], "32.0 GiB") << "how much it would have needed";
}

TEST(PlanPage, TextsThatRepeatStandOnce) {
  const json::Value document = document_of(plan_page(plan(), picture(), made_context()));
  const json::Value map = block_of(document, "heat_map");
  const auto note = [&](std::size_t row, std::size_t cell) {
    const json::Value& at = map["panels"][0]["rows"][row]["cells"][cell]["note"];
    return document["texts"][static_cast<std::size_t>(at.as_integer())].as_string();
  };
  EXPECT_EQ(note(0, 0), "limited by GPU compute");
  EXPECT_EQ(note(1, 0), "limited by GPU compute, 1 worker");
  std::set<std::string> seen;
  for (const json::Value& text : document["texts"])
    EXPECT_TRUE(seen.insert(text.as_string()).second) << text.as_string();
}

TEST(PlanPage, TheFrontIsWhatNothingBeatsInTimeAndMoney) {
  std::mt19937 chance(3);
  PlanPicture many;
  for (int i = 0; i < 60; ++i) {
    many.grid.push_back(setting(1 + i % 4, 8 << (i % 5), 100 + static_cast<double>(chance() % 40),
                                1 + static_cast<double>(chance() % 20) / 10));
  }
  const json::Value plot =
      block_of(document_of(plan_page(plan(), many, made_context())), "scatter");
  ASSERT_EQ(plot["points"].size(), many.grid.size());
  std::size_t on_front = 0;
  for (std::size_t i = 0; i < many.grid.size(); ++i) {
    bool beaten = false;
    for (const GridSetting& other : many.grid) {
      const double dx = other.epoch_s.value - many.grid[i].epoch_s.value;
      const double dy = other.epoch_cost.value - many.grid[i].epoch_cost.value;
      beaten = beaten || (dx <= 0 && dy <= 0 && (dx < 0 || dy < 0));
    }
    EXPECT_EQ(plot["points"][i]["front"], !beaten) << i;
    on_front += beaten ? 0 : 1;
  }
  EXPECT_GT(on_front, 0U);
  EXPECT_LT(on_front, many.grid.size());
}

TEST(PlanPage, WithoutASizeOfTheDataTimeAndMoneyAreOfAMillionSamples) {
  PlanPicture p = picture();
  for (GridSetting& s : p.grid) s.epoch_s = s.epoch_cost = {};
  const json::Value plot = block_of(document_of(plan_page(plan(), p, made_context())), "scatter");
  EXPECT_EQ(plot["x"]["label"], "seconds a thousand img");
  EXPECT_EQ(plot["y"]["label"], "GPU-hours a million img");
  const json::Value& point = plot["points"][2];  // two GPUs at 180 img/s
  EXPECT_EQ(point["label"], "2 GPUs, batch 8, fp32");
  EXPECT_NEAR(point["x"]["v"].as_double(), 1000 / 180.0, 1e-5);
  EXPECT_NEAR(point["y"]["v"].as_double(), 2 * 1e6 / 180 / 3600, 1e-5);
  EXPECT_NEAR(point["y"]["hi"].as_double(), 2 * 1e6 / 162 / 3600, 1e-5) << "the slowest is dearest";
}

bool has_section(const json::Value& document, std::string_view title) {
  for (const json::Value& section : document["sections"]) {
    if (section["title"] == title) return true;
  }
  return false;
}

TEST(PlanPage, WithoutAPriceNothingIsCalledMoney) {
  PlanPicture p = picture();
  EXPECT_TRUE(has_section(document_of(plan_page(plan(), p, made_context())), "Time against money"));
  for (GridSetting& s : p.grid) s.epoch_cost = {};
  const Plan one = plan();
  const json::Value alone = document_of(plan_page(one, p, made_context()));
  const json::Value compared =
      document_of(comparison_page({{&one.best.forecast, &p}, {&one.best.forecast, &p}},
                                  Objective::kThroughput, made_context(), ""));
  for (const json::Value& document : {alone, compared}) {
    EXPECT_TRUE(has_section(document, "Time against GPU-hours"));
    EXPECT_FALSE(has_section(document, "Time against money"));
  }
}

TEST(PlanPage, AProcessorHasHoursAndNoGpuHours) {
  PlanPicture p = picture();
  for (GridSetting& s : p.grid) {
    s.epoch_cost = {};
    s.gpu_hours_per_epoch = scaled(s.epoch_s, 1.0 / 3600);
  }
  ReportContext context = made_context();
  context.cpu = true;
  const std::string page = plan_page(plan(), p, context);
  const json::Value map = block_of(document_of(page), "heat_map");
  EXPECT_EQ(map["metrics"][1]["name"], "hours an epoch");
  EXPECT_EQ(map["panels"][0]["rows"][0]["cells"][0]["figures"][1]["text"], "0.28 h");
}

TEST(PlanPage, NumbersOfGpusAsTheTextHasThem) {
  const json::Value document = document_of(plan_page(plan(), picture(), made_context()));
  json::Value counts;
  json::Value advice;
  for (const json::Value& section : document["sections"]) {
    if (section["title"] == "Numbers of GPUs") counts = section["blocks"][0];
    if (section["title"] == "What to do next") advice = section["blocks"][0];
  }
  ASSERT_EQ(counts["rows"].size(), 2U);
  EXPECT_EQ(counts["rows"][0][2], "-") << "nothing is known of the input";
  EXPECT_EQ(counts["rows"][1][2]["text"], "6");
  EXPECT_EQ(counts["rows"][1][0]["v"].as_double(), 2);
  EXPECT_EQ(advice["rows"][0].dump(),
            R"(["channels-last",{"text":"+25 %","v":0.25},{"text":"-20 %","v":-0.2}])");
}

TEST(PredictPage, WhatDoesNotFitIsBad) {
  Prediction p;
  p.forecast = made_forecast();
  p.forecast.memory.fits = false;
  p.forecast.memory.verdict = MemoryVerdictWord::kDoesNotFit;
  const json::Value document = document_of(predict_page(p, {}, made_context()));
  EXPECT_EQ(document["headline"]["verdict"], "bad");
  EXPECT_FALSE(tiles_of(document).contains("Throughput")) << "what does not run has no speed";
}

TEST(PredictPage, PhasesAddUpToTheStep) {
  Prediction p;
  p.forecast = made_forecast();
  const json::Value stack = block_of(document_of(predict_page(p, {}, made_context())), "stack");
  double sum = 0;
  for (const json::Value& row : stack["rows"]) sum += row["figure"]["v"].as_double();
  EXPECT_DOUBLE_EQ(sum, p.forecast.step_ms.value);
}

}  // namespace
}  // namespace stoker
