#include "evidence/fit/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

#include "base/files.h"
#include "step/step_reader.h"
#include "timing/common/testing.h"
#include "timing/learned/measured_operator.h"
#include "timing/step/coefficient_file.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

Gpu gpu() { return timing_test::ampere_gpu(); }

Result<Gpu> find(const std::string& name) {
  if (name == "mine") return gpu();
  return fail(ErrorCode::kNotFound, "no GPU is called " + name);
}

Result<std::shared_ptr<const Step>> zoo(const std::string& model, Precision) {
  const auto folder = TRY(data_folder());
  auto step = TRY(read_step_file(folder / "zoo" / (model + ".fp32.step.gz")));
  return std::make_shared<const Step>(std::move(step));
}

CoefficientFile shipped() {
  return *CoefficientFile::parse(
      R"({"format": "stoker-timing-coefficients", "schema_version": [1, 0],
          "base": {"basis": "priors", "kernel": {"floor_us": 3},
                   "classes": {"gemm": {"compute": 0.4}, "elementwise": {"memory": 0.4}}}})",
      "test");
}

Result<FitTable> read(const std::string& text) {
  return read_fit_rows(text, "rows.csv", "mine", find, zoo);
}

std::string refusal(const std::string& text) {
  const auto table = read(text);
  return table ? "read" : table.error().text();
}

constexpr const char* kHeader = "kind,m,n,k,elements,rows,width,time_us,spread\n";

/// Operators of a GPU whose classes take these factors of the predicted times; `noise` is
/// lognormal.
std::string operators(double gemm, double elementwise, double noise, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal(0, noise);
  const auto coefficients = *shipped().for_device(gpu());
  std::ostringstream out;
  out << kHeader << "launch,,,,,,,20,\n";
  const auto line = [&](const MeasuredOperator& m, double factor, const std::string& sizes) {
    const Kernel kernel = *kernel_of(m, gpu());
    const KernelCost cost = CostModel(gpu(), coefficients).cost_of(kernel);
    const double us =
        factor * std::exp(normal(random)) * beyond_floor(cost, kernel, coefficients).count();
    out << m.kind << "," << sizes << "," << us + 11 << ",0.01\n";  // 0.55 of the launch
  };
  for (std::int64_t n = 1024; n <= 8192; n += 1024) {
    MeasuredOperator product;
    product.kind = "gemm";
    product.sizes = {{"m", n}, {"n", 2048}, {"k", 1024}};
    line(product, gemm, std::to_string(n) + ",2048,1024,,,");
    MeasuredOperator add;
    add.kind = "elementwise";
    add.sizes = {{"elements", n * 16384}};
    line(add, elementwise, ",,," + std::to_string(n * 16384) + ",,");
  }
  return out.str();
}

double scale(const CoefficientPatch& patch, const std::string& name) {
  for (const auto& [key, value] : patch.values) {
    if (key == name) return value;
  }
  return NAN;
}

TEST(Fit, RecoversTheFactorsThatMadeTheRows) {
  const auto table = read(operators(1.4, 0.9, 0.02));
  ASSERT_TRUE(table) << table.error().text();
  const auto result = fit_coefficients(*table, shipped());
  ASSERT_TRUE(result) << result.error().text();
  ASSERT_EQ(result->gpus.size(), 1u);
  const GpuFit& fit = result->gpus[0];
  EXPECT_NEAR(scale(fit.patch, "gemm.scale"), 1.4, 0.06);
  EXPECT_NEAR(scale(fit.patch, "elementwise.scale"), 0.9, 0.03);
  EXPECT_EQ(fit.all.rows, 16u);
  EXPECT_GT(fit.all.mean_before, 15);
  EXPECT_LT(fit.all.mean_after, 6);
  EXPECT_LT(scale(fit.patch, "gemm.spread"), 0.25);
}

