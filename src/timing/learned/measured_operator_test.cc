#include "timing/learned/measured_operator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "operators/measured_kind.h"
#include "timing/common/testing.h"

namespace stoker {
namespace {

/// Round rates, so that least times are worked by hand.
Gpu gpu() {
  Gpu g = timing_test::ampere_gpu();
  g.peak = {20e12, 80e12, 160e12, 320e12, 320e12};
  g.bandwidth = 1e12;
  return g;
}

MeasuredOperator row(std::string kind, std::map<std::string, std::int64_t> sizes,
                     std::string pass = "forward", std::string precision = "fp32") {
  MeasuredOperator m;
  m.kind = std::move(kind), m.sizes = std::move(sizes);
  m.pass = std::move(pass), m.precision = std::move(precision);
  m.time_us = 1e6;
  m.where = "lab.toml:7";
  return m;
}

/// FLOPs and words by hand.
TEST(MeasuredOperator, WorkByHand) {
  const auto gemm = kernel_of(row("gemm", {{"m", 8}, {"n", 4}, {"k", 2}, {"bias", 1}}), gpu());
  ASSERT_TRUE(gemm) << gemm.error().text();
  EXPECT_DOUBLE_EQ(gemm->flops.count(), 128);
  EXPECT_EQ(gemm->read, Bytes(4 * (16 + 8 + 4)));
  EXPECT_EQ(gemm->written, Bytes(4 * 32));

  const auto conv = kernel_of(row("convolution", {{"batch", 2},
                                                  {"in_channels", 4},
                                                  {"out_channels", 8},
                                                  {"height", 6},
                                                  {"width", 5},
                                                  {"kernel", 3},
                                                  {"padding", 1}}),
                              gpu());
  ASSERT_TRUE(conv) << conv.error().text();
  EXPECT_DOUBLE_EQ(conv->flops.count(), 2.0 * 2 * 8 * 30 * 4 * 9);
  EXPECT_EQ(conv->read, Bytes(4 * (2 * 4 * 30 + 8 * 4 * 9)));
  EXPECT_EQ(conv->written, Bytes(4 * 2 * 8 * 30));
  const auto weight = kernel_of(row("convolution",
                                    {{"batch", 2},
                                     {"in_channels", 4},
                                     {"out_channels", 8},
                                     {"height", 6},
                                     {"width", 5},
                                     {"kernel", 3},
                                     {"padding", 1}},
                                    "backward_weight"),
                                gpu());
  EXPECT_EQ(weight->written, Bytes(4 * 8 * 4 * 9));
  EXPECT_EQ(weight->read + weight->written, conv->read + conv->written);

  const auto attention = kernel_of(
      row("attention",
          {{"batch", 2}, {"heads", 3}, {"query_length", 5}, {"key_length", 7}, {"head_dim", 8}},
          "forward", "fp16"),
      gpu());
  ASSERT_TRUE(attention) << attention.error().text();
  EXPECT_DOUBLE_EQ(attention->flops.count(), 4.0 * 6 * 5 * 7 * 8);
  EXPECT_EQ(attention->read, Bytes(2 * 6 * 8 * (5 + 2 * 7)));
  EXPECT_EQ(attention->written, Bytes(2 * 6 * 8 * 5));

  const auto softmax = kernel_of(row("softmax", {{"rows", 10}, {"width", 9}}, "backward"), gpu());
  EXPECT_EQ(softmax->read + softmax->written, Bytes(6 * 4 * 90));
  const auto add = kernel_of(row("elementwise", {{"elements", 10}, {"inputs", 2}}), gpu());
  EXPECT_EQ(add->read, Bytes(80));
}

TEST(MeasuredOperator, EveryKindHasAKernelOfItsClass) {
  for (const MeasuredKind& kind : measured_kinds()) {
    std::map<std::string, std::int64_t> sizes;
    for (const MeasuredSize& size : kind.sizes) {
      if (size.use == SizeUse::kNeeded) sizes[std::string(size.name)] = 64;
      if (size.name == "kernel") sizes["kernel"] = 3;
    }
    const auto kernel = kernel_of(row(std::string(kind.name), sizes), gpu());
    ASSERT_TRUE(kernel) << kind.name << ": " << kernel.error().text();
    EXPECT_EQ(kernel->kernel_class, kind.kernel_class) << kind.name;
    EXPECT_GT((kernel->read + kernel->written).count(), 0) << kind.name;
  }
}

TEST(MeasuredOperator, RefusesWhatItCannotMeanByRow) {
  const auto text = [](const MeasuredOperator& m) {
    const auto kernel = kernel_of(m, gpu());
    return kernel ? std::string() : kernel.error().text();
  };
  EXPECT_EQ(text(row("gem", {})),
            "lab.toml:7: no kind of operator is called \"gem\"; did you mean gemm?");
  EXPECT_EQ(text(row("gemm", {{"m", 1}, {"n", 1}})), "lab.toml:7: gemm needs k of at least 1");
  EXPECT_EQ(text(row("gemm", {{"m", 0}, {"n", 1}, {"k", 1}})),
            "lab.toml:7: gemm needs m of at least 1");
  EXPECT_NE(text(row("softmax", {{"rows", 1}, {"widht", 1}})).find("did you mean width?"),
            std::string::npos);
  EXPECT_NE(text(row("softmax", {{"rows", -1}, {"width", 1}})).find("cannot be"),
            std::string::npos);
  EXPECT_NE(text(row("copy", {{"elements", 1}}, "sideways")).find("no pass"), std::string::npos);
  EXPECT_NE(text(row("copy", {{"elements", 1}}, "forward", "fp7")).find("no precision"),
            std::string::npos);
  EXPECT_NE(text(row("convolution", {{"batch", 1},
                                     {"in_channels", 6},
                                     {"out_channels", 6},
                                     {"groups", 4},
                                     {"height", 8},
                                     {"width", 8},
                                     {"kernel", 3}}))
                .find("groups"),
            std::string::npos);
  EXPECT_NE(text(row("convolution", {{"batch", 1},
                                     {"in_channels", 6},
                                     {"out_channels", 6},
                                     {"height", 2},
                                     {"width", 8},
                                     {"kernel", 3}}))
                .find("larger"),
            std::string::npos);
}

TEST(MeasuredOperator, PhysicsIsCheckedWithItsNoise) {
  // 2·4096³ FLOPs at 20 TFLOP/s are 6.87 ms; 15 % of headroom leave 5.98.
  MeasuredOperator gemm = row("gemm", {{"m", 4096}, {"n", 4096}, {"k", 4096}});
  const auto kernel = kernel_of(gemm, gpu());
  const auto verdict = [&](double us, double spread) {
    gemm.time_us = us, gemm.spread = spread;
    return check_physics(gemm, *kernel, gpu(), 10_us);
  };
  EXPECT_TRUE(verdict(6100, 0));
  EXPECT_TRUE(verdict(5500, 0.1));
  ASSERT_FALSE(verdict(5500, 0));
  const std::string text = verdict(1500, 0).error().text();
  EXPECT_NE(text.find("lab.toml:7: gemm k=4096 m=4096 n=4096 fp32 forward took 1500 us"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("tf32"), std::string::npos) << text;
  EXPECT_FALSE(verdict(0, 0));
  EXPECT_FALSE(verdict(-1, 0));
  EXPECT_FALSE(verdict(HUGE_VAL, 0));
}

TEST(MeasuredOperator, HalfPrecisionMayHaveInstructionsOfItsOwnOnACpu) {
  Cpu cpu;
  cpu.cores = 2;
  cpu.peak.fp32 = 1e12;
  // 2·1024³ FLOPs at 1 TFLOP/s are 2.15 ms, and a core may boost to twice the clock: 1.07.
  const std::map<std::string, std::int64_t> sizes{{"m", 1024}, {"n", 1024}, {"k", 1024}};
  const auto verdict = [&](const std::string& precision, double us) {
    MeasuredOperator gemm = row("gemm", sizes, "forward", precision);
    gemm.time_us = us;
    return check_physics(gemm, *kernel_of(gemm, cpu), cpu).has_value();
  };
  EXPECT_TRUE(verdict("fp32", 1100));
  EXPECT_FALSE(verdict("fp32", 1000));
  EXPECT_TRUE(verdict("bf16", 100));  // AMX: 16 times as much in a clock
  EXPECT_FALSE(verdict("bf16", 60));
}

TEST(MeasuredOperator, WarmOperandsMayComeFromTheCache) {
  MeasuredOperator copy = row("copy", {{"elements", 1 << 20}});  // 8 MiB at 1 TB/s: 8.1 us
  const auto kernel = kernel_of(copy, gpu());
  copy.time_us = 4;
  EXPECT_TRUE(check_physics(copy, *kernel, gpu(), 0_us));
  copy.warm = false;
  EXPECT_FALSE(check_physics(copy, *kernel, gpu(), 0_us));
  copy.time_us = 5;
  EXPECT_FALSE(check_physics(copy, *kernel, gpu(), 10_us));  // below the launch floor
}

}  // namespace
}  // namespace stoker
