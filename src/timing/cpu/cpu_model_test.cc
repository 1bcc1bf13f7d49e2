#include "timing/cpu/cpu_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "timing/common/testing.h"

namespace stoker {
namespace {

using timing_test::round_cpu;

MeasuredOperator row(const std::string& function, std::int64_t elements, double time_us,
                     int threads = 1) {
  MeasuredOperator r;
  r.kind = "elementwise";
  r.function = function;
  r.threads = threads;
  r.sizes = {{"elements", elements}, {"inputs", 2}};
  r.time_us = time_us;
  r.spread = 0.01;
  r.where = "cpu.toml:7";
  return r;
}

Cpu with_rows(std::vector<MeasuredOperator> rows, bool disturbed = false) {
  Cpu cpu = round_cpu();
  auto calibration = std::make_shared<Calibration>();
  calibration->operators = std::move(rows);
  calibration->disturbed = disturbed;
  cpu.calibration = calibration;
  return cpu;
}

Kernel elements(std::int64_t n) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kElementwise;
  kernel.elements = n;
  kernel.read = Bytes(8 * n);
  kernel.written = Bytes(4 * n);
  return kernel;
}

double rule_us(std::int64_t n, const std::string& function, int threads = 1) {
  const CpuProcessor cpu(round_cpu(), threads);
  return as_micros(cpu_cost(elements(n), function, cpu, {CpuData::kWarm}).total() +
                   cpu_host(round_cpu(), threads, 1).call)
      .count();
}

double told_us(const Cpu& cpu, std::int64_t n, const std::string& function, int threads = 1) {
  const auto model = CpuModel::make(cpu);
  EXPECT_TRUE(model) << model.error().text();
  CpuEstimator estimator(**model, threads);
  return 1e-3 * estimator.estimate(elements(n), function).time.count();
}

TEST(CpuModel, WithoutRowsItIsTheRule) {
  const auto model = CpuModel::make(round_cpu());
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->rows(), 0U);
  CpuEstimator estimator(**model, 1);
  const CpuEstimate e = estimator.estimate(elements(1 << 20), "add");
  EXPECT_DOUBLE_EQ(e.factor, 1);
  EXPECT_FALSE(e.has_rows);
  EXPECT_TRUE(e.has_rule);
}

TEST(CpuModel, RowsCorrectTheirFunctionMost) {
  std::vector<MeasuredOperator> rows;
  for (const std::int64_t n : {1 << 12, 1 << 16, 1 << 20})
    rows.push_back(row("gelu", n, 2 * rule_us(n, "gelu")));
  for (const std::int64_t n : {1 << 12, 1 << 16, 1 << 20})
    rows.push_back(row("add", n, rule_us(n, "add")));
  const auto model = CpuModel::make(with_rows(rows));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ((*model)->rows(), 6U);
  CpuEstimator estimator(**model, 1);
  const double gelu = estimator.estimate(elements(1 << 18), "gelu").factor;
  const double add = estimator.estimate(elements(1 << 18), "add").factor;
  const double other = estimator.estimate(elements(1 << 18), "tanh").factor;
  EXPECT_NEAR(gelu, 2, 0.25);
  EXPECT_NEAR(add, 1, 0.12);
  EXPECT_GT(other, add);  // its class lies between
  EXPECT_LT(other, gelu);
  EXPECT_TRUE(estimator.estimate(elements(1 << 18), "gelu").has_rows);
  EXPECT_FALSE(estimator.estimate(elements(1 << 18), "tanh").has_rows);
}

TEST(CpuModel, InPlaceIsKin) {
  const Cpu cpu = with_rows({row("mul", 1 << 16, 2 * rule_us(1 << 16, "mul"))});
  const auto model = CpuModel::make(cpu);
  ASSERT_TRUE(model);
  CpuEstimator estimator(**model, 1);
  EXPECT_GT(estimator.estimate(elements(1 << 16), "mul_").factor,
            estimator.estimate(elements(1 << 16), "sub").factor);
}

