#include "timing/common/data_sheet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/catalogue/gpu_catalogue.h"

namespace stoker {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// FP64 of vector units, TFLOP/s, as makers' data sheets and architecture white papers state it.
struct DoubleRate {
  const char* gpu;
  double tflops;
};
constexpr DoubleRate kDoubleRates[] = {
    {"K40", 1.68},            // at its boost clock of 875 MHz
    {"K80-die", 1.455},       // half of a K80's 2.91
    {"GTX1080Ti", 0.354},     //
    {"P4", 0.17},             //
    {"P100-PCIe-16GB", 4.7},  //
    {"P100-SXM2-16GB", 5.3},  //
    {"V100-SXM2-16GB", 7.8},  //
    {"T4", 0.254},            //
    {"RTX2080Ti", 0.42},      //
    {"RTX3090", 0.556},       // GA102 white paper: 1/64 of FP32
    {"A40", 0.585},           //
    {"A30", 5.2},             //
    {"A100-SXM4-80GB", 9.7},  //
    {"L4", 0.474},            //
    {"RTX4090", 1.29},        //
    {"H100-SXM5-80GB", 34},   //
    {"H100-PCIe-80GB", 26},   //
    {"RTX5090", 1.637},       //
    {"B200-SXM", 37},         //
    {"MI100", 11.5},          //
    {"MI210", 22.6},          //
    {"MI300X", 81.7},
};

TEST(DataSheet, DoublePrecisionIsWhatMakersState) {
  for (const DoubleRate& row : kDoubleRates) {
    const auto gpu = find_gpu(row.gpu);
    ASSERT_TRUE(gpu) << row.gpu;
    EXPECT_NEAR(nominal_peak(*gpu, MathUnit::kFp64) / 1e12 / row.tflops, 1, 0.03) << row.gpu;
  }
}

TEST(DataSheet, WhatAGpuLacksIsDoneByTheNearestThatItHas) {
  const Gpu p100 = find_gpu("P100-PCIe-16GB").value(), t4 = find_gpu("T4").value(),
            p4 = find_gpu("P4").value(), a100 = find_gpu("A100-SXM4-40GB").value();
  // TFLOP/s of the data sheets: T4 65 in FP16 on tensor cores, A100 312 and 156.
  const auto is = [](const Peak& peak, double tflops, bool tensor) {
    EXPECT_NEAR(peak.rate, tflops * 1e12, 0.02 * tflops * 1e12);
    EXPECT_EQ(peak.tensor, tensor);
  };
  is(peak_of(a100, MathUnit::kBf16Tensor, 19.5e12), 312, true);
  is(peak_of(a100, MathUnit::kTf32Tensor, 19.5e12), 156, true);
  is(peak_of(t4, MathUnit::kFp16Tensor, 8.14e12), 65, true);
  is(peak_of(t4, MathUnit::kTf32Tensor, 8.14e12), 8.14, false);
  is(peak_of(t4, MathUnit::kBf16Tensor, 8.14e12), 8.14, false);
  is(peak_of(p100, MathUnit::kFp16Tensor, 9.34e12), 18.7, false);
  is(peak_of(p4, MathUnit::kFp16Tensor, 5.44e12), 5.44, false);
  is(peak_of(p4, MathUnit::kInteger, 5.44e12), 5.44, false);
}

TEST(DataSheet, ChipsThatDoubleHalfPrecisionDoItWithoutAFigureToo) {
  Gpu gpu;
  gpu.compute_capability = 60;
  EXPECT_EQ(peak_of(gpu, MathUnit::kFp16, 5e12).rate, 10e12);
  EXPECT_EQ(peak_of(gpu, MathUnit::kFp16Tensor, 5e12).rate, 10e12);
  gpu.compute_capability = 61;
  EXPECT_EQ(peak_of(gpu, MathUnit::kFp16, 5e12).rate, 5e12);
}

TEST(DataSheet, FiguresThatAreNoneHaveAStandInThatIsTold) {
  bool guessed = false;
  EXPECT_EQ(usable_figure(7, 3, 10, guessed), 7);
  EXPECT_EQ(usable_figure(70, 3, 10, guessed), 10);
  EXPECT_FALSE(guessed);
  for (const double value : {0.0, -1.0, kNone, std::numeric_limits<double>::infinity()}) {
    guessed = false;
    EXPECT_EQ(usable_figure(value, 3, 10, guessed), 3) << value;
    EXPECT_TRUE(guessed) << value;
  }
  Gpu gpu;
  gpu.peak.fp32 = kNone;
  EXPECT_EQ(nominal_peak(gpu, MathUnit::kFp32), 1e13);
  Cpu cpu;
  cpu.peak.fp32 = 0;
  EXPECT_EQ(nominal_peak(cpu), 1e13);
}

}  // namespace
}  // namespace stoker
