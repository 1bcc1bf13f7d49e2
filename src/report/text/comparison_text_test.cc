#include <gtest/gtest.h>

#include "json/text.h"
#include "report/model/report.h"
#include "report/model/settings_table.h"
#include "report/test_forecast.h"
#include "report/text/test_text.h"

namespace stoker {
namespace {

using testing_support::give_epoch;
using testing_support::has;
using testing_support::made_context;
using testing_support::made_forecast;
using testing_support::on_one_line;

Contender contender(const char* gpu, Figure rate) {
  Contender c;
  c.forecast = made_forecast();
  c.forecast.gpu_name = gpu;
  c.forecast.samples_per_s = std::move(rate);
  c.rows = "its own";
  return c;
}

/// B beats A surely, C and D overlap behind them, E does not fit.
std::vector<Contender> five() {
  std::vector<Contender> all{contender("A", {300, 290, 310, ""}),
                             contender("B", {900, 800, 999, ""}),
                             contender("C", {100, 80, 130, ""}), contender("D", {120, 90, 140, ""}),
                             contender("E", {999, 990, 999, ""})};
  all[3].forecast.job.gpus = 2;
  all[4].forecast.memory.fits = false;
  all[4].forecast.memory.out_of_memory = "not even batch 1 fits.";
  return all;
}

std::string said(const std::vector<Contender>& all, const ReportContext& context = made_context()) {
  return on_one_line(contenders_text(all, Objective::kThroughput, context));
}

TEST(ContendersText, PlacesAreSharedWhereBandsOverlap) {
  const std::string text = said(five());
  EXPECT_TRUE(text.starts_with("resnet50 | T4 on 5 kinds of GPU, best throughput first ")) << text;
  EXPECT_TRUE(has(text, "1 B 32 4.0 of 15.0 100 900 [800-999] 90 % GPU its own")) << text;
  EXPECT_TRUE(has(text, "2 A 32 4.0 of 15.0 100 300 [290-310]")) << text;
  EXPECT_TRUE(has(text, "3-4 2 x D 32 4.0 of 15.0 100 120 [90.0-140]")) << text;
  EXPECT_TRUE(has(text, "3-4 C 32")) << text;
  EXPECT_TRUE(has(text, "- E 32 4.0 of 15.0: NO - - - memory its own")) << text;
  EXPECT_TRUE(has(text, "Undecided 90 % bands overlap: 2 x D, C ")) << text;
  EXPECT_TRUE(has(text, "E does not fit: not even batch 1 fits.")) << text;
}

TEST(ContendersText, ARiskyOneIsMarked) {
  std::vector<Contender> one{contender("A", {300, 290, 310, ""})};
  one[0].forecast.memory.verdict = MemoryVerdictWord::kRisky;
  EXPECT_TRUE(has(said(one), "on 1 kind of GPU") && has(said(one), "4.0 of 15.0, risky"));
  one[0].forecast.memory.only_by_flushing = true;
  EXPECT_TRUE(has(said(one), "4.0 of 15.0, flushes"));
  EXPECT_FALSE(has(said(one), "Undecided"));
}

TEST(ContendersText, MoneyOfAMillionSamplesWhereTheDataIsUnknown) {
  std::vector<Contender> all{contender("A", {1000, 900, 1100, ""})};
  std::string text = said(all);
  EXPECT_TRUE(has(text, "place GPU GPUs W kWh/million img [90 %] 1 A 1 - no TDP")) << text;
  all[0].forecast.price_per_gpu_hour = 3.6;  // a thousandth of a unit a second
  all[0].forecast.energy.emplace();
  all[0].forecast.energy->watts = exact(72, "");
  all[0].forecast.energy->joules_per_sample = {0.072, 0.036, 0.144, ""};
  text = said(all);
  EXPECT_TRUE(has(text, "1 A 1 $3.60 $1.00 72.0 0.02 [0.01-0.04]")) << text;
}

TEST(ContendersText, MoneyOfEpochsAndRuns) {
  std::vector<Contender> all{contender("A", {1000, 900, 1100, ""})};
  give_epoch(all[0].forecast, 36, 0.004, 100);
  ReportContext context = made_context();
  context.dataset_samples = 36'000;
  const std::string text = said(all, context);
  EXPECT_TRUE(has(text,
                  "epoch GPU-h/epoch cost/epoch W kWh/epoch [90 %] run of 100 cost/run "
                  "kWh/run 1 A 1 $1.00 36 s 0.010 $0.004 - no TDP 1 h 00 min $0.40 -"))
      << text;
}

TEST(ContendersText, WhatAllWarnOfIsSaidOnce) {
  std::vector<Contender> all = five();
  for (Contender& c : all)
    c.forecast.diagnostics.add("old", Severity::kWarning, "the rows are old", 1);
  const std::string text = said(all);
  EXPECT_EQ(text.find("the rows are old"), text.rfind("the rows are old")) << text;
}

TEST(ComparisonText, PlansSideBySide) {
  std::vector<std::pair<std::string, Plan>> plans(2);
  plans[0].second.best.forecast = contender("A", {300, 290, 310, ""}).forecast;
  plans[1].second.best.forecast = contender("B", {900, 800, 999, ""}).forecast;
  Forecast& b = plans[1].second.best.forecast;
  b.input.known = true;
  b.loader.workers = 6;
  give_epoch(b, 3600, 0.0034);
  ReportContext context = made_context();
  context.dataset_samples = 1000;
  const std::string text = on_one_line(comparison_text(plans, Objective::kThroughput, context));
  EXPECT_TRUE(
      text.starts_with("resnet50 on 2 kinds of GPU, best throughput first place GPU GPUs "
                       "precision batch workers img/s [90 %] epoch GPU-h/epoch cost/epoch "
                       "kWh/epoch limit "
                       "1 B 1 fp32 32 6 900 [800-999] 1 h 00 min 1.000 $0.0034 no TDP GPU "
                       "2 A 1 fp32 32 - 300 [290-310] - - - no TDP GPU "))
      << text;
}

TEST(ContendersJson, HasThePlacesOfTheText) {
  const auto json =
      json::parse(contenders_json(five(), Objective::kThroughput, made_context())).value();
  const json::Value& rows = json["gpus"];
  ASSERT_EQ(rows.size(), 5U) << json.dump();
  std::vector<std::string> order;
  for (const json::Value& row : rows) order.push_back(row["gpu"].as_string());
  EXPECT_EQ(order, (std::vector<std::string>{"B", "A", "D", "C", "E"}));
  EXPECT_EQ(rows[2]["place"].dump(), R"({"first":3,"last":4})");
  EXPECT_TRUE(rows[4]["place"].is_null()) << rows[4]["place"].dump();
}

std::vector<SettingsAnswer> table_of_three() {
  std::vector<SettingsAnswer> all(3);
  for (std::size_t i = 0; i < 3; ++i) {
    all[i].seq_len = std::to_string(128 << i);
    all[i].forecast = made_forecast();
    all[i].limits.low = 40;
  }
  all[1].forecast->memory.fits = false;
  all[2].forecast.reset();
  all[2].batch = "64";
  all[2].refused = "gpt2 takes seq_len up to 256, not 512";
  return all;
}

TEST(SettingsTable, ARowForEachCombination) {
  std::vector<SettingsAnswer> all = table_of_three();
  std::string text = on_one_line(settings_table_text(all, made_context()));
  EXPECT_TRUE(has(text,
                  "batch seq_len verdict memory [90 %] safe batch step ms img/s [90 %] limit "
                  "32 128 FITS 4.00 GiB [3.00-5.00] 40 100 320 [300-340] GPU "
                  "32 256 DOES NOT FIT 4.00 GiB [3.00-5.00] 40 - - memory "
                  "64 512 REFUSED - - - - - "
                  "Refused: gpt2 takes seq_len up to 256, not 512"))
      << text;
  all[0].precision = "amp-bf16";
  all[0].forecast->job.accumulate = 4;
  all[0].forecast->memory.verdict = MemoryVerdictWord::kRisky;
  all.push_back(all[2]);
  text = on_one_line(settings_table_text(all, made_context()));
  EXPECT_TRUE(has(text, "batch seq_len precision accumulate verdict")) << text;
  EXPECT_TRUE(has(text, "32 128 amp-bf16 4 RISKY")) << text;
  EXPECT_EQ(text.find("Refused:"), text.rfind("Refused:")) << "one reason is said once: " << text;
}

TEST(SettingsTable, JsonHasTheRowsOfTheText) {
  const auto json = json::parse(settings_table_json(table_of_three(), made_context())).value();
  const json::Value& rows = json["table"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["seq_len"], "128");
  EXPECT_EQ(rows[0]["forecast"]["memory"]["fits"], true);
  EXPECT_EQ(rows[1]["forecast"]["memory"]["fits"], false);
  EXPECT_TRUE(rows[2]["forecast"].is_null()) << rows[2].dump();
  EXPECT_EQ(rows[2]["batch"], "64");
  EXPECT_EQ(rows[2]["refused"], "gpt2 takes seq_len up to 256, not 512");
}

TwoPointAnswer two_readings() {
  TwoPointAnswer a;
  a.readings[0] = {10, kGiB * 3};
  a.readings[1] = {50, kGiB * 10};
  a.simulated = {false, true};
  a.estimate.batch = 60;
  a.estimate.batch_at_least_kept = 55;
  a.estimate.per_sample_bytes = 2.0 * kMiB.count();
  a.estimate.fixed_bytes = 1.0 * kGiB.count();
  a.estimate.gpus = 1;
  a.gpu_memory = kGiB * 16;
  return a;
}

TEST(TwoPointText, TheFormulaWithItsNumbers) {
  std::string text = on_one_line(two_point_text(two_readings()));
  EXPECT_TRUE(
      text.starts_with("TWO READINGS: batch 60 per GPU (55 with 1 GiB kept back) 3.0 GiB at "
                       "batch 10, as given 10.0 GiB at batch 50, simulated I + O + 2Y = 2.0 "
                       "MiB a sample, X = 1.0 GiB without any; (16.0 GiB - "))
      << text;
  EXPECT_TRUE(has(text, " - X) / (I + O + 2Y) = 60"));
  EXPECT_FALSE(has(text, "SIMULATED") || has(text, "times") || has(text, "X below 0")) << text;
  TwoPointAnswer a = two_readings();
  a.estimate.fixed_bytes = -3.0 * kMiB.count();
  a.estimate.gpus = 4;
  a.simulated_largest = 64;
  a.simulated_safe = 58;
  a.reasons = {"rounding", "fragmentation"};
  text = on_one_line(two_point_text(a));
  EXPECT_TRUE(has(text, "X = -3.0 MiB without any")) << text;
  EXPECT_TRUE(has(text, "X below 0: memory grows faster than the batch; read at larger batches"));
  EXPECT_TRUE(has(text,
                  "times 4 GPUs: 240 SIMULATED: batch 64 per GPU runs, 58 is safe Because "
                  "rounding; fragmentation"))
      << text;
}

}  // namespace
}  // namespace stoker
