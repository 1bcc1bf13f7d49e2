#include "timing/gpu/kernel_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "timing/common/testing.h"
#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::moving;
using timing_test::round_gpu;

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kGemm;
  kernel.shape = GemmShape{.batch = batch, .m = m, .n = n, .k = k};
  kernel.flops = Flops(2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k));
  return kernel;
}

ConvolutionShape conv3x3(std::int64_t batch, std::int64_t channels, std::int64_t side) {
  ConvolutionShape s;
  s.batch = batch, s.in_channels = channels, s.out_channels = channels;
  s.in = {side, side, 1}, s.out = {side, side, 1}, s.kernel = {3, 3, 1};
  return s;
}

double flops_of(const ConvolutionShape& s) {
  return 2.0 * static_cast<double>(s.batch * s.out[0] * s.out[1] * s.out_channels * s.in_channels /
                                   s.groups * s.kernel[0] * s.kernel[1]);
}

Kernel convolution(const ConvolutionShape& s) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kConvolution;
  kernel.shape = s;
  kernel.flops = Flops(flops_of(s));
  return kernel;
}

TEST(BestTile, IsTheOneWorkedByHand) {
  // 256 x 256 x 100 on 10 SMs of 1e11 FLOP/s. 128x128: 4 tiles, 1 wave, 32.8 us. 128x64 (rate
  // 0.92): 8 tiles, 1 wave, 2*128*64*100 / 0.92e11 = 17.8 us. 64x64 (0.80): 16 tiles, 2 waves, 20.5
  // us. 32x128 (0.75): 16 tiles, 2 waves, 21.8 us. 32x32 (0.5): 64 tiles, 7 waves, 28.7 us.
  const GpuRates device = gpu_rates(round_gpu(), ideal());
  const TileChoice choice = best_tile({.m = 256, .n = 256, .k = 100}, 1e12, device, ideal().kernel);
  EXPECT_NEAR(choice.time.count(), 17.809e-6, 1e-9);
  EXPECT_EQ(choice.waves, 1);
  EXPECT_EQ(choice.tile_m * choice.tile_n, 128 * 64);
  EXPECT_EQ(choice.splits, 1);
}

TEST(BestTile, SplitsALongReductionOverIdleSms) {
  Gpu gpu = round_gpu();
  gpu.bandwidth = 1e12;  // partial sums cost little
  const GpuRates device = gpu_rates(gpu, ideal());
  const Tiling narrow{.m = 64, .n = 64, .k = 100000};
  Tiling whole = narrow;
  whole.split_k = false;
  const TileChoice split = best_tile(narrow, 1e12, device, ideal().kernel);
  EXPECT_GT(split.splits, 1);
  EXPECT_LT(split.time, 0.5 * best_tile(whole, 1e12, device, ideal().kernel).time);
}

TEST(BestTile, NoBlockReducesAloneWhereNoRowsAre) {
  Gpu gpu = round_gpu();
  gpu.bandwidth = 1e12;
  const GpuRates device = gpu_rates(gpu, ideal());
  Tiling alone{.m = 4, .n = 2, .k = 500000, .split_k = false};
  const Seconds one = best_tile(alone, 1e12, device, ideal().kernel).time;
  alone.measured = false;
  const TileChoice choice = best_tile(alone, 1e12, device, ideal().kernel);
  EXPECT_GE(choice.splits, 4);
  EXPECT_LT(choice.time, 0.3 * one);
  const Tiling vector{.m = 500000, .n = 1, .k = 4, .measured = false};
  EXPECT_DOUBLE_EQ(best_tile(vector, 1e12, device, ideal().kernel).time.count(), 4e6 / 1e12);
}

