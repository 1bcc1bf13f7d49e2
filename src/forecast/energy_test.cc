#include "forecast/energy.h"

#include <gtest/gtest.h>

#include "forecast/test_scenario.h"

namespace stoker {
namespace {

Gpu board(double tdp_watts) {
  Gpu gpu;
  gpu.tdp_watts = tdp_watts;
  return gpu;
}

EnergyInput busy_hour(double busy) {
  return {.gpus = 1,
          .busy = {busy, busy, busy, ""},
          .samples_per_s = {1000, 900, 1100, ""},
          .epoch_s = {3600, 3300, 4000, ""},
          .run_s = {},
          .start_up_s = {}};
}

TEST(EnergyTest, AnHourOfABusyBoardIsMostOfItsTdp) {
  const auto energy = estimate_energy(board(300), busy_hour(1));
  ASSERT_TRUE(energy);
  EXPECT_NEAR(energy->watts.value, 210, 1e-9);
  EXPECT_NEAR(energy->epoch_kwh.value, 0.210, 1e-9);
  EXPECT_NEAR(energy->joules_per_sample.value, 0.210, 1e-9);
}

TEST(EnergyTest, NeverMoreThanTdpForTheWholeTime) {
  const auto energy = estimate_energy(board(300), busy_hour(1));
  ASSERT_TRUE(energy);
  EXPECT_LE(energy->watts.high, 300);
  EXPECT_GE(energy->watts.low, 0.1 * 300);
  EXPECT_LE(energy->epoch_kwh.low, energy->epoch_kwh.value);
  EXPECT_GE(energy->epoch_kwh.high, energy->epoch_kwh.value);
}

TEST(EnergyTest, AWaitingBoardStillDraws) {
  EXPECT_NEAR(mean_watts(board(300), 0), 60, 1e-9);
  EXPECT_LT(mean_watts(board(300), 0.5), mean_watts(board(300), 0.9));
}

TEST(EnergyTest, BoardsAddUp) {
  EnergyInput eight = busy_hour(1);
  eight.gpus = 8;
  EXPECT_NEAR(estimate_energy(board(300), eight)->epoch_kwh.value,
              8 * estimate_energy(board(300), busy_hour(1))->epoch_kwh.value, 1e-9);
}

TEST(EnergyTest, WithoutTdpThereIsNoFigure) {
  EXPECT_FALSE(estimate_energy(board(0), busy_hour(1)));
  EXPECT_EQ(mean_watts(board(0), 1), 0);
}

class EnergyOfForecastTest : public testing_support::ScenarioTest {};

TEST_F(EnergyOfForecastTest, AForecastCarriesIt) {
  const Forecast f = forecast_now();
  ASSERT_TRUE(f.energy);
  EXPECT_NEAR(f.energy->epoch_kwh.value, f.energy->watts.value * f.epoch_s.value / 3.6e6, 1e-12);
  scenario_.machine.device->tdp_watts = 0;
  EXPECT_FALSE(forecast_now().energy);
}

}  // namespace
}  // namespace stoker