TEST(Fit, TheFileItWritesIsUsedAndReproducible) {
  const auto table = read(operators(1.4, 0.9, 0.02));
  const auto result = fit_coefficients(*table, shipped());
  ASSERT_TRUE(result);
  const std::string text = fit_json(*result, "rows.csv");
  EXPECT_EQ(fit_json(*fit_coefficients(*table, shipped()), "rows.csv"), text);
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "stoker_fit_test.json";
  ASSERT_TRUE(write_file(path, text));
  CoefficientFile file = shipped();
  ASSERT_TRUE(file.lay_over(path));
  const auto after = file.for_device(gpu());
  ASSERT_TRUE(after) << after.error().text();
  EXPECT_NEAR(after->of(CostClass::kGemm).scale, 1.4, 0.06);
  EXPECT_EQ(after->basis, "16 rows of this GPU's user; the rest: priors");
  Gpu other = gpu();
  other.name = "another";
  EXPECT_DOUBLE_EQ(file.for_device(other)->of(CostClass::kGemm).scale, 1);
}

TEST(Fit, WhatDoesNotImproveIsNotWritten) {
  // Every row agrees already: nothing can get better.
  const auto exact = fit_coefficients(*read(operators(1, 1, 0)), shipped());
  ASSERT_TRUE(exact);
  EXPECT_FALSE(exact->improved());
  // Products agree, element-wise operators do not: only those are used.
  const auto half = fit_coefficients(*read(operators(1, 1.3, 0)), shipped());
  ASSERT_TRUE(half);
  EXPECT_TRUE(half->improved());
  EXPECT_TRUE(std::isnan(scale(half->gpus[0].patch, "gemm.scale")));
  EXPECT_NEAR(scale(half->gpus[0].patch, "elementwise.scale"), 1.3, 0.03);
  EXPECT_NE(fit_text(*half).find("no better: not used"), std::string::npos) << fit_text(*half);
  const Coefficients before = *shipped().for_device(gpu());
  EXPECT_DOUBLE_EQ(scale(half->gpus[0].patch, "gemm.spread"),
                   std::hypot(before.of(CostClass::kGemm).spread, before.common_spread));
}

TEST(Fit, NoiseAloneIsNotTakenForKnowledge) {
  int improved = 0;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const auto table = read(operators(1, 1, 0.25, seed));
    ASSERT_TRUE(table) << table.error().text();
    const auto result = fit_coefficients(*table, shipped());
    ASSERT_TRUE(result);
    for (const auto& [name, value] : result->gpus[0].patch.values) {
      if (name == "gemm.scale") {
        EXPECT_NEAR(value, 1, 0.25) << seed;
      }
    }
    improved += result->improved() ? 1 : 0;
  }
  EXPECT_LT(improved, 18);
}

/// Whole steps of two models on a GPU that is slower than promised, by class.
TEST(Fit, WholeStepsTellTheirClasses) {
  CoefficientPatch truth;
  truth.values = {{"convolution.scale", 1.5},           {"convolution_input.scale", 1.5},
                  {"convolution_weight.scale", 1.5},    {"winograd.scale", 1.5},
                  {"normalization.scale", 1.2},         {"elementwise.scale", 1.2},
                  {"normalization_backward.scale", 1.2}};
  const auto slow = shipped().for_device(gpu(), &truth);
  std::string text = "kind,model,batch,precision,time_ms\n";
  for (const std::string model : {"resnet18", "resnet50", "mobilenet_v3_large"}) {
    for (const int batch : {32, 64}) {
      const auto table = read("kind,model,batch,precision,time_ms\nstep," + model + "," +
                              std::to_string(batch) + ",fp32,1\n");
      if (!table) GTEST_SKIP() << table.error().text();
      const FitRow& row = table->rows[0];
      const double ms = 1e-6 * predict_step(*row.program, row.machine, *slow).total.count();
      text += "step," + model + "," + std::to_string(batch) + ",fp32," + std::to_string(ms) + "\n";
    }
  }
  const auto result = fit_coefficients(*read(text), shipped());
  ASSERT_TRUE(result) << result.error().text();
  const GpuFit& fit = result->gpus[0];
  ASSERT_EQ(fit.groups.size(), 1u);
  EXPECT_EQ(fit.groups[0].group, "steps");
  EXPECT_GT(fit.all.mean_before, 5);
  EXPECT_LT(fit.all.mean_after, fit.all.mean_before / 2);
}

