#include "timing/learned/residual.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "device/catalogue/gpu_catalogue.h"
#include "timing/common/testing.h"
#include "timing/gpu/kernel_cost.h"
#include "timing/step/coefficient_file.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

using timing_test::moving;
using timing_test::round_gpu;

constexpr std::uint16_t kLeaf = TreeNode::kLeaf;

std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// A file of one elementwise forest with one tree: below 2^20 elements (feature 0) the first value,
/// else the second.
struct File {
  std::vector<TreeNode> nodes{{20, 0, 2}, {0.5F, kLeaf, 0}, {1.0F, kLeaf, 0}};
  std::string chips = R"(["XX100"])", fingerprint = hexadecimal(feature_fingerprint());
  int fold = -1;
  double checked = 0.5;  ///< what the tree gives features of zeros

  [[nodiscard]] std::string entry() const {
    std::string zeros = "0";
    for (std::size_t i = 1; i < feature_names(ResidualFamily::kElementwise).size(); ++i)
      zeros += ",0";
    return R"({"family":"elementwise","trees":1,"chips":)" + chips + R"(,"fold":)" +
           std::to_string(fold) + R"(,"check":[{"value":)" + std::to_string(checked) +
           R"(,"features":[)" + zeros + "]}]}";
  }
  [[nodiscard]] std::string trees() const {
    const auto count = static_cast<std::uint32_t>(nodes.size());
    std::string data(4 + 8 * nodes.size(), '\0');
    std::memcpy(data.data(), &count, 4);
    if (!nodes.empty()) std::memcpy(data.data() + 4, nodes.data(), 8 * nodes.size());
    return data;
  }
};

/// As version 2 of the format sums a file up.
std::uint64_t sum_of_words(std::string body) {
  body.resize((body.size() + 7) / 8 * 8, '\0');
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t at = 0; at < body.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 8; i-- > 0;) word = word << 8 | static_cast<unsigned char>(body[at + i]);
    sum = (sum ^ word) * 0x100000001b3;
  }
  return sum;
}

std::string text_of(const std::vector<File>& files) {
  std::string entries, trees;
  for (const File& file : files) {
    entries += (entries.empty() ? "" : ",") + file.entry();
    trees += file.trees();
  }
  const std::string header =
      R"({"fingerprint":")" + files[0].fingerprint + R"(","forests":[)" + entries + "]}";
  const std::string body = header + trees;
  return "stoker-residual 1 " + hexadecimal(fnv1a(body)) + ' ' + std::to_string(header.size()) +
         '\n' + body;
}

Gpu gpu_of(const std::string& chip) {
  Gpu gpu = round_gpu();
  gpu.chip = chip;
  return gpu;
}

/// An element-wise kernel of so many elements.
Kernel elementwise(std::int64_t elements) {
  Kernel kernel = moving(0);
  kernel.elements = elements;
  kernel.read = Bytes(4 * elements), kernel.written = Bytes(4 * elements);
  return kernel;
}

double time_of(const std::string& text, const std::string& chip, std::int64_t elements) {
  Coefficients c = timing_test::ideal();
  auto residual = Residual::parse(text, "test");
  if (!residual) return -1;
  c.residual = *residual;
  return cost_of(elementwise(elements), gpu_of(chip), c).time.count();
}

TEST(Residual, TreesMultiplyThePlainTimeOfTheirChip) {
  const std::string text = text_of({File{}});
  const double small = 8.0 * 1000, large = 8.0 * (1 << 21);  // ns at one byte a nanosecond
  EXPECT_NEAR(time_of(text, "xx-100", 1000), small * std::exp(0.5), 1e-3 * small);
  EXPECT_NEAR(time_of(text, "XX100", 1 << 21), large * std::exp(1.0), 1e-3 * large);
  EXPECT_NEAR(time_of(text, "YY100", 1000), small, 1e-9);
}

