#include "forecast/cost.h"

#include <gtest/gtest.h>

#include "forecast/test_scenario.h"

namespace stoker {
namespace {

Forecast an_hour_on(int gpus, double price) {
  Forecast f;
  f.job.gpus = gpus;
  f.job.nodes = gpus / 4 > 0 ? gpus / 4 : 1;
  f.epoch_s = {3600, 3000, 4000, ""};
  f.price_per_gpu_hour = price;
  return f;
}

TEST(CostTest, EveryGpuOfEveryNodeIsPaid) {
  Forecast f = an_hour_on(16, 2.5);
  add_cost(f);
  EXPECT_DOUBLE_EQ(f.gpu_hours_per_epoch.value, 16);
  EXPECT_DOUBLE_EQ(f.epoch_cost.value, 40);
  EXPECT_LT(f.epoch_cost.low, f.epoch_cost.value);
  EXPECT_GT(f.epoch_cost.high, f.epoch_cost.value);
  EXPECT_EQ(f.run_cost.value, 0) << "nobody asked for a run";
}

TEST(CostTest, WithoutAPriceThereAreHoursButNoMoney) {
  Forecast f = an_hour_on(2, 0);
  add_cost(f);
  EXPECT_DOUBLE_EQ(f.gpu_hours_per_epoch.value, 2);
  EXPECT_EQ(f.epoch_cost.value, 0);
}

class CostOfRunTest : public testing_support::ScenarioTest {};

TEST_F(CostOfRunTest, ARunIsPaidWithItsStartUp) {
  scenario_.price_per_gpu_hour = 3;
  scenario_.epochs = 10;
  const Forecast f = forecast_now();
  EXPECT_NEAR(f.run_cost.value, 3 * f.run.seconds_total.value / 3600, 1e-12);
  EXPECT_GT(f.run_cost.value, 10 * f.epoch_cost.value) << "start-up costs too";
  ASSERT_TRUE(f.energy);
  EXPECT_GT(f.energy->run_kwh.value, 10 * f.energy->epoch_kwh.value);
  const double all_training = f.energy->watts.value * f.run.seconds_total.value / 3.6e6;
  EXPECT_LT(f.energy->run_kwh.value, all_training) << "a board that starts up draws less";
}

}  // namespace
}  // namespace stoker
