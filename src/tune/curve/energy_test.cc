#include "tune/curve/energy.h"

#include <gtest/gtest.h>

namespace stoker::tune {
namespace {

TEST(EnergyTest, TheSteadyPartCountsAndTheLimitIsTold) {
  const auto power =
      measured_power({{"gpu_watts", 120}, {"gpu_watts_steady", 200}, {"gpu_power_limit_w", 300}});
  ASSERT_TRUE(power);
  EXPECT_EQ(power->watts, 200);
  EXPECT_TRUE(power->measured);
  EXPECT_EQ(power->text(), "200 W of 300 W, measured");
  EXPECT_FALSE(measured_power({{"cpu_s", 3}}));
}

TEST(EnergyTest, CostWeighsEnergyAgainstTime) {
  const Power power{200, 150, 260, 300, false};
  EXPECT_DOUBLE_EQ(cost_of(power, 10, 1).value, 2000);
  EXPECT_DOUBLE_EQ(cost_of(power, 10, 0).value, 3000);
  EXPECT_DOUBLE_EQ(cost_of(power, 10, 0.5).value, 2500);
  EXPECT_DOUBLE_EQ(cost_of(power, 10, 0.5).low, 2250);
  EXPECT_EQ(energy_of(power, 10).text(), "2 kJ [1.5-2.6]");
  EXPECT_EQ(power.text(), "about 200 W [150-260] of 300 W, estimated");
}

TEST(EnergyTest, WithoutALimitEnergyAloneCounts) {
  EXPECT_DOUBLE_EQ(cost_of({200, 200, 200, 0, true}, 10, 0.5).value, 2000);
}

TEST(EnergyTest, UnitsFollowTheSize) {
  EXPECT_EQ(joules_text(0.0123), "12.3 mJ");
  EXPECT_EQ(joules_text(1.5), "1.5 J");
  EXPECT_EQ(joules_text(2.5e6), "2.5 MJ");
}

}  // namespace
}  // namespace stoker::tune
