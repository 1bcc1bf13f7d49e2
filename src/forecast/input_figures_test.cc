#include "forecast/input_figures.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

InputForecast known_input() {
  InputForecast input;
  input.known = true;
  input.samples_per_s = {200, 150, 300, "measured samples"};
  input.loader.wait = 10 * kMillisecond;
  input.loader.cores_used = 3;
  input.loader.cached_share = 0.4;
  input.loader.shared_memory = Bytes(1000);
  input.loader.worker_memory = Bytes(600);
  input.loader.basis = "the loader's rules";
  return input;
}

TEST(InputFigures, TimesAndLoadsHaveTheBandOfTheRate) {
  const InputFigures f = input_figures(known_input());
  EXPECT_EQ(f.wait_ms.value, 10);
  EXPECT_EQ(f.wait_ms.low, 7.5);
  EXPECT_EQ(f.wait_ms.high, 15);
  EXPECT_EQ(f.wait_ms.basis, "measured samples");
  EXPECT_EQ(f.cores_used.low, 2.25);
  EXPECT_EQ(f.cores_used.high, 4.5);
}

TEST(InputFigures, SizesAreExactButForAWorkersOwnMemory) {
  const InputFigures f = input_figures(known_input());
  EXPECT_EQ(f.shared_memory.low, 1000);
  EXPECT_EQ(f.shared_memory.high, 1000);
  EXPECT_EQ(f.cached_share.value, 0.4);
  EXPECT_EQ(f.cached_share.basis, "the loader's rules");
  EXPECT_EQ(f.worker_memory.value, 600);
  EXPECT_EQ(f.worker_memory.low, 300);
  EXPECT_EQ(f.worker_memory.high, 1200);
}

}  // namespace
}  // namespace stoker
