#include "forecast/memory/remedies.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "forecast/settings.h"
#include "forecast/test_scenario.h"

namespace stoker {
namespace {

class RemediesTest : public testing_support::ScenarioTest {
 protected:
  Remedies remedies_now() {
    auto remedies = find_remedies(scenario_, forecast_now(), {}, *knowledge_);
    EXPECT_TRUE(remedies) << remedies.error().text();
    return *remedies;
  }
  static const Remedy* by(const Remedies& remedies, const std::string& settings) {
    const auto it = std::find_if(remedies.list.begin(), remedies.list.end(),
                                 [&](const Remedy& r) { return r.settings == settings; });
    return it == remedies.list.end() ? nullptr : &*it;
  }
};

TEST_F(RemediesTest, HalfTheBatchSavesMemoryOfTheSameSamples) {
  set_batch(scenario_, 1 << 24);  // 16 B of input and 12 of output a sample
  const Forecast now = forecast_now();
  const Remedies remedies = remedies_now();
  const Remedy* half = by(remedies, "{batch} 8388608 {accumulate} 2");
  ASSERT_NE(half, nullptr);
  Scenario by_hand = scenario_;
  by_hand.job.batch /= 2;
  by_hand.job.accumulate = 2;
  const Forecast then = forecast(by_hand, *knowledge_).value();
  EXPECT_EQ(half->device_peak.count(), static_cast<std::int64_t>(then.memory.device_peak.value));
  EXPECT_EQ(half->saving.count(),
            static_cast<std::int64_t>(now.memory.device_peak.value) - half->device_peak.count());
  ASSERT_TRUE(half->time_change);
  EXPECT_NEAR(*half->time_change, then.step_ms.value / now.step_ms.value - 1, 1e-9);
  EXPECT_TRUE(half->fits);
}

TEST_F(RemediesTest, LargestSavingFirstAndSmallOnesCounted) {
  set_batch(scenario_, 1 << 24);
  const Remedies remedies = remedies_now();
  const double peak = forecast_now().memory.device_peak.value;
  ASSERT_FALSE(remedies.list.empty());
  EXPECT_GT(remedies.too_small, 0);  // a weight of 48 bytes: no optimizer saves anything
  for (std::size_t i = 0; i < remedies.list.size(); ++i) {
    EXPECT_GE(static_cast<double>(remedies.list[i].saving.count()), kWorthSaving * peak);
    if (i > 0) {
      EXPECT_LE(remedies.list[i].saving, remedies.list[i - 1].saving);
    }
  }
}

TEST_F(RemediesTest, WhatMakesItFitComesFirst) {
  set_batch(scenario_, 1 << 24);
  const Remedy* half = nullptr;
  const Remedies fitting = remedies_now();
  half = by(fitting, "{batch} 8388608 {accumulate} 2");
  ASSERT_NE(half, nullptr);
  // A card that is too small, and beyond the band of the half.
  const double peak = forecast_now().memory.device_peak.value;
  scenario_.machine.device->usable_memory = Bytes(std::llround(0.9 * peak));
  ASSERT_FALSE(forecast_now().memory.fits);
  const Remedies remedies = remedies_now();
  ASSERT_FALSE(remedies.list.empty());
  EXPECT_EQ(remedies.list.front().verdict, MemoryVerdictWord::kFits);
  EXPECT_FALSE(remedies.together);  // one alone is enough
  double before = -1;
  for (const Remedy& r : remedies.list) {
    if (r.verdict != MemoryVerdictWord::kFits || !r.time_change) continue;
    EXPECT_GE(*r.time_change, before) << "least time first: " << r.what;
    before = *r.time_change;
  }
  MemoryVerdictWord last = MemoryVerdictWord::kFits;
  for (const Remedy& r : remedies.list) {
    EXPECT_GE(r.verdict, last) << r.what;
    last = r.verdict;
  }
}

TEST_F(RemediesTest, WhatFitsByAHairIsCalledRiskyAsAForecastWithItIs) {
  set_batch(scenario_, 1 << 24);
  const Remedies before = remedies_now();
  const Remedy* half = by(before, "{batch} 8388608 {accumulate} 2");
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->verdict, MemoryVerdictWord::kFits);
  scenario_.machine.device->usable_memory = half->device_peak + 2 * kMiB;
  const Remedies remedies = remedies_now();
  const Remedy* then = by(remedies, "{batch} 8388608 {accumulate} 2");
  ASSERT_NE(then, nullptr);
  EXPECT_TRUE(then->fits);
  EXPECT_EQ(then->verdict, MemoryVerdictWord::kRisky);
  Scenario by_hand = scenario_;
  set_batch(by_hand, scenario_.job.batch / 2);
  by_hand.job.accumulate = 2;
  EXPECT_EQ(forecast(by_hand, *knowledge_).value().memory.verdict, then->verdict);
}

TEST_F(RemediesTest, SeveralTogetherAreNoMoreThanItTakesAndMayHoldTheLibrarys) {
  const auto zoo = std::filesystem::path(STOKER_SOURCE_DIR) / "data/zoo";
  auto gpt2 = read_step_file(zoo / "gpt2.fp32.step.gz");
  ASSERT_TRUE(gpt2) << gpt2.error().text();
  step_ = std::move(*gpt2);
  scenario_.job.optimizer.kind = OptimizerKind::kAdamW;
  set_batch(scenario_, 1);
  const double peak = forecast_now().memory.device_peak.value;
  bool several = false, eight_bit = false;
  for (double share = 0.98; share > 0.5; share -= 0.02) {
    SCOPED_TRACE(share);
    scenario_.machine.device->usable_memory = Bytes(std::llround(share * peak));
    const Remedies remedies = remedies_now();
    if (!remedies.together) continue;
    several = true;
    EXPECT_NE(remedies.together->verdict, MemoryVerdictWord::kDoesNotFit);
    EXPECT_TRUE(std::none_of(remedies.list.begin(), remedies.list.end(), [&](const Remedy& r) {
      return r.verdict <= remedies.together->verdict;
    }));
    EXPECT_NE(remedies.together->what.find(", "), std::string::npos) << remedies.together->what;
    if (remedies.together->settings.find("8-bit") == std::string::npos) continue;
    eight_bit = true;
    EXPECT_TRUE(remedies.together->estimate);
  }
  EXPECT_TRUE(several);
  EXPECT_TRUE(eight_bit);
}

TEST_F(RemediesTest, TheSmallestDeviceRunsIt) {
  set_batch(scenario_, 1 << 22);
  const auto device = smallest_device(scenario_);
  ASSERT_TRUE(device);
  scenario_.machine.device->usable_memory = *device;
  EXPECT_TRUE(forecast_now().memory.fits);
  scenario_.machine.device->usable_memory = *device - 2 * kMiB;
  EXPECT_FALSE(forecast_now().memory.fits);
}

TEST_F(RemediesTest, NoTrainingRemediesForInference) {
  step_.mode = "inference";
  set_batch(scenario_, 1 << 22);
  for (const Remedy& r : remedies_now().list) {
    EXPECT_EQ(r.settings.find("{optimizer"), std::string::npos);
    EXPECT_EQ(r.settings.find("{checkpoint"), std::string::npos);
  }
}

TEST(Settings, TheScalerFollowsThePrecisionUnlessSomebodySaysOtherwise) {
  Step step;
  step.mode = "train";
  Scenario s;
  set_precision(s, step, Precision::kAmpFp16);
  EXPECT_TRUE(s.job.grad_scaler);
  set_precision(s, step, Precision::kAmpBf16);
  EXPECT_FALSE(s.job.grad_scaler);
  step.training.grad_scaler = true;
  set_precision(s, step, Precision::kAmpBf16);
  EXPECT_TRUE(s.job.grad_scaler);
  s.grad_scaler = false;
  set_precision(s, step, Precision::kAmpFp16);
  EXPECT_FALSE(s.job.grad_scaler);
  s.grad_scaler.reset();
  step.training.grad_scaler.reset();
  step.mode = "inference";
  set_precision(s, step, Precision::kAmpFp16);
  EXPECT_FALSE(s.job.grad_scaler);
}

TEST(Settings, TheLastBatchIsWhatTheDataLeaveOver) {
  EXPECT_EQ(last_batch_at({.samples = 100}, 32, 1), 4);
  EXPECT_EQ(last_batch_at({.samples = 100}, 32, 3), 2);  // 34 samples a rank
  EXPECT_EQ(last_batch_at({.samples = 96}, 32, 1), 0);
  EXPECT_EQ(last_batch_at({.samples = 10}, 32, 1), 10);
  EXPECT_EQ(last_batch_at({.given = 7}, 32, 1), 7);
  EXPECT_EQ(last_batch_at({.given = 32}, 32, 1), 0);
  EXPECT_EQ(last_batch_at({}, 32, 1), 0);
}

}  // namespace
}  // namespace stoker