TEST(Residual, TheSecondVersionSumsWords) {
  const std::string first = text_of({File{}});
  const std::string body = first.substr(first.find('\n') + 1);
  const std::string length = first.substr(first.rfind(' ', first.find('\n')));
  const std::string head = length.substr(0, length.find('\n') + 1);
  const std::string second = "stoker-residual 2 " + hexadecimal(sum_of_words(body)) + head + body;
  EXPECT_EQ(time_of(second, "XX100", 1000), time_of(first, "XX100", 1000));
  EXPECT_GT(time_of(second, "XX100", 1000), 0);
  for (const std::size_t from_end : {1, 2, 9, 60}) {
    std::string damaged = second;
    damaged[damaged.size() - from_end] ^= 1;
    const auto refused = Residual::parse(damaged, "test");
    ASSERT_FALSE(refused) << from_end;
    EXPECT_NE(refused.error().message.find("checksum"), std::string::npos);
  }
  EXPECT_FALSE(Residual::parse("stoker-residual 3" + second.substr(17), "test"));
}

TEST(Residual, ForestsForAnyChipSpeakWhereNoOtherDoes) {
  File any;
  any.chips = R"(["*"])";
  any.nodes[1].value = 0.25F, any.checked = 0.25;
  const std::string text = text_of({any, File{}});
  EXPECT_NEAR(time_of(text, "XX100", 1000), 8000 * std::exp(0.5), 1);
  EXPECT_NEAR(time_of(text, "YY100", 1000), 8000 * std::exp(0.25), 1);
}

TEST(Residual, EachShapeIsServedByTheForestThatDidNotSeeIt) {
  std::vector<File> files(kForestFolds);
  for (int fold = 0; fold < kForestFolds; ++fold) {
    auto& file = files[static_cast<std::size_t>(fold)];
    file.fold = fold, file.checked = 0.125 * fold;
    file.nodes[1].value = 0.125F * static_cast<float>(fold);
  }
  const std::string text = text_of(files);
  const ResidualFeatures features(gpu_of("XX100"));
  std::array<int, kForestFolds> served{};
  for (std::int64_t elements = 1000; elements < 1100; ++elements) {
    const auto fold = features.of(elementwise(elements))->shape % kForestFolds;
    ++served[fold];
    const double plain = 8.0 * static_cast<double>(elements);
    EXPECT_NEAR(time_of(text, "XX100", elements),
                plain * std::exp(0.125 * static_cast<double>(fold)), 1e-3 * plain);
  }
  for (const int count : served) EXPECT_GT(count, 5);
}

TEST(Residual, WhatWasAskedBeforeIsAnsweredTheSame) {
  const auto residual = Residual::parse(text_of({File{}}), "test");
  ASSERT_TRUE(residual);
  const GpuForests forests = (*residual)->for_gpu(gpu_of("XX100"));
  std::vector<Seconds> first;
  for (std::int64_t n = 1; n < 3000; n += 7)
    first.push_back(forests.time_of(elementwise(n)).value());
  // Another copy for the same figures shares the memory; other figures do not.
  const GpuForests again = (*residual)->for_gpu(gpu_of("XX100"));
  Gpu slower = gpu_of("XX100");
  slower.bandwidth /= 2;
  const GpuForests other = (*residual)->for_gpu(slower);
  std::size_t i = 0;
  for (std::int64_t n = 1; n < 3000; n += 7, ++i) {
    EXPECT_EQ(again.time_of(elementwise(n)), first[i]);
    EXPECT_GT(other.time_of(elementwise(n)).value(), 1.5 * first[i]);
  }
  // Half precision was never measured.
  Kernel half = elementwise(1);
  half.dtype = DType::kF16;
  EXPECT_FALSE(forests.time_of(half));
}

TEST(Residual, DamageIsRefused) {
  const auto problem = [](const std::string& text) {
    const auto residual = Residual::parse(text, "test");
    return residual ? std::string() : residual.error().text();
  };
  const std::string good = text_of({File{}});
  EXPECT_EQ(problem(good), "");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_NE(problem(bad), "") << "byte " << i;
    EXPECT_NE(problem(good.substr(0, i)), "") << "cut at " << i;
  }
  EXPECT_NE(problem(good + "x"), "");
  File wrong_answer;
  wrong_answer.checked = 0.6;
  EXPECT_NE(problem(text_of({wrong_answer})).find("stored with them"), std::string::npos);
  File other_features;
  other_features.fingerprint = "0123456789abcdef";
  EXPECT_NE(problem(text_of({other_features})).find("other features"), std::string::npos);
}

