// Offsets of rows of single convolutions.

#include "accuracy/time/row_offset.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::accuracy {
namespace {

TEST(RowOffsetTest, TheSpanIsTheGpusOwnAndOfOthersTheGeometricMean) {
  EXPECT_EQ(offset_span("P4", true), 740);
  EXPECT_NEAR(offset_span("P4", false), std::cbrt(300.0 * 275 * 790), 1e-9);
  EXPECT_NEAR(offset_span("T4", true), std::pow(300.0 * 275 * 790 * 740, 0.25), 1e-9);
}

TEST(RowOffsetTest, WithoutAnyWordTheForecastLiesBetweenTheEnds) {
  const OffsetForecast forecast{.floor = 50, .issued = 100, .span = 300};
  EXPECT_DOUBLE_EQ(forecast.unknowing(), 200);
  EXPECT_DOUBLE_EQ((OffsetForecast{.floor = 50, .issued = 10, .span = 0}.unknowing()), 50);
}

TEST(RowOffsetTest, OtherGpusOfTheShapeTellTheShare) {
  // Both GPUs of shape 1 show a third of their spans, and shape 2 has one row alone.
  const std::vector<OffsetForecast> forecasts{
      {.shape = 1, .measured = 200, .floor = 50, .issued = 100, .span = 300},
      {.shape = 1, .measured = 500, .floor = 50, .issued = 240, .span = 780},
      {.shape = 2, .measured = 900, .floor = 50, .issued = 240, .span = 780}};
  const auto times = told_by_others(forecasts);
  ASSERT_EQ(times.size(), 3U);
  // Told by 260 of 780 with a doubt of hypot(24, 15), and an even prior of precision 12.
  const double precision = 780.0 * 780 / (24.0 * 24 + 15.0 * 15);
  const double share = (precision / 3 + 6) / (precision + 12);
  EXPECT_NEAR(times[0], 100 + share * 300, 1e-9);
  EXPECT_NEAR(times[1], 500, 15);
  EXPECT_DOUBLE_EQ(times[2], 240 + 390);
}

TEST(RowOffsetTest, AShareStaysWithinTheSpan) {
  const std::vector<OffsetForecast> forecasts{
      {.shape = 1, .measured = 5000, .floor = 50, .issued = 100, .span = 300},
      {.shape = 1, .measured = 120, .floor = 50, .issued = 100, .span = 300}};
  EXPECT_DOUBLE_EQ(told_by_others(forecasts)[1], 400);
}

}  // namespace
}  // namespace stoker::accuracy
