#include <gtest/gtest.h>

#include "json/text.h"
#include "lower/loop/untrained.h"
#include "report/model/report.h"
#include "report/test_forecast.h"
#include "report/text/test_text.h"

namespace stoker {
namespace {

using testing_support::give_epoch;
using testing_support::has;
using testing_support::made_context;
using testing_support::made_forecast;
using testing_support::millis;
using testing_support::on_one_line;
using Word = MemoryVerdictWord;

std::string said(const Forecast& f, const std::optional<BatchLimits>& limits = {},
                 const std::optional<MemoryAdvice>& advice = {}) {
  Prediction p;
  p.forecast = f;
  p.limits = limits;
  p.advice = advice;
  return on_one_line(forecast_text(p, made_context()));
}

BatchLimits limits(std::int64_t low, std::int64_t value) {
  BatchLimits l;
  l.low = low;
  l.value = l.high = value;
  return l;
}

TEST(ForecastText, TheAnswerBegins) {
  EXPECT_TRUE(
      said(made_forecast(), limits(40, 50))
          .starts_with("resnet50 | T4 FITS: 4.00 GiB [3.00-5.00] of 15.0 GiB per GPU; batch "
                       "up to 40 is safe, up to 50 may run 320 [300-340] img/s Limited by "
                       "GPU compute; next: preparing samples at 1,230 img/s "))
      << said(made_forecast(), limits(40, 50));
}

/// Why a verdict is what it is stands behind it.
TEST(ForecastText, AVerdictSaysWhatDecidedIt) {
  struct Case {
    Word verdict;
    bool flushes, tries;
    double high_gib;
    const char* says;
  };
  for (const Case& c : {
           Case{Word::kFits, false, false, 5, "FITS: 4.00 GiB [3.00-5.00] of 15.0 GiB per GPU 320"},
           Case{Word::kRisky, false, false, 16, "GPU; the band reaches beyond it 320"},
           Case{Word::kRisky, true, true, 16,
                "GPU; only by emptying PyTorch's cache again and again, which makes steps slower"},
           Case{Word::kRisky, false, true, 5,
                "GPU; what cuDNN's other algorithms may need reaches beyond it 320"},
           Case{Word::kRisky, false, true, 16, "GPU; the band reaches beyond it 320"},
           Case{Word::kFits, false, true, 16,
                "GPU; cudnn.benchmark takes what the band has above it only where memory is free"},
       }) {
    Forecast f = made_forecast();
    f.memory.verdict = c.verdict;
    f.memory.only_by_flushing = c.flushes;
    f.memory.device_peak.high = c.high_gib * kGiB.count();
    if (c.tries) f.job.cudnn = CudnnProfile::kBenchmark;
    EXPECT_TRUE(has(said(f), c.says)) << c.says << "\n" << said(f);
  }
}

TEST(ForecastText, HowFarTheBatchMayGrow) {
  const auto grows = [](const BatchLimits& l, std::optional<std::int64_t> validation = {}) {
    Forecast f = made_forecast();
    f.job.validation_batch = validation;
    const std::string text = said(f, l);
    const std::string before = "per GPU; ", behind = " 320 [";
    const auto from = text.find(before) + before.size();
    return text.substr(from, text.find(behind) - from);
  };
  EXPECT_EQ(grows(limits(40, 50)), "batch up to 40 is safe, up to 50 may run");
  EXPECT_EQ(grows(limits(50, 50)), "batch up to 50 is safe");
  EXPECT_EQ(grows(limits(0, 50)), "no batch is safe, up to 50 may run");
  EXPECT_EQ(grows(limits(0, 0)), "no batch is safe");
  BatchLimits l = limits(40, 50);
  l.low_in_training = 90;
  EXPECT_EQ(grows(l), "batch up to 40 is safe, up to 50 may run") << "nothing is validated";
  EXPECT_EQ(
      grows(l, 128),
      "batch up to 40 is safe beside the validation in batches of 128, up to 50 may run; in "
      "training alone up to 90 is: a smaller validation batch (--validation) gives that back");
  l.low = l.value = 0;
  EXPECT_TRUE(
      grows(l, 128).starts_with("no batch is safe beside the validation in batches of 128;"));
}

Remedy remedy(const char* settings, Word verdict, std::optional<double> time = {}) {
  Remedy r;
  r.what = "a change of the program";
  r.settings = settings;
  r.device_peak = kGiB * 2;
  r.verdict = verdict;
  r.time_change = time;
  return r;
}

Forecast too_large() {
  Forecast f = made_forecast();
  f.memory.fits = false;
  f.memory.verdict = Word::kDoesNotFit;
  f.memory.usable = kGiB * 2;
  f.memory.out_of_memory = "CUDA out of memory.";
  f.memory.failure_words = "in the forward";
  return f;
}

TEST(ForecastText, WhatDoesNotFitSaysWhatWouldAndHasNoSpeed) {
  MemoryAdvice advice;
  advice.remedies.list = {remedy("--checkpoint blocks", Word::kFits, 0.28),
                          remedy("", Word::kRisky), remedy("--c", Word::kRisky),
                          remedy("--d", Word::kRisky), remedy("--e", Word::kDoesNotFit)};
  advice.remedies.list[1].estimate = advice.remedies.list[1].only_by_flushing = true;
  advice.remedies.together = remedy("--all", Word::kFits, -0.05);
  advice.remedies.fsdp_gpus = 4;
  const std::string text = said(too_large(), limits(0, 7), advice);
  EXPECT_TRUE(has(text,
                  "DOES NOT FIT: batch 32 needs 4.00 GiB [3.00-5.00] of 2.0 GiB (T4) CUDA out of "
                  "memory. (in the forward) No batch is safe, up to 7 may run. "
                  "Fits with --all: 2.0 GiB, -5 % time "
                  "Fits with --checkpoint blocks: 2.0 GiB, +28 % time "
                  "Risky with a change of the program: 2.0 GiB with a full cache, runs here by "
                  "emptying it, an estimate Risky with --c: 2.0 GiB "
                  "Fits with --parallel fsdp --gpus 4 (the number doubled until it did)"))
      << text;
  EXPECT_FALSE(has(text, "--d") || has(text, "--e")) << "three cures are enough: " << text;
  EXPECT_FALSE(has(text, "img/s") || has(text, "Step") || has(text, "Input")) << text;
}

TEST(ForecastText, WhatIsAsRiskyAsItIsNowIsNoCure) {
  Forecast f = too_large();
  f.memory.verdict = Word::kRisky;
  MemoryAdvice advice;
  advice.remedies.list = {remedy("--still-risky", Word::kRisky)};
  const std::string text = said(f, {}, advice);
  EXPECT_TRUE(has(text, "RISKY: batch 32 needs")) << text;
  EXPECT_TRUE(has(text, "By the forecast it does not run; at the low end of its band it would."));
  EXPECT_FALSE(has(text, "--still-risky")) << text;
}

TEST(ForecastText, MoneyIsNeverRoundedToNothing) {
  struct Case {
    double money;
    const char* epoch;
    const char* run;
  };
  for (const Case& c : {Case{0.0012, ", $0.0012; run", ", $0.012 Limited"},
                        Case{0.034, ", $0.034; run", ", $0.34 Limited"},
                        Case{1.5, ", $1.50; run", ", $15.00 Limited"},
                        Case{1234.4, ", $1,234; run", ", $12,344 Limited"}}) {
    Forecast f = made_forecast();
    give_epoch(f, 90, c.money, 10);
    const std::string text = said(f);
    EXPECT_TRUE(has(text, c.epoch) && has(text, c.run)) << text;
  }
}

TEST(ForecastText, EpochsAndRunsWithTheirBands) {
  Forecast f = made_forecast();
  give_epoch(f, 100, 0, 36);
  f.run.seconds_validation = exact(7, "rows");
  f.run.start_up = {{"imports", exact(3, "")}, {"CUDA context", exact(1.5, "")}};
  Prediction p;
  p.forecast = f;
  ReportContext context = made_context();
  context.dataset_samples = 32'000;
  const std::string text = on_one_line(forecast_text(p, context));
  EXPECT_TRUE(has(text,
                  "; epoch of 32,000: 100 s [90 s-110 s]; run of 36: 1 h 00 min [54 min 00 s-"
                  "1 h 06 min] Limited"))
      << text;
  EXPECT_TRUE(has(text,
                  "Run first epoch 100 s, each further 100 s (validation 7.0 s) once: imports "
                  "3.0 s, CUDA context 1.5 s"))
      << text;
  EXPECT_FALSE(has(text, "$")) << "no price was given";
}

TEST(ForecastText, WhereAStepSpendsItsTime) {
  Forecast f = made_forecast();
  f.time.bound_device = {millis(60), millis(30), millis(10)};
  f.time.host = millis(25);
  f.load_ms = exact(4, "");
  f.passes = {{"validation", millis(12), {}}};
  std::string text = said(f);
  EXPECT_TRUE(has(text,
                  "Step 100 ms [90.0-110] forward 30.0 ms, backward 60.0 ms, optimizer 10.0 ms, "
                  "batch and loop 4.00 ms bound by kernels, 100 ms (arithmetic 60 %, memory 30 %, "
                  "other 10 %); next: launching them (Python and CPU), 25.0 ms"))
      << text;
  EXPECT_TRUE(has(text, "validation: 12.0 ms a batch")) << text;
  EXPECT_FALSE(has(text, "all-reduce") || has(text, "the GPU waits")) << text;
  f.time.exposed_host = millis(11);  // more than a tenth of the step
  f.job.gpus = 4;
  f.time.communication = millis(9);
  f.time.exposed_communication = millis(2);
  text = said(f);
  EXPECT_TRUE(has(text, "; the GPU waits 11.0 ms for it")) << text;
  EXPECT_TRUE(
      has(text, "all-reduce 9.00 ms; the step waits 2.00 ms for it and for the slowest rank"))
      << text;
  f.job.parallel = Parallel::kFsdpZero3;
  EXPECT_TRUE(has(said(f), "communication 9.00 ms;"));
}

TEST(ForecastText, ElectricityOfOneAndOfAll) {
  Forecast f = made_forecast();
  f.energy.emplace();
  f.energy->watts = {70, 50, 90, "estimate from TDP"};
  std::string text = said(f);
  EXPECT_TRUE(has(text, "draws about 70.0 W [50.0-90.0]: estimate from TDP")) << text;
  f.job.gpus = 2;
  f.energy->epoch_kwh = {0.0042, 0.003, 0.006, ""};
  f.energy->run_kwh = {0.5, 0.4, 0.6, ""};
  text = said(f);
  EXPECT_TRUE(has(text,
                  "all GPUs draw about 70.0 W [50.0-90.0], 4.20 Wh [3.00-6.00] an epoch, 0.5 kWh "
                  "[0.4-0.6] the run: estimate from TDP"))
      << text;
}

TEST(ForecastText, TheInputOrThatNothingIsKnownOfIt) {
  Forecast f = made_forecast();
  EXPECT_TRUE(has(said(f), "Input not known (--data DIR); taken as fast enough"));
  f.input.known = true;
  f.input.samples_per_s = {1000, 800, 1200, ""};
  f.input.loader.worker_utilization = 0.5;
  f.input.loader.wait = millis(2);
  f.input.loader.first_batch = millis(300);
  f.input.loader.shared_memory = kMiB * 64;
  f.input.loader.pinned_memory = kMiB * 32;
  f.input.loader.worker_memory = kMiB * 16;
  f.input.loader.file_descriptors = 9;
  f.loader.workers = 1;
  f.loader.prefetch = 2;
  EXPECT_TRUE(has(said(f),
                  "Input 1 worker per GPU, prefetch 2: up to 1,000 [800-1,200] samples/s; workers "
                  "busy 50 %, GPU waits 2.0 ms a step first batch after 300 ms; /dev/shm 64.0 MiB, "
                  "pinned 32.0 MiB, workers 16.0 MiB, 9 file descriptors"))
      << said(f);
}

TEST(ForecastText, UntrainedParametersAreNoPlainFit) {
  Forecast f = made_forecast();
  f.diagnostics.add(kNotTrained, Severity::kWarning, "1 of 2 parameters get no gradient", 1);
  const std::string text = said(f);
  EXPECT_LT(text.find("NOT TRAINED: 1 of 2 parameters get no gradient"), text.find("FITS"));
  EXPECT_TRUE(has(text, "FITS, those parameters untrained: 4.00 GiB")) << text;
}

TEST(ForecastText, EveryFigureIsThatOfTheJson) {
  Prediction p;
  p.forecast = made_forecast();
  give_epoch(p.forecast, 90, 2.5, 10);
  p.limits = limits(40, 50);
  const auto json = json::parse(forecast_json(p, made_context(), false)).value();
  const auto is = [](const json::Value& v, double value, double low, double high) {
    EXPECT_DOUBLE_EQ(v["value"].as_double(), value) << v.dump();
    EXPECT_DOUBLE_EQ(v["low"].as_double(), low) << v.dump();
    EXPECT_DOUBLE_EQ(v["high"].as_double(), high) << v.dump();
  };
  const auto gib = static_cast<double>(kGiB.count());
  is(json["memory"]["device_peak_bytes"], 4 * gib, 3 * gib, 5 * gib);
  is(json["throughput_samples_per_s"], 320, 300, 340);
  is(json["time"]["step_ms"], 100, 90, 110);
  is(json["memory"]["max_batch"], 50, 40, 50);
  is(json["epoch_s"], 90, 81, 99);
  is(json["run"]["total_s"], 900, 810, 990);
  EXPECT_EQ(json["epoch_cost"]["value"].as_double(), 2.5);
  EXPECT_EQ(json["run_cost"]["value"].as_double(), 25);
  EXPECT_EQ(json["memory"]["verdict"], "FITS");
  EXPECT_EQ(json["limiter"]["value"], "gpu_compute");
  EXPECT_EQ(json["next_limiter"]["samples_per_s"].as_double(), 1234);
  EXPECT_EQ(json["input"]["known"], false);
  EXPECT_FALSE(json["memory"].contains("remedies")) << "what fits needs none";
}

}  // namespace
}  // namespace stoker
