#include "timing/step/coefficient_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/files.h"

namespace stoker {
namespace {

constexpr const char* kHead =
    R"({"format": "stoker-timing-coefficients", "schema_version": [1, 0])";

Result<CoefficientFile> parsed(const std::string& rest) {
  return CoefficientFile::parse(kHead + rest + "}", "t.json");
}

Gpu gpu_of(const std::string& name, Architecture architecture, const std::string& chip) {
  Gpu gpu;
  gpu.name = name;
  gpu.architecture = architecture;
  gpu.chip = chip;
  return gpu;
}

TEST(Coefficients, LayersOverrideInOrder) {
  const auto file = parsed(R"(,
    "base": {"basis": "base rows", "classes": {"gemm": {"compute": 0.5, "memory": 0.5},
      "softmax": {"memory": 0.5}}},
    "architectures": {"volta": {"classes": {"gemm": {"compute": 0.6}, "softmax": {"memory": 0.6}}}},
    "chips": {"GV100": {"classes": {"softmax": {"memory": 0.65}}}},
    "gpus": {"V100-SXM2-16GB": {"basis": "V100 rows", "classes": {"gemm": {"compute": 0.7}}}})");
  ASSERT_TRUE(file) << file.error().text();

  const auto v100 = file->for_device(gpu_of("V100-SXM2-16GB", Architecture::kVolta, "GV100"));
  ASSERT_TRUE(v100);
  EXPECT_EQ(v100->of(CostClass::kGemm).compute, 0.7);
  EXPECT_EQ(v100->of(CostClass::kGemm).memory, 0.5);
  EXPECT_EQ(v100->of(CostClass::kSoftmax).memory, 0.65);
  EXPECT_EQ(v100->basis, "V100 rows");
  EXPECT_EQ(v100->level, CoefficientLevel::kGpu);

  const auto other = file->for_device(gpu_of("X", Architecture::kHopper, "GH100"));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->of(CostClass::kGemm).compute, 0.5);
  EXPECT_EQ(other->level, CoefficientLevel::kBase);

