#include <gtest/gtest.h>

#include "json/text.h"
#include "report/json/answer.h"
#include "report/model/recording_report.h"
#include "report/model/report.h"
#include "report/model/scaling_report.h"
#include "report/model/training_report.h"

namespace stoker {
namespace {

json::Value parsed(const std::string& text) {
  EXPECT_TRUE(text.ends_with("}\n"));
  auto value = json::parse(text);
  EXPECT_TRUE(value);
  return value.value_or(json::Value());
}

ReportContext context() {
  ReportContext c;
  c.tool_version = "9.8.7";
  c.model = "made";
  c.step_hash = "abc";
  c.host_name = "host";
  c.host_cores = 8;
  c.dataset_samples = 1000;
  c.rests_on = {"data sheet"};
  c.data.add("odd", Severity::kWarning, "look", 3);
  return c;
}

TEST(Answers, BeginWithSchemaAndVersion) {
  EXPECT_EQ(answer_text(answer("stoker-made-1", "9.8.7")),
            "{\n  \"schema\": \"stoker-made-1\",\n  \"stoker\": \"9.8.7\"\n}\n");
}

TEST(Answers, AReportSaysWhatItRestsOn) {
  TwoPointAnswer a;
  a.gpu_name = "V100";
  const json::Value r = parsed(two_point_json(a, context()));
  EXPECT_EQ(r.items()[0].key, "schema");
  EXPECT_EQ(r["schema"], "stoker-report-1");
  EXPECT_EQ(r["stoker"], "9.8.7");
  EXPECT_EQ(r["model"], "made");
  EXPECT_EQ(r["step_hash"], "abc");
  EXPECT_EQ(r["host"].dump(), R"({"name":"host","cores":8.0})");
  EXPECT_EQ(r["dataset_samples"], 1000);
  EXPECT_EQ(r["rests_on"].dump(), R"(["data sheet"])");
  EXPECT_EQ(r["assumed"].dump(), "[]");
  EXPECT_EQ(r["data_diagnostics"].dump(),
            R"([{"name":"odd","severity":"warning","count":3,"advice":"look"}])");
}

TEST(Answers, TwoReadingsAndWhatTheSimulationSays) {
  TwoPointAnswer a;
  a.readings[0].batch = 10;
  a.readings[1].batch = 50;
  a.readings[1].bytes = Bytes(500);
  a.simulated = {true, false};
  a.estimate.per_sample_bytes = 2.5;
  a.estimate.batch = 60;
  a.estimate.gpus = 2;
  a.gpu_memory = Bytes(4096);
  json::Value t = parsed(two_point_json(a, context()))["two_point"];
  EXPECT_EQ(t["readings"][1].dump(), R"({"batch":50,"bytes":500,"simulated":false})");
  EXPECT_EQ(t["per_sample_bytes"], 2.5);
  EXPECT_EQ(t["global_batch"], 120);
  EXPECT_EQ(t["gpu_memory_bytes"], 4096);
  EXPECT_FALSE(t.contains("simulated_largest_batch"));
  a.simulated_largest = 64;
  a.simulated_safe = 62;
  a.reasons = {"rounding"};
  t = parsed(two_point_json(a, context()))["two_point"];
  EXPECT_EQ(t["simulated_largest_batch"], 64);
  EXPECT_EQ(t["simulated_safe_batch"], 62);
  EXPECT_EQ(t["why_they_differ"].dump(), R"(["rounding"])");
}

TEST(Answers, AScalingNamesWhatIsImpossible) {
  Scaling s;
  s.strong = true;
  s.global_batch = 64;
  s.pays_up_to = 2;
  s.points.resize(2);
  s.points[0].step_ms = {10, 8, 12, "rows"};
  s.points[0].efficiency = 1;
  s.points[1].gpus = 3;
  s.points[1].impossible = "64 does not divide";
  json::Value r = parsed(scaling_json(s, context()))["scaling"];
  EXPECT_EQ(r["mode"], "strong");
  EXPECT_EQ(r["samples_per_gpu_step"], 64);
  EXPECT_TRUE(r["stops_at"].is_null());
  EXPECT_EQ(r["points"][0]["step_ms"].dump(),
            R"({"value":10.0,"low":8.0,"high":12.0,"basis":"rows"})");
  EXPECT_EQ(r["points"][0]["possible"], true);
  EXPECT_EQ(r["points"][1]["possible"], false);
  EXPECT_EQ(r["points"][1]["impossible"], "64 does not divide");
  EXPECT_FALSE(r["points"][1].contains("step_ms"));
  s.stops_at = 4;
  r = parsed(scaling_json(s, context()))["scaling"];
  EXPECT_EQ(r["stops_at"], 4);
}

TEST(Answers, TheAccuracyLogHoldsErrorsAndBands) {
  AccuracyEntry e;
  e.model = "made";
  e.figure = "step";
  e.unit = "ms";
  e.forecast = 110;
  e.low = 90;
  e.high = 105;
  e.fact = 100;
  const json::Value r = parsed(accuracy_json({e}, "log.db", "9.8.7"));
  EXPECT_EQ(r["schema"], "stoker-accuracy-log-1");
  EXPECT_EQ(r["log"], "log.db");
  EXPECT_EQ(r["entries"].size(), 1u);
  EXPECT_NEAR(r["entries"][0]["error"].as_double(), 0.1, 1e-12);
  EXPECT_EQ(r["entries"][0]["within_band"], true);
  EXPECT_EQ(r["entries"][0]["unit"], "ms");
}

TEST(Answers, AValidationThatCouldNotJudgeHoldsNothing) {
  TrainingValidation v;
  TrainingSaid said;
  said.version = "9.8.7";
  json::Value r = parsed(training_validation_json(v, said));
  EXPECT_EQ(r["schema"], "stoker-validate-1");
  EXPECT_TRUE(r["held"].is_null());
  EXPECT_TRUE(r["learning"].is_null());
  EXPECT_EQ(r["summaries"].dump(), "{}");
  v.judged = 1;
  r = parsed(training_validation_json(v, said));
  EXPECT_EQ(r["held"], true);
  v.failures = {"step outside of its band"};
  r = parsed(training_validation_json(v, said));
  EXPECT_EQ(r["held"], false);
  EXPECT_EQ(r["failures"].dump(), R"(["step outside of its band"])");
}

TEST(Answers, AProfileWithoutTotalsHasNoPeaks) {
  ProfileReport report;
  report.file = "trace.json";
  report.tool_version = "9.8.7";
  ProfileMemory& memory = report.memory.emplace();
  memory.summary.allocations = 3;
  memory.summary.rise = Bytes(2048);
  json::Value r = parsed(profile_json(report));
  EXPECT_EQ(r["schema"], "stoker-explain-1");
  EXPECT_EQ(r["kind"], "profile");
  EXPECT_EQ(r["file"], "trace.json");
  EXPECT_EQ(r["allocations"], 3);
  EXPECT_EQ(r["rise_bytes"], 2048);
  EXPECT_TRUE(r["allocated_peak_bytes"].is_null());
  memory.summary.allocated_peak = Bytes(4096);
  r = parsed(profile_json(report));
  EXPECT_EQ(r["allocated_peak_bytes"], 4096);
}

}  // namespace
}  // namespace stoker