TEST(BestTile, ALoneBlockCannotFillItsSm) {
  KernelCoefficients coefficients = ideal().kernel;
  const GpuRates device = gpu_rates(round_gpu(), ideal());
  const Tiling one_wave{.m = 128, .n = 640, .k = 64}, many{.m = 1280, .n = 1280, .k = 64};
  const Seconds alone = best_tile(one_wave, 1e12, device, coefficients).time;
  const Seconds crowd = best_tile(many, 1e12, device, coefficients).time;
  coefficients.lone_block = 0.5;
  EXPECT_GT(best_tile(one_wave, 1e12, device, coefficients).time, alone);
  EXPECT_EQ(best_tile(many, 1e12, device, coefficients).time, crowd);
}

TEST(KernelCost, NeverFasterThanTheRoofline) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int64_t> size(1, 3000);
  const CostModel model(round_gpu(), ideal());
  for (int i = 0; i < 2000; ++i) {
    Kernel kernel = gemm(size(random), size(random), size(random), 1 + i % 7);
    kernel.read = Bytes(size(random) * 1000);
    kernel.written = Bytes(size(random) * 1000);
    const KernelCost cost = model.cost_of(kernel);
    EXPECT_GE(cost.time.count() * (1 + 1e-9), kernel.flops.count() / 1e12 * 1e9);
    EXPECT_GE(cost.time.count() * (1 + 1e-9), (kernel.read + kernel.written) / Bytes(1));
  }
}

TEST(KernelCost, WinogradSavesAtMostItsArithmetic) {
  // F(4x4, 3x3) needs 36 products for 144: no 3x3 convolution is more than four times faster than
  // its FLOPs.
  const CostModel model(round_gpu(), ideal());
  bool saved = false;
  for (const std::int64_t channels : {8, 64, 512}) {
    for (const std::int64_t side : {7, 28, 112}) {
      const Kernel kernel = convolution(conv3x3(16, channels, side));
      const double plain = kernel.flops.count() / 1e12 * 1e9;
      const KernelCost cost = model.cost_of(kernel);
      EXPECT_GE(cost.time.count(), plain / 4);
      saved = saved || cost.time.count() < plain;
    }
  }
  Gpu fast_memory = round_gpu();
  fast_memory.bandwidth = 1e12;
  const Kernel kernel = convolution(conv3x3(16, 512, 28));
  EXPECT_EQ(cost_of(kernel, fast_memory, ideal()).cost_class, CostClass::kWinograd);
}

TEST(KernelCost, RateAndBandwidthScaleExactly) {
  Gpu twice = round_gpu();
  twice.peak.fp32 *= 2;
  twice.bandwidth *= 2;
  const Kernel product = gemm(100, 100, 64), mover = moving(50);
  EXPECT_DOUBLE_EQ(cost_of(product, round_gpu(), ideal()).time.count(),
                   2 * cost_of(product, twice, ideal()).time.count());
  EXPECT_DOUBLE_EQ(cost_of(mover, round_gpu(), ideal()).time.count(), 50000);
  EXPECT_DOUBLE_EQ(cost_of(mover, twice, ideal()).time.count(), 25000);
}

TEST(KernelCost, MoreWorkIsNeverFaster) {
  Gpu gpu = round_gpu();
  gpu.l2 = Bytes(1 << 20);
  const CostModel model(gpu, Coefficients());
  double before = 0;
  for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 33); bytes += bytes / 3 + 1) {
    Kernel kernel;
    kernel.kernel_class = KernelClass::kElementwise;
    kernel.read = Bytes(bytes);
    const double time = model.cost_of(kernel).time.count();
    EXPECT_GE(time, before) << bytes;
    before = time;
  }
  for (std::int64_t k = 16, last = 0; k < 100000; last = k, k *= 2) {
    if (last == 0) continue;
    EXPECT_GE(model.cost_of(gemm(512, 512, k)).time, model.cost_of(gemm(512, 512, last)).time);
  }
}

TEST(KernelCost, SmallTensorsComeFromTheCache) {
  Gpu gpu = round_gpu();
  gpu.l2 = Bytes(10'000'000);
  Coefficients c = ideal();
  c.kernel.l2_share = 0.5;
  c.kernel.l2_speedup = 4;
  EXPECT_DOUBLE_EQ(cost_of(moving(4000), gpu, c).time.count(), 1e6);  // 4 MB fit in 5 MB
  EXPECT_GT(cost_of(moving(1e6), gpu, c).time.count(), 0.99e9);
}

