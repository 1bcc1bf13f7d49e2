#include "timing/gpu/gpu_rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "timing/common/testing.h"

namespace stoker {
namespace {

double rate(const GpuRates& rates, MathUnit unit) {
  return rates.rate[static_cast<std::size_t>(unit)];
}
bool capped(const GpuRates& rates, MathUnit unit) {
  return rates.capped[static_cast<std::size_t>(unit)];
}

/// The shape of an L4: 58 SMs at 2.04 GHz, FP32 30.3, FP16 tensor cores 121 TFLOP/s, 72 W.
Gpu low_power_gpu() {
  Gpu gpu;
  gpu.architecture = Architecture::kAda;
  gpu.compute_capability = 89;
  gpu.sm_count = 58;
  gpu.boost_mhz = 2040;
  gpu.peak = {30.3e12, 30.3e12, 60.5e12, 121e12, 121e12};
  gpu.bandwidth = 300e9;
  gpu.tdp_watts = 72;
  return gpu;
}

TEST(GpuRates, PowerCapsArithmetic) {
  Coefficients c = timing_test::ideal();
  c.power = {.share = 0.85, .pj_5nm = 4.2, .half_tensor = 5, .tf32_tensor = 2.5};
  const GpuRates rates = gpu_rates(low_power_gpu(), c);
  // 0.85 x 72 W / 4.2 pJ = 14.571 TFLOP/s; five and two and a half times that on tensor cores.
  EXPECT_NEAR(rate(rates, MathUnit::kFp32), 14.5714e12, 1e8);
  EXPECT_TRUE(capped(rates, MathUnit::kFp32));
  EXPECT_NEAR(rate(rates, MathUnit::kTf32Tensor), 36.4286e12, 1e9);
  EXPECT_TRUE(capped(rates, MathUnit::kTf32Tensor));
  // FP64 needs far less than what power allows: 30.3 / 64.
  EXPECT_NEAR(rate(rates, MathUnit::kFp64), 30.3e12 / 64, 1e6);
  EXPECT_FALSE(capped(rates, MathUnit::kFp64));
}

TEST(GpuRates, WithoutATdpNothingIsCapped) {
  Gpu gpu = low_power_gpu();
  gpu.tdp_watts = 0;
  const GpuRates rates = gpu_rates(gpu, timing_test::ideal());
  EXPECT_EQ(rate(rates, MathUnit::kFp32), 30.3e12);
  EXPECT_FALSE(capped(rates, MathUnit::kFp32));
}

TEST(GpuRates, WideTensorCoresAreFedWorse) {
  // An A100: 312e12 / (108 SMs x 1.41 GHz) = 2,048.9 FLOPs of an SM in a clock, four times the
  // reference of 512; in TF32 1,024.4, four times 256.
  Gpu gpu = timing_test::ampere_gpu();
  gpu.boost_mhz = 1410;
  Coefficients c = timing_test::ideal();
  c.kernel.tensor_reference = 512;
  c.kernel.tensor_exponent = 0.5;
  c.kernel.tensor_gemm_exponent = 0.75;
  const GpuRates rates = gpu_rates(gpu, c);
  const double wide = 312e12 / (108 * 1.41e9) / 512;
  ASSERT_NEAR(wide, 4.0017, 1e-4);
  const auto half = static_cast<std::size_t>(MathUnit::kFp16Tensor);
  EXPECT_NEAR(rates.rate[half], 312e12 / std::sqrt(wide), 1e6);
  EXPECT_NEAR(rates.product[half], 312e12 / std::pow(wide, 0.25), 1e6);
  // Ampere's own instructions are the warp-level ones: nothing is lost beside the discount.
  EXPECT_NEAR(rates.warp_level[half], rates.rate[half], 1e6);
  EXPECT_NEAR(rate(rates, MathUnit::kTf32Tensor), 156e12 / std::sqrt(wide), 1e6);
  EXPECT_TRUE(rates.tensor[half]);
  EXPECT_FALSE(rates.tensor[static_cast<std::size_t>(MathUnit::kFp32)]);
}

TEST(GpuRates, HoppersTensorCoresLoseByWarpLevelInstructions) {
  // An H100: 989.4e12 / (132 SMs x 1.83 GHz) = 4,096 FLOPs of an SM in a clock, of which 62.9 %
  // are reached.
  Gpu gpu = timing_test::ampere_gpu();
  gpu.architecture = Architecture::kHopper;
  gpu.compute_capability = 90;
  gpu.sm_count = 132;
  gpu.boost_mhz = 1830;
  gpu.peak.fp16_tensor = 4096.0 * 132 * 1.83e9;
  Coefficients c = timing_test::ideal();
  c.kernel.tensor_exponent = 1;  // no discount for width
  const GpuRates rates = gpu_rates(gpu, c);
  const auto half = static_cast<std::size_t>(MathUnit::kFp16Tensor);
  EXPECT_NEAR(rates.warp_level[half] / rates.rate[half], 0.629, 1e-9);
}

TEST(GpuRates, MatrixUnitsOfCdnaDoubleFp32) {
  Gpu gpu;  // an MI100
  gpu.vendor = Vendor::kAmd;
  gpu.architecture = Architecture::kCdna;
  gpu.sm_count = 120;
  gpu.peak.fp32 = 23.1e12;
  EXPECT_EQ(rate(gpu_rates(gpu, timing_test::ideal()), MathUnit::kFp32), 46.2e12);
}

TEST(GpuRates, WhatIsMissingIsGuessedAndTold) {
  const GpuRates rates = gpu_rates(Gpu{}, timing_test::ideal());
  EXPECT_TRUE(rates.guessed);
  EXPECT_EQ(rates.sms, 1);
  EXPECT_EQ(rates.bandwidth, 4e11);
  EXPECT_EQ(rate(rates, MathUnit::kFp32), 1e13);
  EXPECT_FALSE(gpu_rates(timing_test::round_gpu(), timing_test::ideal()).guessed);
}

}  // namespace
}  // namespace stoker
