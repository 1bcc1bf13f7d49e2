#include "forecast/time/scaling.h"

#include "forecast/test_scenario.h"
#include "timing/collective/collectives.h"

namespace stoker {
namespace {

class ScalingTest : public testing_support::ScenarioTest {
 protected:
  Scaling scaled(const ScalingRequest& request) {
    auto scaling = forecast_scaling(scenario_, request, *knowledge_);
    EXPECT_TRUE(scaling) << scaling.error().text();
    return scaling.value();
  }
};

TEST(ShareOf, MicroBatchesFirstThenTheBatch) {
  const auto share = [](int gpus) { return share_of(32, 8, gpus); };
  EXPECT_EQ(share(1).accumulate, 8);
  EXPECT_EQ(share(1).batch, 32);
  EXPECT_EQ(share(4).accumulate, 2);
  EXPECT_EQ(share(4).batch, 32);
  EXPECT_EQ(share(8).accumulate, 1);
  EXPECT_EQ(share(16).batch, 16);
  EXPECT_EQ(share(256).batch, 1);
}

TEST(ShareOf, NothingIsLostAndNoMicroBatchGrows) {
  for (int batch = 1; batch <= 40; batch += 3) {
    for (int accumulate = 1; accumulate <= 9; ++accumulate) {
      for (int gpus = 1; gpus <= batch * accumulate; ++gpus) {
        const Share share = share_of(batch, accumulate, gpus);
        EXPECT_GE(share.batch * share.accumulate * gpus, batch * accumulate);
        EXPECT_LE(share.batch, batch);
        EXPECT_LE(share.accumulate, accumulate);
        EXPECT_LT((share.batch - 1) * share.accumulate * gpus, batch * accumulate);
      }
    }
  }
}

TEST_F(ScalingTest, OneGpuIsItsOwnMeasure) {
  const Scaling s = scaled({{1}, 8});
  ASSERT_EQ(s.points.size(), 1u);
  EXPECT_DOUBLE_EQ(s.points[0].efficiency, 1);
  EXPECT_EQ(s.pays_up_to, 1);
  EXPECT_EQ(s.stops_at, 0);
  EXPECT_EQ(s.points[0].exposed_communication_ms, 0);
}

TEST_F(ScalingTest, EachLineIsTheForecastOfThatCount) {
  const Scaling s = scaled({{1, 4, 16}, 8});
  scenario_.job.gpus = 16;
  scenario_.job.nodes = 2;
  scenario_.machine.gpu_count = 8;
  scenario_.loader.workers = 1;
  const Forecast f = forecast_now();
  EXPECT_DOUBLE_EQ(s.points[2].step_ms.value, f.step_ms.value);
  EXPECT_EQ(s.points[2].nodes, 2);
  EXPECT_DOUBLE_EQ(s.points[2].efficiency,
                   s.points[2].samples_per_s.value / 16 / s.one_gpu_samples_per_s.value);
}

TEST_F(ScalingTest, WeakScalingNeverFasterAStepWithMoreNodes) {
  scenario_.machine.network_bandwidth = 12.5e9;
  const Scaling s = scaled({{8, 16, 32, 64, 128}, 8});
  for (std::size_t i = 1; i < s.points.size(); ++i) {
    EXPECT_GE(s.points[i].step_ms.value, s.points[i - 1].step_ms.value * (1 - 1e-9));
    EXPECT_LE(s.points[i].efficiency, s.points[i - 1].efficiency * (1 + 1e-9));
  }
}

TEST_F(ScalingTest, ASlowNetworkStopsItAndIsNamed) {
  scenario_.machine.network_bandwidth = 0;
  const Scaling s = scaled({{1, 2, 4, 8, 16, 32}, 2});
  ASSERT_FALSE(s.assumed.empty());
  EXPECT_NE(s.assumed[0].find("{network}"), std::string::npos) << s.assumed[0];
  scenario_.machine.network_bandwidth = 1e3;
  const Scaling slow = scaled({{1, 2, 4, 8, 16, 32}, 2});
  EXPECT_EQ(slow.pays_up_to, 2);
  EXPECT_EQ(slow.stops_at, 4);
  EXPECT_NE(slow.why.find("communication"), std::string::npos) << slow.why;
}

TEST_F(ScalingTest, AMeasuredStepReplacesTheForecastAndNarrowsItsBand) {
  const Scaling forecast = scaled({{1, 8}, 8});
  const double measured = 3 * forecast.one_gpu_step_ms.value;
  const Scaling s = scaled({{1, 8}, 8, false, measured});
  EXPECT_NEAR(s.points[0].step_ms.value, measured, 1e-3 * measured);
  EXPECT_NEAR(s.pace, 3, 1e-9);
  const auto width = [](const Figure& f) { return (f.high - f.low) / f.value; };
  EXPECT_LT(width(s.points[1].step_ms), width(forecast.points[1].step_ms));
  // The collectives take as long as before, so that they weigh less.
  EXPECT_NEAR(s.points[1].communication_ms, forecast.points[1].communication_ms, 1e-9);
  EXPECT_GE(s.points[1].efficiency, forecast.points[1].efficiency - 1e-9);
}

TEST_F(ScalingTest, StrongScalingSharesTheBatchAndEndsWithIt) {
  scenario_.job.batch = 8;
  scenario_.job.accumulate = 2;
  const Scaling s = scaled({{1, 2, 4, 16, 32}, 32, true});
  EXPECT_EQ(s.global_batch, 16);
  EXPECT_EQ(s.points[1].accumulate, 1);
  EXPECT_EQ(s.points[1].batch, 8);
  EXPECT_EQ(s.points[2].batch, 4);
  EXPECT_EQ(s.points[3].batch, 1);
  EXPECT_TRUE(s.points[3].impossible.empty());
  EXPECT_NE(s.points[4].impossible.find("global batch of 16"), std::string::npos);
  EXPECT_LE(s.pays_up_to, 16);
}

TEST_F(ScalingTest, UnevenSharesRunAtThePaceOfTheFullest) {
  scenario_.job.batch = 9;
  const Scaling s = scaled({{1, 8}, 8, true});
  EXPECT_EQ(s.points[1].batch, 2);  // nine samples on eight GPUs: one of them has two
  EXPECT_NEAR(s.points[1].samples_per_s.value, 9 / (1e-3 * s.points[1].step_ms.value),
              1e-6 * s.points[1].samples_per_s.value);
}

TEST_F(ScalingTest, AnInputThatIsTooSlowIsNamed) {
  give_samples(50);
  const Scaling s = scaled({{1, 2, 4, 8}, 8});
  EXPECT_GT(s.stops_at, 0);
  EXPECT_NE(s.why.find("samples"), std::string::npos) << s.why;
}

TEST_F(ScalingTest, AlternativesAreSortedAndOnlyOnOneNodeWithDataParallel) {
  const Scaling one = scaled({{1, 2, 4}, 4});
  ASSERT_EQ(one.pays_up_to, 4) << one.why;
  EXPECT_EQ(one.alternatives.size(), 4u);
  for (std::size_t i = 1; i < one.alternatives.size(); ++i)
    EXPECT_GE(one.alternatives[i].step_ms.value, one.alternatives[i - 1].step_ms.value);
  const Scaling two = scaled({{1, 2, 4}, 2});
  for (const ScalingAlternative& a : two.alternatives)
    EXPECT_NE(a.parallel, Parallel::kDataParallel);
}

TEST_F(ScalingTest, BadRequestsAreRefused) {
  EXPECT_FALSE(forecast_scaling(scenario_, {{}, 8}, *knowledge_));
  EXPECT_FALSE(forecast_scaling(scenario_, {{0, 1}, 8}, *knowledge_));
  EXPECT_FALSE(forecast_scaling(scenario_, {{1, 2}, 0}, *knowledge_));
}

}  // namespace
}  // namespace stoker