TEST(Residual, TreesThatLeadNowhereAreRefused) {
  const auto parses = [](std::vector<TreeNode> nodes) {
    File file;
    file.nodes = std::move(nodes);
    return Residual::parse(text_of({file}), "test").has_value();
  };
  EXPECT_TRUE(parses({{20, 0, 2}, {0.5F, kLeaf, 0}, {1, kLeaf, 0}}));
  EXPECT_FALSE(parses({{20, 0, 3}, {0.5F, kLeaf, 0}, {1, kLeaf, 0}}));    // beyond the end
  EXPECT_FALSE(parses({{20, 0, 0}, {0.5F, kLeaf, 0}, {1, kLeaf, 0}}));    // a loop
  EXPECT_FALSE(parses({{20, 500, 2}, {0.5F, kLeaf, 0}, {1, kLeaf, 0}}));  // no such feature
  EXPECT_FALSE(parses({{20, 0, 2}, {0.5F, kLeaf, 0}, {1, 0, 2}}));        // ends in a branch
  EXPECT_FALSE(parses({{NAN, 0, 2}, {0.5F, kLeaf, 0}, {1, kLeaf, 0}}));
  EXPECT_FALSE(parses({}));
}

TEST(Residual, DamagedTreesLeaveTheRulesAndItIsSaid) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "stoker-residual-test";
  fs::create_directories(folder);
  const std::string json = R"({"format":"stoker-timing-coefficients","schema_version":[1,0],)"
                           R"("residual":"learned.trees"})";
  ASSERT_TRUE(write_file(folder / "a.json", json));
  const auto diagnostics_of = [&] {
    const auto file = CoefficientFile::load(folder);
    Machine machine;
    machine.device = gpu_of("XX100");
    Program program;
    timing_test::launch(program, elementwise(1000));
    const auto step = predict_step(program, machine, *file->for_device(machine.device));
    EXPECT_GT(step.total.count(), 0);
    return step.diagnostics.count("residual_damaged");
  };
  fs::remove(folder / "learned.trees");
  EXPECT_EQ(diagnostics_of(), 1);
  ASSERT_TRUE(write_file(folder / "learned.trees", text_of({File{}})));
  EXPECT_EQ(diagnostics_of(), 0);
  ASSERT_TRUE(write_file(folder / "learned.trees", text_of({File{}}).substr(0, 200)));
  EXPECT_EQ(diagnostics_of(), 1);
  fs::remove_all(folder);
}

/// The trees that ship give what XGBoost gave (stored with them), for the features of this build.
TEST(Residual, WhatShipsIsSound) {
  const auto folder = data_folder();
  ASSERT_TRUE(folder) << folder.error().text();
  std::array<bool, kResidualFamilies> served{};
  const auto residual = Residual::load(*folder / "coefficients" / "timing" / "residual.trees");
  ASSERT_TRUE(residual) << residual.error().text();
  for (const Forest& forest : (*residual)->forests()) {
    served[forest.family] = true;
    EXPECT_EQ(forest.fold, -1);
    EXPECT_GT(forest.roots.size(), 50U);
  }
  for (const bool each : served) EXPECT_TRUE(each);
}

/// A forward convolution of side x side on a batch, stride 1, padded so that sides stay.
Kernel convolution(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t side,
                   std::int64_t size) {
  ConvolutionShape shape{.batch = batch, .in_channels = in, .out_channels = out};
  shape.in = shape.out = {side, side, 1}, shape.kernel = {size, size, 1};
  const std::int64_t pixels = batch * side * side, filter = size * size * in * out;
  Kernel kernel;
  kernel.kernel_class = KernelClass::kConvolution;
  kernel.shape = shape;
  kernel.flops = Flops(2.0 * static_cast<double>(batch * side * side * filter));
  kernel.elements = pixels * out;
  kernel.read = Bytes(4 * (pixels * in + filter));
  kernel.written = Bytes(4 * kernel.elements);
  return kernel;
}

