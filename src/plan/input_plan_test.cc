#include "plan/input_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

constexpr std::int64_t kPicture = 3 * 224 * 224 * 4;

/// PyTorch's defaults before a step of `step_ms` at batch 32, on eight cores.
InputPlanRequest request_of(double sample_ms, double step_ms) {
  InputPlanRequest r;
  r.now.settings = {.batch = 32, .pin = false, .dataset_samples = 100'000};
  r.now.sample = sample_cost_given(sample_ms * kMillisecond, {Bytes(kPicture), 2}, {});
  r.now.host = {.cores = 8, .memory = 64 * kGiB};
  r.now.consumer = {.step = step_ms * kMillisecond, .consumption = Consumption::kBlocking};
  r.room.memory = 64 * kGiB;
  return r;
}

const Knob* find(const InputPlan& plan, std::string_view name) {
  const auto at = std::find_if(plan.knobs.begin(), plan.knobs.end(),
                               [&](const Knob& k) { return k.name == name; });
  return at == plan.knobs.end() ? nullptr : &*at;
}

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST(InputPlan, FeedsTheGpuAndSaysStop) {
  const auto plan = make_input_plan(request_of(4, 100));
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_TRUE(plan->stop);
  EXPECT_EQ(plan->best.workers, 2);  // 128 ms a batch, with room for an eighth more
  EXPECT_TRUE(plan->best.pin);
  EXPECT_NEAR(plan->samples_per_s.value, 320, 1);
  EXPECT_LE(plan->samples_per_s.low, plan->samples_per_s.value);
  EXPECT_GT(plan->ceiling.value, plan->samples_per_s.value);
  EXPECT_TRUE(plan->traps.empty());
  for (const Knob& knob : plan->knobs) EXPECT_EQ(knob.kind, KnobKind::kSetting) << knob.name;
}

TEST(InputPlan, SettingsAddUpToTheWholeGain) {
  const auto plan = make_input_plan(request_of(4, 100));
  ASSERT_TRUE(plan);
  double product = 1;
  for (const Knob& knob : plan->knobs) product *= 1 + knob.gain;
  const double before = value_of(LoaderValue::kEpoch, plan->now_forecast);
  const double after = value_of(LoaderValue::kEpoch, plan->forecast);
  EXPECT_NEAR(product, after / before,
              0.02 * product);  // changes below half a percent are left out
  const Knob* workers = find(*plan, "workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_GT(workers->gain, 1);  // 228 ms a step become 104
  EXPECT_LE(workers->gain_low, workers->gain);
  EXPECT_GE(workers->gain_high, workers->gain);
  EXPECT_GT(workers->epoch_seconds, 100);
}

TEST(InputPlan, ADataBoundJobGetsItsTrapsAndWhatWouldHelp) {
  InputPlanRequest r = request_of(20, 20);
  r.now.consumer.consumption = Consumption::kOverlapped;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->stop);
  EXPECT_GT(plan->gpu_waits, 0.5);
  const Knob* cores = find(*plan, "more_cores");
  ASSERT_NE(cores, nullptr);
  EXPECT_EQ(cores->kind, KnobKind::kHardware);
  EXPECT_GT(cores->gain, 1);
  EXPECT_TRUE(says(cores->change, "num_workers=")) << cores->change;
  ASSERT_GE(plan->traps.size(), 2U);
  EXPECT_TRUE(says(plan->traps[0], "prefetch_factor=4 changes the rate by +0.")) << plan->traps[0];
  EXPECT_TRUE(says(plan->traps[1], "num_workers=16")) << plan->traps[1];
}

TEST(InputPlan, KnobsBeyondTheSettingsAreInOrderOfValue) {
  InputPlanRequest r = request_of(4, 5);
  r.now.sample.read_bytes = 1e5;
  r.now.sample.dataset_samples = 1'000'000;
  r.now.sample.dataset_bytes = Bytes(100'000'000'000);
  r.now.sample.cold_seek_ms = 20;
  r.now.sample.cold_bandwidth = 2e8;
  r.now.sample.cold_speedup = 1;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  for (const char* name : {"tar_shards", "more_memory", "faster_disk"})
    EXPECT_NE(find(*plan, name), nullptr) << name;
  EXPECT_TRUE(says(find(*plan, "more_memory")->change, "instead of 64 GiB"));
  bool settings = true;
  double last = 1e9;
  for (const Knob& knob : plan->knobs) {
    if (knob.kind == KnobKind::kSetting) {
      EXPECT_TRUE(settings) << "settings come first";
      continue;
    }
    settings = false;
    EXPECT_LE(knob.gain, last) << knob.name;
    EXPECT_GE(knob.gain, kMustBring) << knob.name;
    last = knob.gain;
  }
}

TEST(InputPlan, PicturesGetTheirOwnKnobs) {
  InputPlanRequest r = request_of(4, 5);
  Probe probe;
  SampleRecord record;
  record.width = record.height = 2048;
  record.bytes = Bytes(1'000'000);
  record.stage[static_cast<std::size_t>(Stage::kDecode)] = 20 * kMillisecond;
  record.stage[static_cast<std::size_t>(Stage::kToTensor)] = 2 * kMillisecond;
  probe.samples.assign(4, record);
  probe.dataset.files = 1000;
  probe.dataset.mean_bytes = 1e6;
  probe.dataset.total_bytes = Bytes(1'000'000'000);
  probe.decode.per_megapixel = 3;
  probe.decode.per_megabyte = 8;
  const LoaderProfile profile;
  r.now.sample = sample_cost_from_probe(probe, profile, {Bytes(kPicture), 2});
  r.now.folder = &probe;
  r.profile = &profile;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  const Knob *files = find(*plan, "smaller_files"), *draft = find(*plan, "draft_decode");
  ASSERT_NE(files, nullptr);
  ASSERT_NE(draft, nullptr);
  EXPECT_GT(files->gain, draft->gain);  // the bytes of the large file are still decoded
  ASSERT_NE(find(*plan, "faster_decoder"), nullptr);
  EXPECT_NE(find(*plan, "gpu_augmentation"), nullptr);
  EXPECT_LT(find(*plan, "gpu_augmentation")->memory, Bytes(0));
}

TEST(InputPlan, TheUsersOwnLoaderIsComparedAndDiagnosed) {
  InputPlanRequest r = request_of(4, 100);
  r.now.settings.workers = 16;
  r.now.settings.prefetch = 8;
  r.now_known = true;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_LT(plan->best.workers, 16);
  EXPECT_TRUE(std::any_of(plan->findings_now.begin(), plan->findings_now.end(),
                          [](const Finding& f) { return f.name == "prefetch_without_gain"; }));
  const Knob* workers = find(*plan, "workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_LT(workers->memory, Bytes(0));
}

TEST(InputPlan, RespectsWhatIsFixed) {
  InputPlanRequest r = request_of(4, 100);
  r.freedom.workers = 5;
  r.pin = false;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->best.workers, 5);
  EXPECT_FALSE(plan->best.pin);
}

TEST(InputPlan, APriceMakesMoneyOfTime) {
  InputPlanRequest r = request_of(4, 100);
  r.price_per_gpu_hour = 3.6;  // a thousandth a second
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->epoch_cost.value, plan->epoch_s.value / 1000, 1e-9);
  const Knob* workers = find(*plan, "workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_NEAR(workers->epoch_money, workers->epoch_seconds / 1000, 1e-9);
}

TEST(InputPlan, NothingFitsIsANo) {
  InputPlanRequest r = request_of(4, 100);
  r.freedom.workers = 4;
  r.room.shared_memory = kMiB;
  const auto plan = make_input_plan(r);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kAnswerIsNo);
  EXPECT_TRUE(says(plan.error().message, "/dev/shm")) << plan.error().message;
}

TEST(InputPlan, TheFirstEpochReadsFromStorage) {
  InputPlanRequest r = request_of(4, 100);
  r.now.sample.read_bytes = 1e5;
  r.now.sample.dataset_samples = r.now.settings.dataset_samples;
  r.now.sample.dataset_bytes = Bytes(10'000'000'000);
  r.now.host.disk_bandwidth = 16e6;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->cached, 1) << "10 GB in 64 GiB";
  EXPECT_GT(plan->first_epoch_s.value, 624) << "10 GB at 16 MB/s";
  EXPECT_LT(plan->first_epoch_s.value, 900) << "with readers in each other's way";
  EXPECT_LT(plan->epoch_s.value, 330);
  r.now.host.disk_bandwidth = 0;
  EXPECT_EQ(make_input_plan(r)->first_epoch_s.value, 0) << "nothing is known of the storage";
}

TEST(InputPlan, NeverRecommendsWhatIsSlowerThanNow) {
  int slower = 0;
  for (const double cost_ms : {0.5, 4.0, 20.0}) {
    for (const double step_ms : {1.0, 15.0, 100.0}) {
      for (const int workers : {0, 1, 2, 3, 5, 8, 12}) {
        InputPlanRequest r = request_of(cost_ms, step_ms);
        r.now_known = workers > 0;
        r.now.settings.workers = workers;
        r.now.settings.dataset_samples = 640;
        r.freedom.batches = batches_around(r.now.settings.batch);
        const auto plan = make_input_plan(r);
        ASSERT_TRUE(plan);
        const LoaderForecast &best = plan->forecast, &now = plan->now_forecast;
        const double rounded = 1 - 1e-6;
        slower += best.samples_per_s < rounded * now.samples_per_s ? 1 : 0;
        slower += value_of(LoaderValue::kEpoch, best) < rounded * value_of(LoaderValue::kEpoch, now)
                      ? 1
                      : 0;
      }
    }
  }
  EXPECT_EQ(slower, 0);
}

TEST(InputPlan, OfSettingsThatAreNoSlowerThanNowTheSmallestIsTaken) {
  InputPlanRequest r = request_of(4, 100);
  r.now_known = true;
  r.now.settings.workers = 12;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_LT(plan->best.workers, 12);
  EXPECT_GE(plan->forecast.samples_per_s, plan->now_forecast.samples_per_s);
}

TEST(InputPlan, TheCeilingOfAStepOnTheHostIsTheLoadersOwn) {
  InputPlanRequest r = request_of(0.5, 30);
  r.now.consumer.consumption = Consumption::kBlocking;
  const auto on_gpu = make_input_plan(r);
  r.now.consumer.host_cpu = r.now.consumer.step;
  const auto on_cpu = make_input_plan(r);
  ASSERT_TRUE(on_gpu && on_cpu);
  EXPECT_GT(on_cpu->ceiling.value, 1.5 * on_cpu->samples_per_s.value);
  EXPECT_NEAR(on_cpu->ceiling.value, on_gpu->ceiling.value, 0.1 * on_gpu->ceiling.value);
}

TEST(InputPlan, SaysHowMuchOfAStepIsCopying) {
  InputPlanRequest r = request_of(4, 0.1);
  r.pin = false;
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_NEAR(milliseconds(plan->step - plan->copy), 0.1, 1e-9);
  EXPECT_NEAR(milliseconds(plan->copy), 32 * kPicture / 5e9 * 1e3, 1e-6);
}

TEST(InputPlan, CollatingIsNotCuredByCores) {
  InputPlanRequest r = request_of(0.003, 1);
  PipelineProbe probe;
  r.now.pipeline = &probe;
  BatchFacts slow{};
  slow.batch = 32;
  slow.samples = 32;
  slow.bytes = Bytes(32 * 1024);
  slow.collate_shared = slow.collate_private = 60.0 * kMillisecond;
  r.now.sample.batches = {slow};
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  EXPECT_NE(find(*plan, "batched_indexing"), nullptr);
  EXPECT_EQ(find(*plan, "more_cores"), nullptr);
}

TEST(InputPlan, TheThesissRuleStandsBeside) {
  InputPlanRequest r = request_of(4, 100);
  r.thesis = ThesisLimits{.dram = 64 * kGiB,
                          .sample = Bytes(kPicture),
                          .largest_batch = 160,
                          .gpus = 1,
                          .most_workers = 8};
  const auto plan = make_input_plan(r);
  ASSERT_TRUE(plan);
  ASSERT_TRUE(plan->thesis);
  EXPECT_EQ(plan->thesis->answer.batch, 160);
  EXPECT_EQ(plan->thesis->answer.workers, 2);  // 640 ms a batch, 500 ms a step
  EXPECT_GT(plan->thesis->forecast.samples_per_s, 0);
}

}  // namespace
}  // namespace stoker