TEST(KernelCost, FloorAndLaunchesAddUp) {
  Coefficients c = ideal();
  c.kernel.floor = 2_us;
  c.kernel.launch = 3_us;
  Kernel kernel = moving(10);
  kernel.launches = 4;
  const KernelCost cost = cost_of(kernel, round_gpu(), c);
  EXPECT_DOUBLE_EQ(cost.time.count(), (2 + 3 * 3 + 10) * 1e3);
  EXPECT_EQ(cost.bound, Bound::kLatency);
  EXPECT_EQ(cost_of(moving(100), round_gpu(), c).bound, Bound::kMemory);
}

TEST(KernelCost, WithoutARuleBytesDecideAndItIsSaid) {
  Kernel unknown = moving(10);
  unknown.kernel_class = KernelClass::kUncosted;
  const KernelCost cost = cost_of(unknown, round_gpu(), ideal());
  EXPECT_FALSE(cost.has_rule);
  EXPECT_DOUBLE_EQ(cost.time.count(), 10e3);
  Kernel shapeless = moving(10);
  shapeless.kernel_class = KernelClass::kGemm;
  EXPECT_FALSE(cost_of(shapeless, round_gpu(), ideal()).has_rule);
  EXPECT_TRUE(cost_of(moving(10), round_gpu(), ideal()).has_rule);
}

TEST(KernelCost, LayerNormIsNotBatchNorm) {
  Coefficients c = ideal();
  c.classes[static_cast<std::size_t>(CostClass::kLayerNorm)].memory = 0.5;
  Kernel norm = moving(10);
  norm.kernel_class = KernelClass::kNormalization;
  EXPECT_DOUBLE_EQ(cost_of(norm, round_gpu(), c).time.count(), 10e3);
  norm.shape = RowShape{.rows = 10, .width = 100};
  EXPECT_DOUBLE_EQ(cost_of(norm, round_gpu(), c).time.count(), 20e3);
  norm.phase = StepPhase::kBackward;
  EXPECT_EQ(cost_of(norm, round_gpu(), c).cost_class, CostClass::kLayerNormBackward);
}

TEST(KernelCost, ScaleMultipliesAllButTheFloor) {
  Coefficients c = ideal();
  c.kernel.floor = 2_us;
  c.classes[static_cast<std::size_t>(CostClass::kElementwise)].scale = 1.5;
  EXPECT_DOUBLE_EQ(cost_of(moving(10), round_gpu(), c).time.count(), 17e3);
}

TEST(KernelCost, UnalignedRowsSlowTensorCoresOnly) {
  Gpu gpu = round_gpu();
  gpu.peak.fp16_tensor = 8e12;
  Coefficients c = ideal();
  c.kernel.unaligned_tensor = 0.5;
  const auto time = [&](std::int64_t k, MathUnit unit) {
    Kernel kernel = gemm(1024, 1024, k);
    kernel.unit = unit;
    kernel.dtype = unit == MathUnit::kFp32 ? DType::kF32 : DType::kF16;
    return cost_of(kernel, gpu, c).time.count();
  };
  const double aligned = time(512, MathUnit::kFp16Tensor);
  EXPECT_NEAR(time(510, MathUnit::kFp16Tensor) / aligned, 2.0, 0.01);                 // 4 bytes
  EXPECT_NEAR(time(508, MathUnit::kFp16Tensor) / aligned, std::sqrt(2.0), 0.02);      // 8 bytes
  EXPECT_NEAR(time(511, MathUnit::kFp16Tensor) / aligned, std::pow(2.0, 1.5), 0.02);  // 2 bytes
  EXPECT_NEAR(time(511, MathUnit::kFp32) / time(512, MathUnit::kFp32), 1.0, 0.01);
}

