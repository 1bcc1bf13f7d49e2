#include "evidence/calibration/sustained_rates.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

MeasuredOperator gemm(const std::string& precision, std::int64_t m, std::int64_t n, std::int64_t k,
                      double time_us, double spread = 0.01) {
  MeasuredOperator row;
  row.kind = "gemm";
  row.precision = precision;
  row.sizes = {{"m", m}, {"n", n}, {"k", k}};
  row.time_us = time_us;
  row.spread = spread;
  return row;
}

MeasuredOperator copy(const std::string& precision, std::int64_t elements, double time_us,
                      bool warm = false) {
  MeasuredOperator row;
  row.kind = "copy";
  row.precision = precision;
  row.sizes = {{"elements", elements}};
  row.time_us = time_us;
  row.warm = warm;
  return row;
}

Gpu sheet() {
  Gpu gpu;
  gpu.peak.fp32 = 19.5e12;
  gpu.peak.tf32_tensor = 156e12;
  gpu.peak.fp16_tensor = 312e12;
  gpu.peak.bf16_tensor = 311e12;
  gpu.bandwidth = 1.555e12;
  gpu.pcie_bandwidth = 32e9;
  return gpu;
}

TEST(SustainedRates, TheBestProductOfEachPrecision) {
  CalibrationRuns runs;
  // 2 x 1000 x 500 x 200 = 200 MFLOP in 20 us are 10 TFLOP/s; the second takes twice as long.
  runs.calibration.operators = {gemm("fp32", 1000, 500, 200, 20, 0.02),
                                gemm("fp32", 1000, 500, 200, 40),
                                gemm("bf16", 1000, 1000, 1000, 10)};
  const Gpu gpu = sheet();
  const auto rates = sustained_rates(runs, &gpu);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[0].kind, RateKind::kFp32);
  EXPECT_DOUBLE_EQ(rates[0].measured, 10e12);
  EXPECT_DOUBLE_EQ(rates[0].sheet, 19.5e12);
  EXPECT_DOUBLE_EQ(rates[0].spread, 0.02);
  EXPECT_EQ(rates[0].threads, 0);
  EXPECT_EQ(rates[1].kind, RateKind::kBf16);
  EXPECT_DOUBLE_EQ(rates[1].measured, 200e12);
  EXPECT_DOUBLE_EQ(rates[1].sheet, 311e12);
}

TEST(SustainedRates, ABatchOfProductsCountsAll) {
  CalibrationRuns runs;
  runs.calibration.operators = {gemm("tf32", 100, 100, 100, 10)};
  runs.calibration.operators[0].sizes["batch"] = 50;
  const auto rates = sustained_rates(runs, nullptr);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_EQ(rates[0].kind, RateKind::kTf32);
  EXPECT_DOUBLE_EQ(rates[0].measured, 50 * 2e6 / 10e-6);
  EXPECT_EQ(rates[0].sheet, 0) << "no data sheet is known";
}

TEST(SustainedRates, ThePrecisionsComeInTheOrderOfTheKinds) {
  CalibrationRuns runs;
  for (const char* precision : {"bf16", "fp16", "tf32", "fp32", "fp8"})
    runs.calibration.operators.push_back(gemm(precision, 10, 10, 10, 1));
  const Gpu gpu = sheet();
  const auto rates = sustained_rates(runs, &gpu);
  ASSERT_EQ(rates.size(), 4u) << "fp8 is no precision that a rows file knows";
  const std::vector<std::pair<RateKind, double>> expected{{RateKind::kFp32, 19.5e12},
                                                          {RateKind::kTf32, 156e12},
                                                          {RateKind::kFp16, 312e12},
                                                          {RateKind::kBf16, 311e12}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(rates[i].kind, expected[i].first) << i;
    EXPECT_DOUBLE_EQ(rates[i].sheet, expected[i].second) << i;
  }
}

TEST(SustainedRates, MemoryByTheFastestCopyThatNoCacheServes) {
  CalibrationRuns runs;
  // Read and written once: 2 x 4 bytes an element, 2 x 2 of half precision.
  runs.calibration.operators = {copy("fp32", 1'000'000, 10), copy("fp16", 1'000'000, 4),
                                copy("fp32", 1'000'000, 1, true)};
  const Gpu gpu = sheet();
  const auto rates = sustained_rates(runs, &gpu);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_EQ(rates[0].kind, RateKind::kMemory);
  EXPECT_DOUBLE_EQ(rates[0].measured, 1e12) << "4 MB in 4 us; the warm copy tells of the cache";
  EXPECT_DOUBLE_EQ(rates[0].sheet, 1.555e12);
}

TEST(SustainedRates, CopiesFromTheHostStandBesideTheBus) {
  CalibrationRuns runs;
  runs.calibration.pinned_gbs = 25;
  runs.calibration.pageable_gbs = 8;
  const Gpu gpu = sheet();
  const auto rates = sustained_rates(runs, &gpu);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[0].kind, RateKind::kPinnedCopy);
  EXPECT_DOUBLE_EQ(rates[0].measured, 25e9);
  EXPECT_EQ(rates[1].kind, RateKind::kPageableCopy);
  EXPECT_DOUBLE_EQ(rates[1].measured, 8e9);
  for (const SustainedRate& rate : rates) EXPECT_DOUBLE_EQ(rate.sheet, 32e9);
  EXPECT_TRUE(sustained_rates(CalibrationRuns(), &gpu).empty());
}

TEST(SustainedRates, OfACpuByThreadsBesideItsVectorUnits) {
  CalibrationRuns runs;
  runs.device.cpu = true;
  runs.device.clock_mhz = 2500;
  runs.device.simd_bits = 256;
  runs.calibration.figures = {{"copy_gbs", 2, 20, 0.03, {}},
                              {"fma_gflops", 1, 70, 0.01, {}},
                              {"fma_gflops", 2, 130, 0.02, {}},
                              {"l2_gbs", 1, 200, 0, {}},
                              {"forward_us", 0, 6, 0, {}}};
  const auto rates = sustained_rates(runs, nullptr);
  ASSERT_EQ(rates.size(), 4u) << "the time of an operator is no rate";
  // Eight lanes, two units, a product and a sum each: 32 FLOP a cycle.
  EXPECT_EQ(rates[0].kind, RateKind::kFp32);
  EXPECT_EQ(rates[0].threads, 1);
  EXPECT_DOUBLE_EQ(rates[0].measured, 70e9);
  EXPECT_DOUBLE_EQ(rates[0].sheet, 2.5e9 * 32);
  EXPECT_DOUBLE_EQ(rates[1].sheet, 2 * 2.5e9 * 32);
  EXPECT_DOUBLE_EQ(rates[1].spread, 0.02);
  EXPECT_EQ(rates[2].kind, RateKind::kMemory);
  EXPECT_DOUBLE_EQ(rates[2].measured, 20e9);
  EXPECT_EQ(rates[2].sheet, 0) << "no sheet says what memory sustains";
  EXPECT_EQ(rates[3].kind, RateKind::kSecondLevelCache);
}

}  // namespace
}  // namespace stoker
