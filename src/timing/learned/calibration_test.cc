#include "timing/learned/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "timing/common/testing.h"
#include "timing/gpu/kernel_cost.h"
#include "timing/learned/measured_operator.h"
#include "timing/step/coefficient_file.h"

namespace stoker {
namespace {

Gpu gpu() { return timing_test::ampere_gpu(); }

MeasuredOperator sized(std::string kind, std::map<std::string, std::int64_t> sizes) {
  MeasuredOperator m;
  m.kind = std::move(kind), m.sizes = std::move(sizes);
  m.warm = false;
  m.where = "lab.toml:9";
  return m;
}

/// Products, element-wise operators and softmaxes of many sizes, without times.
std::vector<MeasuredOperator> shapes() {
  std::vector<MeasuredOperator> all;
  for (const std::int64_t n : {1024, 1536, 2048, 3072, 4096, 6144}) {
    all.push_back(sized("gemm", {{"m", n}, {"n", 2048}, {"k", 2048}}));
    all.push_back(sized("elementwise", {{"elements", n * 20000}}));
    all.push_back(sized("softmax", {{"rows", n * 16}, {"width", 1024}}));
  }
  return all;
}

/// Times that a GPU would show whose classes take `factor` times as long as predicted.
template <class Factor>
Calibration measured(const Coefficients& c, double floor_us, Factor&& factor) {
  Calibration calibration;
  calibration.launch_floor_us = floor_us;
  for (MeasuredOperator& m : shapes()) {
    const KernelCost cost = CostModel(gpu(), c).cost_of(*kernel_of(m, gpu()));
    m.time_us =
        0.55 * floor_us + factor(cost.cost_class) * (as_micros(cost.time) - c.kernel.floor).count();
    calibration.operators.push_back(m);
  }
  return calibration;
}

double scale_after(const CoefficientPatch& patch, Coefficients c, CostClass of) {
  EXPECT_TRUE(apply(patch, c));
  return c.of(of).scale;
}

TEST(Calibration, FindsTheFactorsOfEachClass) {
  const Coefficients before;
  const auto patch =
      calibrate(measured(before, 20, [](CostClass c) { return c == CostClass::kGemm ? 1.3 : 1.1; }),
                gpu(), before);
  ASSERT_TRUE(patch) << patch.error().text();
  EXPECT_NEAR(scale_after(*patch, before, CostClass::kGemm), 1.3, 0.08);
  EXPECT_NEAR(scale_after(*patch, before, CostClass::kElementwise), 1.1, 0.04);
  EXPECT_NEAR(scale_after(*patch, before, CostClass::kSoftmax), 1.1, 0.04);
  // A class that nothing measured follows its relatives part of the way.
  const double copy = scale_after(*patch, before, CostClass::kCopy);
  EXPECT_GT(copy, 1.02);
  EXPECT_LT(copy, 1.15);
}

TEST(Calibration, PerfectAgreementChangesNoTimeAndNarrowsTheBand) {
  const Coefficients before;
  const auto patch = calibrate(measured(before, 20, [](CostClass) { return 1.0; }), gpu(), before);
  ASSERT_TRUE(patch);
  Coefficients after = before;
  ASSERT_TRUE(apply(*patch, after));
  for (std::size_t i = 0; i < kCostClasses; ++i) {
    EXPECT_NEAR(after.classes[i].scale, 1, 1e-6) << kCostClasses;
    EXPECT_LE(after.classes[i].spread,
              std::hypot(before.classes[i].spread, before.common_spread) + 1e-12);
  }
  EXPECT_LT(after.of(CostClass::kGemm).spread, before.of(CostClass::kGemm).spread);
  EXPECT_LE(after.common_spread, before.common_spread);
}

TEST(Calibration, FewerRowsNarrowLess) {
  const Coefficients before;
  Calibration all = measured(before, 20, [](CostClass) { return 1.2; }), one = all;
  one.operators.resize(1);  // a product
  Coefficients a = before, b = before;
  ASSERT_TRUE(apply(*calibrate(all, gpu(), before), a));
  ASSERT_TRUE(apply(*calibrate(one, gpu(), before), b));
  EXPECT_LT(a.of(CostClass::kGemm).spread, b.of(CostClass::kGemm).spread);
  EXPECT_LT(std::abs(a.of(CostClass::kGemm).scale - 1.2),
            std::abs(b.of(CostClass::kGemm).scale - 1.2));
}

TEST(Calibration, AnUnknownFloorIsTakenFromTheShortestRows) {
  const Coefficients before;
  Calibration c = measured(before, 25, [](CostClass) { return 1.0; });
  c.launch_floor_us = 0;
  const auto patch = calibrate(c, gpu(), before);
  ASSERT_TRUE(patch);
  EXPECT_NEAR(scale_after(*patch, before, CostClass::kElementwise), 1, 0.02);
}

TEST(Calibration, RefusesWhatPhysicsForbidsByRow) {
  const Coefficients before;
  Calibration c = measured(before, 20, [](CostClass) { return 1.0; });
  c.operators[3].where = "lab.toml:44";
  c.operators[3].time_us = 30;
  const auto patch = calibrate(c, gpu(), before);
  ASSERT_FALSE(patch);
  EXPECT_EQ(patch.error().where, "lab.toml:44");
}

TEST(Calibration, RefusesTheMeasurementsOfAnotherGpu) {
  const Coefficients before;
  const auto patch = calibrate(measured(before, 20, [](CostClass) { return 30.0; }), gpu(), before);
  ASSERT_FALSE(patch);
  EXPECT_NE(patch.error().text().find("another GPU"), std::string::npos);
}

TEST(Calibration, HostAndCopiesAreTakenAsMeasured) {
  const Coefficients before;
  Calibration c;
  c.host_dispatch_us = 9;
  c.pinned_gbs = 24;
  const auto patch = calibrate(c, gpu(), before);
  ASSERT_TRUE(patch);
  Coefficients after = before;
  ASSERT_TRUE(apply(*patch, after));
  const auto measured_us = [](const HostCoefficients& h) {
    return (h.forward + h.autograd + h.module).count();
  };
  EXPECT_NEAR(measured_us(after.host), 9, 1e-9);
  EXPECT_NEAR(after.host.backward.count(),
              before.host.backward.count() * 9 / measured_us(before.host), 1e-9);
  EXPECT_EQ(after.host.speed, 1) << "no other core's speed on top";
  EXPECT_DOUBLE_EQ(after.copy.pinned, 0.75);
  EXPECT_DOUBLE_EQ(after.copy.pageable, before.copy.pageable);
  EXPECT_DOUBLE_EQ(after.of(CostClass::kGemm).spread, before.of(CostClass::kGemm).spread);
}

TEST(Calibration, AMachinesMeasurementsAreUsedByItself) {
  const auto file = CoefficientFile::parse(
      R"({"format": "stoker-timing-coefficients", "schema_version": [1, 0], )"
      R"("base": {"basis": "all"}})",
      "test");
  ASSERT_TRUE(file);
  Gpu mine = gpu();
  const auto plain = file->for_device(mine);
  mine.calibration =
      std::make_shared<const Calibration>(measured(*plain, 20, [](CostClass) { return 1.25; }));
  const auto calibrated = file->for_device(mine);
  ASSERT_TRUE(calibrated) << calibrated.error().text();
  EXPECT_EQ(calibrated->level, CoefficientLevel::kCalibrated);
  EXPECT_EQ(calibrated->basis, "18 operators measured on this GPU; the rest: all");
  EXPECT_NEAR(calibrated->of(CostClass::kSoftmax).scale, 1.25, 0.05);
}

/// The band holds the truth about as often as it says, for GPUs drawn from the prior.
TEST(Calibration, TheBandHoldsWhatItPromises) {
  Coefficients before;
  // Far enough from the data sheet that no draw contradicts it.
  for (ClassCoefficients& c : before.classes) c.compute = c.memory = 0.4;
  std::mt19937 random(3);
  int held = 0, count = 0;
  for (int run = 0; run < 60; ++run) {
    std::normal_distribution<> device(0, 0.12), part(0, 0.14), shape(0, 0.1);
    std::map<CostClass, double> truth;
    const double common = device(random);
    Calibration c = measured(before, 20, [&](CostClass of) {
      if (!truth.contains(of)) truth[of] = std::exp(common + part(random));
      return truth[of] * std::exp(shape(random));
    });
    const auto patch = calibrate(c, gpu(), before);
    ASSERT_TRUE(patch) << patch.error().text();
    Coefficients after = before;
    ASSERT_TRUE(apply(*patch, after));
    for (const auto& [of, factor] : truth) {
      // A step's total of the class: three shapes.
      double total = 0;
      for (int i = 0; i < 3; ++i) total += factor * std::exp(shape(random)) / 3;
      const double ratio = total / after.of(of).scale, r = after.of(of).spread;
      held += ratio > 1 / (1 + r) && ratio < 1 + r ? 1 : 0;
      ++count;
    }
  }
  EXPECT_GE(held, 0.84 * count);
  EXPECT_LE(held, 0.98 * count);
}

}  // namespace
}  // namespace stoker