TEST(KernelCost, TransposedConvolutionMirrorsTheOrdinaryOne) {
  ConvolutionShape s = conv3x3(4, 32, 28);
  s.out_channels = 64, s.out = {14, 14, 1}, s.stride = {2, 2, 1};
  ConvolutionShape mirrored = s;
  std::swap(mirrored.in, mirrored.out);
  std::swap(mirrored.in_channels, mirrored.out_channels);
  mirrored.transposed = true;
  s.pass = Pass::kBackwardInput;
  EXPECT_EQ(cost_of(convolution(s), round_gpu(), ideal()).time,
            cost_of(convolution(mirrored), round_gpu(), ideal()).time);
}

TEST(GpuRates, UnitsThatAGpuLacksHaveAStandIn) {
  Gpu gpu = round_gpu();
  const auto rate = [&](MathUnit unit) {
    return gpu_rates(gpu, ideal()).rate[static_cast<std::size_t>(unit)];
  };
  EXPECT_DOUBLE_EQ(rate(MathUnit::kBf16Tensor), 1e12);
  EXPECT_DOUBLE_EQ(rate(MathUnit::kTf32Tensor), 1e12);
  EXPECT_DOUBLE_EQ(rate(MathUnit::kFp16Tensor), 1e12);
  gpu.compute_capability = 60;  // P100: packed halves
  EXPECT_DOUBLE_EQ(rate(MathUnit::kFp16Tensor), 2e12);
  gpu.peak.fp16_tensor = 8e12;
  EXPECT_DOUBLE_EQ(rate(MathUnit::kFp16Tensor), 8e12);  // below the reference: no discount
}

TEST(GpuRates, PowerCapsTheRate) {
  Gpu gpu = round_gpu();
  gpu.architecture = Architecture::kTuring;
  gpu.peak.fp32 = 8.14e12;
  gpu.tdp_watts = 70;  // T4: 0.85 * 70 W / 14 pJ
  EXPECT_DOUBLE_EQ(gpu_rates(gpu, Coefficients()).rate[0], 4.25e12);
}

TEST(KernelCost, BatchNormsFallShortOfWideMemories) {
  Gpu gpu = round_gpu();
  Coefficients c = ideal();
  c.kernel.bandwidth_reference = gpu.bandwidth;
  c.kernel.bandwidth_exponent = 0.5;
  const auto time = [&](KernelClass kernel_class) {
    Kernel kernel;
    kernel.kernel_class = kernel_class;
    kernel.read = Bytes(std::int64_t{1} << 32);
    return cost_of(kernel, gpu, c).memory.count();
  };
  const double norm = time(KernelClass::kNormalization), add = time(KernelClass::kElementwise);
  gpu.bandwidth *= 4;
  EXPECT_NEAR(time(KernelClass::kNormalization) / norm, 0.5, 1e-6);
  EXPECT_NEAR(time(KernelClass::kElementwise) / add, 0.25, 1e-6);
}

TEST(KernelCost, ChannelsLastWantsWholeAccesses) {
  Gpu gpu = round_gpu();
  gpu.peak.fp16_tensor = 4e12;
  Coefficients c = ideal();
  c.kernel.unaligned_convolution = 0.5;
  const auto time = [&](std::int64_t channels, bool channels_last) {
    Kernel kernel;
    kernel.kernel_class = KernelClass::kConvolution;
    kernel.unit = MathUnit::kFp16Tensor;
    kernel.dtype = DType::kF16;
    ConvolutionShape s{.batch = 64, .in_channels = channels, .out_channels = channels};
    s.in = s.out = {1, 56, 56};
    s.kernel = {1, 3, 3};
    s.channels_last = channels_last;
    kernel.shape = s;
    return cost_of(kernel, gpu, c).compute.count();
  };
  EXPECT_NEAR(time(60, true), 2 * time(64, true), 1e-6 * time(64, true));  // padded, and slower
  EXPECT_NEAR(time(60, false), time(64, false), 1e-6 * time(64, false));   // the transposes pad
}

