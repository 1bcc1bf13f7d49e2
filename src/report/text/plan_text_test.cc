#include <gtest/gtest.h>

#include "json/text.h"
#include "report/model/input_plan_report.h"
#include "report/model/report.h"
#include "report/test_forecast.h"
#include "report/text/plan_words.h"
#include "report/text/test_text.h"

namespace stoker {
namespace {

using testing_support::give_epoch;
using testing_support::has;
using testing_support::made_context;
using testing_support::made_forecast;
using testing_support::millis;
using testing_support::on_one_line;

Plan plan_of(Forecast f) {
  Plan p;
  p.best.forecast = std::move(f);
  p.batch_reason.largest_safe = p.batch_reason.largest_running = 100;
  p.by_gpus = {p.best};
  return p;
}

std::string said(const Plan& plan, const ReportContext& context = made_context()) {
  return on_one_line(plan_text(plan, context));
}

TEST(PlanText, TheSettingsComeFirst) {
  Forecast f = made_forecast();
  EXPECT_TRUE(said(plan_of(f))
                  .starts_with("resnet50 | T4 BEST: 1 GPU, batch 32 per GPU, fp32, pinned 320 "
                               "[300-340] img/s step 100 ms "
                               "[90.0-110]; input not checked: --data DIR, or imagenet, coco, "
                               "cifar10 by name Limited by GPU "
                               "compute; next: preparing samples at 1,230 img/s"))
      << said(plan_of(f));
  f.job.gpus = 4;
  f.job.accumulate = 2;
  f.job.precision = Precision::kAmpBf16;
  f.input.known = true;
  f.loader.workers = 6;
  f.loader.prefetch = 4;
  f.loader.pin = false;
  f.input.loader.wait = millis(1);
  f.input.loader.first_batch = millis(300);
  const std::string text = said(plan_of(f));
  EXPECT_TRUE(has(text,
                  "BEST: 4 GPUs, batch 32 per GPU (256 global), amp-bf16, 6 workers per GPU "
                  "(prefetch 4), pageable"))
      << text;
  EXPECT_TRUE(has(text, "on the GPU, waits 1.0 ms for input; first batch after 300 ms")) << text;
  f.loader.workers = 0;
  EXPECT_TRUE(has(said(plan_of(f)), "amp-bf16, 0 workers per GPU, pageable"));
}

TEST(PlanText, AnEpochWithItsMoneyAndElectricity) {
  Plan p = plan_of(made_forecast());
  give_epoch(p.best.forecast, 600, 0.0034, 90);
  p.best.forecast.energy.emplace();
  p.best.forecast.energy->epoch_kwh = {0.0065, 0.0036, 0.011, ""};
  ReportContext context = made_context();
  context.dataset_samples = 192'000;
  EXPECT_TRUE(
      has(said(p, context),
          "; 192,000 images: 10 min 00 s an epoch, $0.0034, about 6.50 Wh [3.60-11.0] run of "
          "90: 15 h 00 min, $0.31 step"))
      << said(p, context);
  context.sample_word = "seq";
  EXPECT_TRUE(has(said(p, context), "; 192,000 seqs: 10 min 00 s an epoch"));
  EXPECT_TRUE(has(said(p, context), "--data DIR, or openwebtext-tokens by name Limited"));
  context.sample_word = "recording";
  EXPECT_TRUE(has(said(p, context), "--data DIR, or librispeech by name Limited"));
  context.sample_word = "sample";  // of a script: nothing tells what it is
  EXPECT_TRUE(has(said(p, context), "input not checked: --data DIR Limited")) << said(p, context);
}

TEST(PlanText, OneRowForEachNumberOfGpus) {
  Plan p = plan_of(made_forecast());
  PlanRow four = p.best;
  four.forecast.job.gpus = 4;
  four.forecast.input.known = true;
  four.forecast.loader.workers = 3;
  four.forecast.input.loader.shared_memory = four.forecast.input.loader.worker_memory = kGiB;
  four.forecast.limiter.kind = Limiter::kInput;
  give_epoch(four.forecast, 90, 0);
  p.by_gpus.push_back(four);
  p.uneven_counts = {1, 3};
  p.best.forecast.job.nodes = 2;
  const std::string text = said(p);
  EXPECT_TRUE(has(text,
                  "GPUs batch workers img/s [90 %] epoch GPU busy memory/GPU host memory limit "
                  "1 32 - 320 [300-340] - 90 % 4.0/15.0 G - GPU "
                  "4 32 3/GPU 320 [300-340] 90 s 90 % 4.0/15.0 G 2.0 GiB input "
                  "1 and 3 GPUs are left out: 2 nodes cannot share them evenly"))
      << text;
}

/// Why the batch is what it is.
TEST(WhyBatch, NamesWhatDecided) {
  struct Case {
    BatchReason why;
    Limiter limiter;
    const char* says;
  };
  for (const Case& c : {
           Case{{.largest_safe = 32, .largest_running = 40},
                Limiter::kGpuCompute,
                "Why 32: it is the largest safe batch (up to 40 may run)."},
           Case{{.largest_safe = 32, .largest_running = 32},
                Limiter::kGpuCompute,
                "Why 32: it is the largest safe batch."},
           Case{{.largest_safe = 100, .largest_running = 120, .best_batch = 32},
                Limiter::kGpuCompute,
                "Why 32: no other batch is faster; the largest safe batch is 100 (up to 120 may "
                "run)."},
           Case{{.largest_safe = 100,
           .largest_running = 100,
           .share_of_best = 0.985,
           .best_batch = 96},
                Limiter::kGpuCompute,
                "Why 32: 98 % of the speed of 96; the largest safe batch is 100."},
           Case{{.largest_safe = 100, .largest_running = 100, .best_batch = 96},
                Limiter::kInput,
                "Why 32: the input is the limit, a larger batch brings nothing; the largest safe "
                "batch is 100."},
           Case{{.largest_safe = 100, .largest_running = 100, .best_batch = 96, .ceiling = true},
                Limiter::kInput,
                "Why 32: the ceiling on the global batch allows no more; the largest safe batch is "
                "100."},
           Case{{.largest_safe = 100, .largest_running = 100, .best_batch = 32, .ceiling = true},
                Limiter::kGpuCompute,
                "Why 32: no other batch within the ceiling on the global batch is faster; the "
                "largest safe batch is 100."},
           Case{{.largest_safe = 100,
           .largest_running = 100,
           .best_batch = 96,
           .too_large_for_workers = 96},
                Limiter::kInput,
                "Why 32: batches of 96 leave no room in the host's memory for as many workers; the "
                "largest safe batch is 100."},
           Case{{.largest_safe = 0, .largest_running = 48},
                Limiter::kGpuCompute,
                "Why 32: no batch is safe, up to 48 may run."},
           Case{{.largest_safe = 100, .largest_running = 100, .fixed = true},
                Limiter::kGpuCompute,
                "Batch 32 was given; the largest safe batch is 100."},
       }) {
    Plan p = plan_of(made_forecast());
    p.batch_reason = c.why;
    p.best.forecast.limiter.kind = c.limiter;
    EXPECT_EQ(why_batch(p, made_context()), std::string(c.says) + "\n");
  }
}

TEST(WhyBatch, AValidationOrASmallDataSetThatLeavesNoMore) {
  Plan p = plan_of(made_forecast());
  p.batch_reason.largest_safe = p.batch_reason.largest_running = 32;
  p.batch_reason.low_in_training = 90;
  EXPECT_FALSE(has(why_batch(p, made_context()), "validation")) << "nothing is validated";
  p.best.forecast.job.validation_batch = 256;
  EXPECT_TRUE(
      has(why_batch(p, made_context()),
          "The validation in batches of 256 decides what is safe: in training alone up to 90 "
          "would be."));
  for (const auto& [samples, says] : std::vector<std::pair<std::int64_t, std::string>>{
           {40, "only 40 samples: this batch leaves one step an epoch"},
           {20, "only 20 samples: this batch leaves one step an epoch"},
           {330, "only 330 samples: this batch leaves 10 steps an epoch"}}) {
    p.batch_reason.data_samples = samples;
    EXPECT_TRUE(has(why_batch(p, made_context()), says)) << why_batch(p, made_context());
  }
  p.batch_reason.data_samples = 352;  // eleven steps: other things decided
  EXPECT_FALSE(has(why_batch(p, made_context()), "The data set has only"));
}

TEST(WhyBatch, OtherPrecisionsAndWhatPinningIsWorth) {
  Plan p = plan_of(made_forecast());
  PlanRow amp = p.best, tf32 = p.best;
  amp.forecast.job.precision = Precision::kAmpFp16;
  amp.forecast.samples_per_s.value = 900;
  amp.batch_limits.low = 180;
  tf32.forecast.job.precision = Precision::kTf32;
  p.by_precision = {amp, tf32};
  p.best.forecast.input.known = true;
  p.pin_gain = 0.15;
  std::string text = on_one_line(why_batch(p, made_context()));
  EXPECT_TRUE(has(text, "amp-fp16 instead: 900 img/s with 1 GPU, batch up to 180.")) << text;
  EXPECT_FALSE(has(text, "tf32")) << "as fast as fp32, whose convolutions run in TF32 anyway";
  EXPECT_TRUE(has(text, "Pinned memory with non_blocking copies: +15 % against pageable."));
  p.by_precision[1].forecast.samples_per_s.value = 400;
  p.best.forecast.loader.pin = false;
  p.pin_gain = -0.04;
  text = on_one_line(why_batch(p, made_context()));
  EXPECT_TRUE(has(text, "tf32 instead: 400 img/s")) << text;
  EXPECT_TRUE(has(text,
                  "Pageable memory: the pin-memory thread would take a core from the workers "
                  "(-4 %)."));
  p.pin_gain = 0.004;
  EXPECT_FALSE(has(why_batch(p, made_context()), "Pageable memory"));
}

TEST(PlanText, AdviceStopsAtFour) {
  Plan p = plan_of(made_forecast());
  for (const char* what : {"one", "two", "three", "four", "five"}) p.next.push_back({what, 0.1, 0});
  EXPECT_TRUE(has(said(p), "Next 1. one 2. two 3. three 4. four ")) << said(p);
  EXPECT_FALSE(has(said(p), "five"));
}

InputPlan input() {
  InputPlan p;
  p.best = {.batch = 32, .workers = 6, .prefetch = 4, .pin = true, .persistent = true};
  p.now = {.batch = 32, .workers = 0, .prefetch = 2, .pin = false, .persistent = false};
  p.samples_per_s = {320, 300, 340, "rows"};
  p.ceiling = {900, 800, 999, ""};
  p.step = millis(100);
  p.gpus = 1;
  p.ranks = 1;
  p.now_forecast.samples_per_s = 80;
  p.now_forecast.wait = millis(300);
  p.now_forecast.interval = millis(400);
  return p;
}

TEST(InputPlanText, TheSettingsAsPythonTakesThem) {
  std::string text = on_one_line(input_plan_text(input(), made_context()));
  EXPECT_TRUE(has(text,
                  "BEST: num_workers=6, prefetch_factor=4, pin_memory=True, "
                  "persistent_workers=True, batch_size=32 320 [300-340] img/s;"))
      << text;
  EXPECT_TRUE(has(text,
                  "PyTorch's defaults: num_workers=0, pin_memory=False, batch_size=32: 80.0 "
                  "img/s, the GPU waits 75 % of the time."))
      << text;
  InputPlan p = input();
  p.best.in_order = false;
  p.now_known = true;
  p.stop = true;
  p.shortage = "8.0 GiB of /dev/shm";
  text = on_one_line(input_plan_text(p, made_context()));
  EXPECT_TRUE(has(text, "persistent_workers=True, in_order=False, batch_size=32")) << text;
  EXPECT_TRUE(has(text, "without it the loader would deliver 900 [800-999] img/s. STOP here"));
  EXPECT_TRUE(has(text, "The host forbids more: 8.0 GiB of /dev/shm. Now: num_workers=0")) << text;
}

TEST(InputPlanText, KnobsWithGainMoneyMemoryAndRisk) {
  InputPlan p = input();
  Knob workers;
  workers.change = "num_workers=6 instead of 0";
  workers.gain = 3;
  workers.gain_low = 2.5;
  workers.gain_high = 3.4;
  workers.epoch_seconds = 600;
  workers.epoch_money = 0.0056;
  workers.memory = kGiB * 2;
  workers.risk = "memory";
  Knob files;
  files.kind = KnobKind::kData;
  files.change = "pictures of 256 px";
  files.gain = files.gain_low = files.gain_high = -0.042;
  files.epoch_seconds = -30;
  files.memory = -kMiB;
  files.risk = "quality";
  p.knobs = {workers, files};
  p.traps = {"more than 8 workers"};
  const std::string text = on_one_line(input_plan_text(p, made_context()));
  EXPECT_TRUE(has(text,
                  "Settings, from PyTorch's defaults, each on top of those before it 1. "
                  "num_workers=6 instead of 0: +300 % [+250 % to +340 %], 10 min 00 s saved an "
                  "epoch ($0.0056), +2.0 GiB of host memory Risk: memory"))
      << text;
  EXPECT_TRUE(has(text,
                  "Beyond the settings, each alone on top of them 2. pictures of 256 px: -4.2 "
                  "%, 30 s lost an epoch, -1.0 MiB of host memory Risk: quality"))
      << text;
  EXPECT_TRUE(has(text, "Not worth trying - more than 8 workers"));
}

TEST(InputRemarks, WarningsAloneStandBelowAPlan) {
  InputPlan p = input();
  EXPECT_EQ(input_remarks_text(p, made_context()), "");
  Finding note;
  note.name = "small_note";
  Finding warning;
  warning.name = "shm_too_small";
  warning.severity = Severity::kWarning;
  warning.evidence = "batches take 9 GiB";
  warning.cure = "give --shm-size 16g";
  p.findings = {note, warning};
  const std::string text = on_one_line(input_remarks_text(p, made_context()));
  EXPECT_EQ(text,
            "Input, with these settings - WARNING shm_too_small: batches take 9 GiB. Cure: give "
            "--shm-size 16g. ");
}

}  // namespace
}  // namespace stoker