TEST(CpuModel, ThreadsBetweenMeasuredOnes) {
  std::vector<MeasuredOperator> rows;
  for (const std::int64_t n : {1 << 18, 1 << 20}) {
    rows.push_back(row("add", n, 1.5 * rule_us(n, "add", 1), 1));
    rows.push_back(row("add", n, 1.5 * rule_us(n, "add", 4), 4));
  }
  const Cpu cpu = with_rows(rows);
  const double one = told_us(cpu, 1 << 19, "add", 1), two = told_us(cpu, 1 << 19, "add", 2),
               four = told_us(cpu, 1 << 19, "add", 4);
  EXPECT_GT(one, two);
  EXPECT_GT(two, four);
}

TEST(CpuModel, ImpossibleRowsAreRefusedByName) {
  MeasuredOperator product;
  product.kind = "gemm";
  product.function = "mm";
  product.threads = 1;
  product.sizes = {{"m", 1024}, {"n", 1024}, {"k", 1024}};
  product.time_us = 100;  // 21 TFLOP/s on a core of 128 GFLOP/s
  product.where = "cpu.toml:31";
  const auto model = CpuModel::make(with_rows({product}));
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().text().find("cpu.toml:31"), std::string::npos) << model.error().text();
  EXPECT_NE(model.error().text().find("data sheet"), std::string::npos) << model.error().text();
  product.time_us = 20000;
  EXPECT_TRUE(CpuModel::make(with_rows({product})));
  MeasuredOperator unknown = row("add", 1000, 5);
  unknown.kind = "elementwies";
  const auto refused = CpuModel::make(with_rows({unknown}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("elementwise"), std::string::npos);
}

TEST(CpuModel, OneWildRowIsBelievedLess) {
  std::vector<MeasuredOperator> rows;
  for (std::int64_t n = 1 << 10; n <= 1 << 20; n *= 2)
    rows.push_back(row("add", n, (n == 1 << 15 ? 6 : 1) * rule_us(n, "add")));
  const auto model = CpuModel::make(with_rows(rows));
  ASSERT_TRUE(model);
  CpuEstimator estimator(**model, 1);
  EXPECT_LT(estimator.estimate(elements(1 << 15), "add").factor, 2.5);
}

TEST(CpuEstimator, SpreadIsOfTheSum) {
  const auto bare = CpuModel::make(round_cpu());
  std::vector<MeasuredOperator> rows;
  for (const std::int64_t n : {1 << 12, 1 << 16, 1 << 20})
    rows.push_back(row("add", n, rule_us(n, "add")));
  const auto measured = CpuModel::make(with_rows(rows));
  const auto share = [&](const CpuModel& model, int repeats) {
    CpuEstimator estimator(model, 1);
    double all = 0;
    for (int i = 0; i < repeats; ++i) {
      const CpuEstimate e = estimator.estimate(elements(1 << 16), "add");
      estimator.count(elements(1 << 16), e, 1);
      all += e.time.count();
    }
    return estimator.spread().count() / all;
  };
  EXPECT_GT(share(**bare, 1), 2 * share(**measured, 1));
  // An operator that runs again errs the same way: nothing averages out.
  EXPECT_NEAR(share(**measured, 100), share(**measured, 1), 1e-9);
}

TEST(CpuModel, EveryKindOfRowHasAKernel) {
  const std::vector<std::pair<std::string, std::map<std::string, std::int64_t>>> kinds{
      {"pooling", {{"elements", 8 * 64 * 28 * 28}, {"kernel", 2}, {"stride", 2}}},
      {"batch_norm", {{"elements", 100000}, {"channels", 64}}},
      {"gather", {{"elements", 65536}, {"table", 2048000}}},
      {"softmax", {{"rows", 64}, {"width", 1000}}},
      {"attention",
       {{"batch", 2}, {"heads", 4}, {"query_length", 64}, {"key_length", 64}, {"head_dim", 32}}}};
  std::vector<MeasuredOperator> rows;
  for (const auto& [kind, sizes] : kinds) {
    MeasuredOperator r = row("f_" + kind, 1, 5000);
    r.kind = kind;
    r.sizes = sizes;
    rows.push_back(r);
  }
  const auto model = CpuModel::make(with_rows(rows));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ((*model)->rows(), kinds.size());
}

}  // namespace
}  // namespace stoker