TEST(Fit, ReadsLayersOfAStep) {
  const std::string header = "kind,model,layer,batch,precision,pass,time_us\n";
  const auto both = read(header + "layer,resnet18,layer1,16,fp32,,900\n");
  if (!both) GTEST_SKIP() << both.error().text();
  const auto forward = read(header + "layer,resnet18,layer1,16,fp32,forward,300\n");
  const auto backward = read(header + "layer,resnet18,layer1,16,fp32,backward,600\n");
  ASSERT_TRUE(forward && backward);
  EXPECT_GT(forward->rows[0].kernels.size(), 5u);
  EXPECT_EQ(forward->rows[0].kernels.size() + backward->rows[0].kernels.size(),
            both->rows[0].kernels.size());
  EXPECT_NE(refusal(header + "layer,resnet18,layer9,16,fp32,,900\n").find("rows.csv:2"),
            std::string::npos);
}

TEST(Fit, RefusesBadRowsByTheirNumber) {
  const std::string h = kHeader;
  EXPECT_EQ(refusal("kind,m\n"), "rows.csv: has no rows");
  EXPECT_NE(refusal("kind,mm\ngemm,1\n").find("unknown column \"mm\""), std::string::npos);
  EXPECT_NE(refusal("kid,m\ngemm,1\n").find("did you mean kind?"), std::string::npos);
  EXPECT_EQ(refusal(h + "gemm,8,8,,,,,5,\n"), "rows.csv:2: gemm needs k of at least 1");
  EXPECT_EQ(refusal(h + "gemm,8,8,x,,,,5,\n"), "rows.csv:2: k = \"x\" is no number");
  EXPECT_NE(refusal(h + "gemm,8,8,8,,,,,\n").find("needs a time"), std::string::npos);
  EXPECT_NE(refusal(h + "gemm,8,8,8,,,,-5,\n").find("above 0"), std::string::npos);
  EXPECT_NE(refusal(h + "gemm,8,8,8,,,,5,-1\n").find("spread"), std::string::npos);
  EXPECT_NE(refusal(h + "jemm,8,8,8,,,,5,\n").find("did you mean gemm?"), std::string::npos);
  EXPECT_NE(refusal(h + "gemm,8192,8192,8192,,,,5,\n").find("rows.csv:2: gemm"), std::string::npos);
  EXPECT_NE(refusal(h + "launch,,,,,,,5,\n").find("no rows but"), std::string::npos);
  EXPECT_NE(refusal("kind,gpu,elements,time_us\ncopy,other,100,50\n").find("rows.csv:2: no GPU"),
            std::string::npos);
  EXPECT_NE(refusal("kind,batch,time_ms\nstep,8,50\n").find("needs a model"), std::string::npos);
  EXPECT_NE(refusal("kind,model,time_ms\nstep,resnet18,50\n").find("batch"), std::string::npos);
  const auto nameless = read_fit_rows(h + "gemm,8,8,8,,,,5,\n", "rows.csv", "", find, zoo);
  ASSERT_FALSE(nameless);
  EXPECT_NE(nameless.error().text().find("{gpu}"), std::string::npos);
}

TEST(Fit, OneShapeCannotBeValidated) {
  const auto table = read(std::string(kHeader) + "gemm,1024,1024,1024,,,,900,\n");
  ASSERT_TRUE(table) << table.error().text();
  const auto result = fit_coefficients(*table, shipped());
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("one shape"), std::string::npos);
}

}  // namespace
}  // namespace stoker