/// Its row says 782 us, of which most is the offset that rows of convolutions hold and steps do
/// not (docs/models/time.md, "The learned residual").
TEST(Residual, AShortConvolutionIsNotChargedWhatItsRowHoldsBesides) {
  auto coefficients = CoefficientFile::load_shipped();
  ASSERT_TRUE(coefficients) << coefficients.error().text();
  auto gpu = find_gpu("p100");
  ASSERT_TRUE(gpu) << gpu.error().text();
  const CostModel model(*gpu, *coefficients->for_device(*gpu));
  const double microseconds = model.cost_of(convolution(10, 13, 43, 42, 3)).time.count() / 1e3;
  EXPECT_GT(microseconds, 30);
  EXPECT_LT(microseconds, 200);
}

/// What trees on shapes say of chips without rows lies between the data sheet and three times the
/// rules, and only of convolutions that were measured on others.
TEST(Residual, ConvolutionsOfChipsWithoutRowsFollowTheirShape) {
  auto coefficients = CoefficientFile::load_shipped();
  ASSERT_TRUE(coefficients) << coefficients.error().text();
  for (const char* name : {"t4", "rtx2080ti", "gtx1080ti", "h100-pcie"}) {
    const auto gpu = find_gpu(name);
    ASSERT_TRUE(gpu) << gpu.error().text();
    const Coefficients served = *coefficients->for_device(*gpu);
    Coefficients rules = served;
    rules.residual = nullptr;
    const CostModel with_trees(*gpu, served), by_rules(*gpu, rules);
    for (const std::int64_t side : {7, 28, 112}) {
      const Kernel three = convolution(32, 128, 128, side, 3);
      const double time = with_trees.cost_of(three).time.count();
      EXPECT_NE(time, by_rules.cost_of(three).time.count()) << name;
      EXPECT_LT(time, 3 * by_rules.cost_of(three).time.count()) << name << " " << side;
      // Winograd multiplies 2.25 times less than the direct way with tiles of 2, 4 times with 4.
      EXPECT_GT(time, three.flops.count() / gpu->peak.fp32 * 1e9 / 4) << name << " " << side;
      const Kernel one = convolution(32, 128, 128, side, 1);
      EXPECT_EQ(with_trees.cost_of(one).time, by_rules.cost_of(one).time) << name;
    }
  }
}

TEST(Residual, MoreWorkIsHardlyEverFasterWithWhatShips) {
  auto coefficients = CoefficientFile::load_shipped();
  ASSERT_TRUE(coefficients) << coefficients.error().text();
  auto gpu = find_gpu("a100-40gb");
  ASSERT_TRUE(gpu) << gpu.error().text();
  const CostModel model(*gpu, *coefficients->for_device(*gpu));
  ASSERT_NE(model.coefficients().residual, nullptr);
  double before = 0;
  for (std::int64_t size = 64; size <= 8192; size *= 2) {
    Kernel kernel;
    kernel.kernel_class = KernelClass::kGemm;
    kernel.shape = GemmShape{1, size, size, size, false, true};
    kernel.flops = Flops(2.0 * static_cast<double>(size * size * size));
    kernel.read = Bytes(8 * size * size), kernel.written = Bytes(4 * size * size);
    const double time = model.cost_of(kernel).time.count();
    EXPECT_GT(time, 0.8 * before) << size;  // small ones are all launch
    EXPECT_GT(time, kernel.flops.count() / gpu->peak.fp32 * 1e9)
        << size;  // faster than the data sheet
    before = time;
    EXPECT_GT(model.cost_of(elementwise(size * size)).time.count(),
              8.0 * static_cast<double>(size * size) / gpu->bandwidth * 0.5e9);
  }
}

}  // namespace
}  // namespace stoker