  const CoefficientPatch measured{{{"gemm.compute", 0.9}}, ""};
  const auto calibrated =
      file->for_device(gpu_of("V100-SXM2-16GB", Architecture::kVolta, "GV100"), &measured);
  ASSERT_TRUE(calibrated);
  EXPECT_EQ(calibrated->of(CostClass::kGemm).compute, 0.9);
  EXPECT_EQ(calibrated->level, CoefficientLevel::kCalibrated);
}

TEST(Coefficients, DamagedFilesSayWhatIsWrong) {
  const auto error = [](const Result<CoefficientFile>& r) { return r ? "none" : r.error().text(); };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(contains(error(CoefficientFile::parse("{\"format\": \"stoker-ti", "t.json")),
                       "t.json: not valid JSON"));
  EXPECT_TRUE(
      contains(error(CoefficientFile::parse("[]", "t.json")), "not a file of time coefficients"));
  EXPECT_TRUE(contains(
      error(CoefficientFile::parse(
          R"({"format": "stoker-timing-coefficients", "schema_version": [2, 0]})", "t.json")),
      "update stoker"));
  EXPECT_TRUE(contains(error(parsed(R"(, "base": {"classes": {"gem": {"compute": 1}}})")),
                       "did you mean gemm.compute"));
  EXPECT_TRUE(contains(error(parsed(R"(, "base": {"classes": {"gemm": {"compute": [1]}}})")),
                       "gemm.compute"));
  EXPECT_TRUE(
      contains(error(parsed(R"(, "base": {"classes": {"gemm": {"compute": 0}}})")), "above 0"));
  EXPECT_TRUE(
      contains(error(parsed(R"(, "base": {"kernel": {"floor_us": -1}})")), "kernel.floor_us"));
  EXPECT_TRUE(contains(error(parsed(R"(, "gpus": 3)")), "gpus"));
  EXPECT_TRUE(
      contains(error(parsed(R"(, "all_reduce": [{"fabric": "x", "ranks": 1}])")), "all_reduce[0]"));
}

TEST(Coefficients, EveryNameCanBeReadAndReplaced) {
  Coefficients c;
  for (const char* name :
       {"gemm.compute", "uncosted.spread", "host.forward_us", "kernel.tensor_exponent",
        "power.share", "pcie.pageable", "collective.contention", "spread.common"}) {
    ASSERT_TRUE(apply({{{name, 0.123}}, ""}, c)) << name;
    EXPECT_EQ(*value_of(c, name), 0.123) << name;
  }
  EXPECT_FALSE(value_of(c, "gemm.speed"));
  EXPECT_FALSE(apply({{{"gemm.compute", std::nan("")}}, ""}, c));
}

TEST(Coefficients, AllReducesOfALaterFileComeFirst) {
  const auto row = [](const std::string& us) {
    return std::string(kHead) + R"(, "all_reduce": [{"fabric": "x", "ranks": 2, "spread": 0.1,
        "curve": [[1, )" +
           us + "], [2, 900]]}]}";
  };
  auto file = CoefficientFile::parse(row("100"), "earlier.json");
  ASSERT_TRUE(file) << file.error().text();
  const std::filesystem::path later = std::filesystem::path(testing::TempDir()) / "later.json";
  ASSERT_TRUE(write_file(later, row("200")));
  ASSERT_TRUE(file->lay_over(later));
  const auto c = file->for_device(gpu_of("none", Architecture::kAmpere, ""));
  ASSERT_TRUE(c);
  ASSERT_EQ(c->collective.fits.size(), 2U);
  EXPECT_EQ(c->collective.fits[0].curve[0].time.count(), 200);
  EXPECT_EQ(c->collective.fits[0].spread_at(1e6), 0.1);
}

TEST(Coefficients, AllReducesHaveAWidthForAllSizesOrOneUpToEach) {
  const auto file = [](const std::string& spread) {
    return CoefficientFile::parse(std::string(kHead) +
                                      R"(, "all_reduce": [{"fabric": "x", "ranks": 2, "spread": )" +
                                      spread + R"(, "curve": [[1, 100], [2, 900]]}]})",
                                  "widths.json");
  };
  const auto by_size = file("[[8, 0.2], [32, 0.01]]");
  ASSERT_TRUE(by_size) << by_size.error().text();
  const auto c = by_size->for_device(gpu_of("none", Architecture::kAmpere, ""));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->collective.fits[0].spread_at(8 << 20), 0.2);
  EXPECT_EQ(c->collective.fits[0].spread_at(9 << 20), 0.01);
  for (const char* wrong :
       {"[[32, 0.01], [8, 0.2]]", "[[8, -1]]", "[]", "[8, 0.2]", "-0.1", "\"a\""})
    EXPECT_FALSE(file(wrong)) << wrong;
}

TEST(Coefficients, TheShippedFileIsWhole) {
  const auto file = CoefficientFile::load_shipped();
  ASSERT_TRUE(file) << file.error().text();
  for (int a = 0; a <= static_cast<int>(Architecture::kOther); ++a) {
    const auto c = file->for_device(gpu_of("none", static_cast<Architecture>(a), ""));
    ASSERT_TRUE(c) << c.error().text();
    for (const ClassCoefficients& entry : c->classes) {
      EXPECT_GT(entry.compute, 0);
      EXPECT_GT(entry.memory, 0);
      EXPECT_GT(entry.spread, 0);
    }
    EXPECT_FALSE(c->basis.empty());
  }
}

TEST(Coefficients, NamesAreDistinct) {
  for (std::size_t i = 0; i < kCostClasses; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NE(name_of(static_cast<CostClass>(i)), name_of(static_cast<CostClass>(j)));
    }
  }
}

}  // namespace
}  // namespace stoker