TEST(KernelCost, FewWideGroupsAreSlowInChannelsLast) {
  Gpu gpu = round_gpu();
  gpu.peak.fp16_tensor = 4e12;
  const Coefficients c = ideal();
  const auto rate = [&](std::int64_t groups, std::int64_t width, bool channels_last) {
    Kernel kernel;
    kernel.kernel_class = KernelClass::kConvolution;
    kernel.unit = MathUnit::kFp16Tensor;
    kernel.dtype = DType::kF16;
    ConvolutionShape s{.batch = 64,
                       .in_channels = groups * width,
                       .out_channels = groups * width,
                       .groups = groups};
    s.in = s.out = {1, 28, 28};
    s.kernel = {1, 3, 3};
    s.channels_last = channels_last;
    kernel.shape = s;
    return static_cast<double>(groups * width * width) / cost_of(kernel, gpu, c).compute.count();
  };
  EXPECT_GT(rate(32, 32, true), 4 * rate(8, 32, true));
  EXPECT_NEAR(rate(8, 32, false), rate(32, 32, false), 1e-6 * rate(32, 32, false));
  EXPECT_LT(rate(32, 24, false), 0.7 * rate(32, 32, false));  // no power of two
}

TEST(GpuRates, WideTensorCoresAreDiscountedButManyAreNot) {
  Gpu gpu = round_gpu();
  gpu.boost_mhz = 1000;
  Coefficients c;
  c.kernel.tensor_exponent = 0.5;
  const auto rate = [&] {
    return gpu_rates(gpu, c).rate[static_cast<std::size_t>(MathUnit::kFp16Tensor)];
  };
  const double reference = c.kernel.tensor_reference * 1e9 * gpu.sm_count;
  gpu.peak.fp16_tensor = 4 * reference;
  EXPECT_NEAR(rate(), 2 * reference, 1e-6 * reference);
  gpu.boost_mhz = 0;  // then the clock follows from the FP32 rate and its units
  gpu.fp32_cores_per_sm = 64;
  gpu.peak.fp32 = 2.0 * 64 * gpu.sm_count * 1e9;
  EXPECT_NEAR(rate(), 2 * reference, 1e-6 * reference);
  gpu.boost_mhz = 1000;
  gpu.sm_count *= 2;
  gpu.peak.fp16_tensor *= 2;
  EXPECT_NEAR(rate(), 4 * reference, 1e-6 * reference);
}

TEST(GpuRates, NothingKnownIsStillFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -1.0, nan, HUGE_VAL}) {
    Gpu gpu;
    gpu.peak = {bad, bad, bad, bad, bad};
    gpu.bandwidth = bad;
    gpu.pcie_bandwidth = bad;
    gpu.tdp_watts = bad;
    const CostModel model(gpu, Coefficients());
    EXPECT_TRUE(model.device().guessed);
    for (Kernel kernel : {gemm(64, 64, 64), moving(10), convolution(conv3x3(1, 8, 8))}) {
      for (std::size_t u = 0; u < kMathUnits; ++u) {
        kernel.unit = static_cast<MathUnit>(u);
        const double time = model.cost_of(kernel).time.count();
        EXPECT_TRUE(std::isfinite(time) && time > 0) << bad;
      }
    }
  }
}

TEST(KernelCost, Bf16WithoutItsUnitsIsNoFasterThanFp32) {
  Gpu gpu = round_gpu();
  gpu.peak.fp16_tensor = 8 * gpu.peak.fp32;
  for (Kernel wide : {gemm(512, 512, 512), gemm(64, 4096, 1024), convolution(conv3x3(8, 64, 56)),
                      moving(1 << 26)}) {
    wide.dtype = DType::kF32;
    wide.read = Bytes(2 << 20);
    wide.written = Bytes(1 << 20);
    Kernel narrow = wide;
    narrow.dtype = DType::kBf16;
    narrow.read = Bytes(1 << 20);
    narrow.written = Bytes(1 << 19);
    gpu.peak.bf16_tensor = 0;
    EXPECT_GE(cost_of(narrow, gpu, ideal()).time, cost_of(wide, gpu, ideal()).time);
  }
}

}  // namespace
}  // namespace stoker
