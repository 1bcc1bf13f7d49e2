#include "forecast/time/roofline.h"

#include "forecast/test_scenario.h"

namespace stoker {
namespace {

using testing_support::ScenarioTest;

TEST_F(ScenarioTest, RooflineHasNoOperatorAboveWhatTheDeviceCanDo) {
  const Forecast f = forecast_now();
  const auto roofline = roofline_of(scenario_, f.time, 50);
  ASSERT_TRUE(roofline.has_value());
  ASSERT_FALSE(roofline->points.empty());
  EXPECT_EQ(roofline->bandwidth, scenario_.machine.device.gpu()->bandwidth);
  Nanos before = kSecond;
  for (const RooflinePoint& p : roofline->points) {
    EXPECT_FALSE(p.label.empty());
    EXPECT_LE(p.time, before);
    before = p.time;
    for (const auto& [unit, peak] : roofline->peaks) {
      if (unit == p.unit) {
        EXPECT_LE(p.flops.count() / seconds(p.time), 1.05 * peak) << p.label;
      }
    }
  }
  EXPECT_EQ(roofline_of(scenario_, f.time, 1)->points.size(), 1U);
}

}  // namespace
}  // namespace stoker
