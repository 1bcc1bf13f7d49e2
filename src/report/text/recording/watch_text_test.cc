#include <gtest/gtest.h>

#include "diagnosis/test_job.h"
#include "json/text.h"
#include "report/model/watch_report.h"
#include "report/text/test_text.h"

namespace stoker {
namespace {

using testing_support::has;
using testing_support::on_one_line;

/// Computes 30 % of the time and waits for two workers the rest: 10 batches a second.
JobTimeline played(double seconds = 90) {
  test_job::MadeJob job;
  job.workers = {{0.8, 0, WaitKind::kPoll}, {0.8, 0, WaitKind::kPoll}};
  job.seconds = seconds;
  return job.play();
}

JobFinding finding() {
  return {.name = "too_few_workers",
          .lost = 0.42,
          .evidence = "Both workers are on a core 80 % of the time.",
          .cure = "Set num_workers=4.",
          .setting = "num_workers=4",
          .gain = Figure{0.55, 0.3, 0.7, "seen"},
          .price = "2 cores more",
          .confidence = Confidence::kHigh};
}

TEST(WatchLine, TheLastSecondsAsOneStretch) {
  const JobTimeline t = played();
  const WatchLine line = last_of(t, 10);
  EXPECT_NEAR(line.stretch.seconds, 10, 1);
  EXPECT_NEAR(line.stretch.from + line.stretch.seconds, 90, 1.01);
  EXPECT_NEAR(line.stretch.batches / line.stretch.seconds, 10, 0.5);
  EXPECT_NEAR(line.stretch.job.all(), line.stretch.seconds, 0.2);
  EXPECT_NEAR(line.stretch.job[JobState::kComputes] / line.stretch.job.all(), 0.3, 0.02);
  EXPECT_NEAR(line.stretch.job[JobState::kWaitsForData] / line.stretch.job.all(), 0.7, 0.02);
  EXPECT_NEAR(line.stretch.workers.cpu / line.stretch.workers.alive, 0.8, 0.02);
  EXPECT_EQ(line.workers, 2);
  EXPECT_EQ(line.processes, 3);
  EXPECT_EQ(line.cores, 8);
  EXPECT_EQ(line.stretch.gpu_busy, -1) << "there is none";
  EXPECT_NEAR(last_of(t, 1e9).stretch.seconds, 90, 1) << "no more than was watched";
  const WatchLine nothing = last_of(JobTimeline(), 10);
  EXPECT_EQ(nothing.stretch.seconds, 0);
  EXPECT_EQ(nothing.workers, 0);
}

TEST(WatchLine, AMeanOfTheGpuLeavesOutWhatIsNotKnown) {
  test_job::MadeJob job;
  job.seconds = 60;
  job.gpu.busy_percent = 40;
  const WatchLine line = last_of(job.play(), 20);
  EXPECT_NEAR(line.stretch.gpu_busy, 0.4, 1e-9);
  EXPECT_TRUE(has(watch_line_text(line), "| GPU 40 %")) << watch_line_text(line);
}

TEST(WatchLine, TextAndJsonSayTheSame) {
  WatchLine line;
  line.stretch.from = 60;
  line.stretch.seconds = 10;
  line.stretch.job[JobState::kComputes] = 2.5;
  line.stretch.job[JobState::kWaitsForData] = 7.46;
  line.stretch.job[JobState::kSaves] = 0.04;  // below half a per cent
  line.stretch.workers.alive = 20;
  line.stretch.workers.idle = 5;
  line.stretch.workers.cpu = 14;
  line.stretch.batches = 120;
  line.stretch.gpu_busy = -1;
  line.stretch.ready = -1;
  line.stretch.cores_used = 17;
  line.stretch.cores_foreign = 5;
  line.stretch.memory = 2e9;
  line.workers = 2;
  line.cores = 4;
  line.processes = 3;
  const std::string text = watch_line_text(line);
  EXPECT_TRUE(has(text, "waits for data 75 %, computes 25 % | 2 workers 75 % busy")) << text;
  EXPECT_TRUE(has(text, "| 12.0 batches/s") || has(text, "| 12 batches/s")) << text;
  EXPECT_TRUE(has(text, "| cores 1.7 of 4, others 0.5")) << text;
  EXPECT_FALSE(has(text, "GPU") || has(text, "saves")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "a program reads it line by line";
  const auto json = json::parse(watch_line_json(line, "0.1.0"));
  ASSERT_TRUE(json);
  EXPECT_DOUBLE_EQ((*json)["states"]["waits_for_data"].as_double(), 0.746);
  EXPECT_DOUBLE_EQ((*json)["states"]["saves"].as_double(), 0.004);
  EXPECT_DOUBLE_EQ((*json)["worker_states"]["idle"].as_double(), 0.25);
  EXPECT_DOUBLE_EQ((*json)["worker_states"]["running"].as_double(), 0.7);
  EXPECT_DOUBLE_EQ((*json)["cores_used"].as_double(), 1.7);
  EXPECT_DOUBLE_EQ((*json)["cores_foreign"].as_double(), 0.5);
  EXPECT_EQ((*json)["memory_bytes"].as_integer(), 2'000'000'000);
  EXPECT_TRUE((*json)["gpu_busy"].is_null() && (*json)["ready_batches"].is_null());
}

TEST(WatchText, FindingsWithEvidenceCureAndPrice) {
  const JobTimeline t = played();
  WatchReport report;
  report.timeline = &t;
  report.source = "process 7";
  report.diagnosis.seconds = 90;
  report.diagnosis.verdict = "Too few workers.";
  report.diagnosis.batches_per_s = 10;
  report.diagnosis.job = t.ranks().front().job;
  for (int i = 0; i < 5; ++i) report.diagnosis.findings.push_back(finding());
  report.diagnosis.notes = {"one GPU is hidden"};
  report.hidden = {"io of process 9"};
  const std::string text = on_one_line(watch_text(report));
  EXPECT_TRUE(has(text, "process 7, watched for 90 s")) << text;
  EXPECT_TRUE(has(text, "1. too_few_workers (42 % of the time, confidence high)")) << text;
  EXPECT_TRUE(has(text, "Cure: Set num_workers=4. Brings +55 % [30 to 70]. Costs: 2 cores more."))
      << text;
  EXPECT_TRUE(has(text, "3. too_few_workers") && !has(text, "4. too_few_workers")) << text;
  EXPECT_TRUE(has(text, "2 more with --all-findings")) << text;
  EXPECT_TRUE(has(text, "Note: one GPU is hidden") && has(text, "Not seen: io of process 9"));
  EXPECT_TRUE(has(text, "cores: 1.9 of 8 by the job, 0 by others")) << text;
  report.most_findings = 9;
  EXPECT_TRUE(has(watch_text(report), "5. too_few_workers"));
}

TEST(WatchText, AForecastStandsBesideWhatWasSeen) {
  const JobTimeline t = played();
  WatchReport report;
  report.timeline = &t;
  AgainstForecast against;
  against.what = "resnet50 --batch 64";
  against.machine = "A100-SXM4-40GB";
  against.batch = 64;
  against.basis = "rows of its own";
  against.step_ms = {100, 90, 110, ""};
  against.samples_per_s = {640, 600, 700, ""};
  against.seen_step_ms = 120;
  against.seen_samples_per_s = 500;
  report.against = against;
  std::string text = on_one_line(watch_text(report));
  EXPECT_TRUE(has(text, "forecast of resnet50 --batch 64 on A100-SXM4-40GB, batch 64")) << text;
  EXPECT_TRUE(has(text, "seen 120: above the band")) << text;
  EXPECT_TRUE(has(text, "seen 500: below the band")) << text;
  report.against->seen_step_ms = 90;
  report.against->seen_samples_per_s = 700;
  text = on_one_line(watch_text(report));
  EXPECT_TRUE(has(text, "seen 90.0: within the band") || has(text, "seen 90: within the band"));
  EXPECT_FALSE(has(text, "below the band") || has(text, "above the band")) << text;
  const auto json = json::parse(watch_json(report));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["against"]["batch"].as_integer(), 64);
  EXPECT_DOUBLE_EQ((*json)["against"]["seen_step_ms"].as_double(), 90);
}

TEST(WatchText, WhatTheLoopToldItself) {
  const JobTimeline t = played();
  WatchReport report;
  report.timeline = &t;
  report.diagnosis.waits_seen = 0.61;
  report.diagnosis.told =
      ToldLoop{.steps = 900, .step_s = 0.1, .waits = 0.65, .validation = 0.1, .samples_per_s = 640};
  std::string text = on_one_line(watch_text(report));
  EXPECT_TRUE(has(text,
                  "as the loop tells itself: 900 steps of 100 ms, 65 % of them in the loader's "
                  "next() (seen from outside: 61 %); validation 10 % of the time; 640 samples/s"))
      << text;
  report.diagnosis.told = ToldLoop{.steps = 5, .step_s = 2, .waits = {}, .validation = {}};
  text = on_one_line(watch_text(report));
  EXPECT_TRUE(has(text, "as the loop tells itself: 5 steps of 2.0 s")) << text;
  EXPECT_FALSE(has(text, "next()") || has(text, "samples/s")) << text;
}

}  // namespace
}  // namespace stoker
