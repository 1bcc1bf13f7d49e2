#include <gtest/gtest.h>

#include "device/calibration_data.h"
#include "device/figure_kinds.h"
#include "device/resolve/machine_file.h"

namespace stoker {
namespace {

Result<MachineFile> parsed(const std::string& text) {
  static const GpuCatalogue catalogue = *GpuCatalogue::load();
  return parse_machine_file(text, "m.toml", catalogue);
}

const char* const kWhole = R"(
name = "lab"
[cpu]
name = "Xeon"
cores = 8
simd_bits = 512
l1 = "32KiB"
l2 = "1MiB"
l3 = "35MiB"
clock_mhz = 2100
fp32_tflops = 1.5
bandwidth_gbs = 62.5
memory = "64GiB"
context_memory = "180MiB"
price_per_hour = 0.3
[host]
cores = 8
memory = "64GiB"
[calibration]
disturbed = true
[[calibration.figure]]
name = "forward_us"
threads = 1
value = 6.5
spread = 0.03
[[calibration.figure]]
name = "forward_us"
threads = 2
value = 6.75
[[calibration.figure]]
name = "context_mib"
value = 180.5
[[calibration.operator]]
kind = "elementwise"
function = "gelu_backward"
threads = 2
elements = 1048576
inputs = 2
time_us = 412
)";

TEST(MachineCpu, IsADevice) {
  const auto file = parsed(kWhole);
  ASSERT_TRUE(file.has_value()) << file.error().text();
  ASSERT_TRUE(file->device.has_value());
  const Cpu& cpu = *file->device->cpu();
  EXPECT_EQ(cpu.name, "Xeon");
  EXPECT_EQ(cpu.cores, 8);
  EXPECT_EQ(cpu.simd_bits, 512);
  EXPECT_EQ(cpu.l1, kKiB * 32);
  EXPECT_EQ(cpu.l2, kMiB);
  EXPECT_EQ(cpu.l3, kMiB * 35);
  EXPECT_DOUBLE_EQ(cpu.clock_mhz, 2100);
  EXPECT_DOUBLE_EQ(cpu.peak.fp32, 1.5e12);
  EXPECT_DOUBLE_EQ(cpu.bandwidth, 62.5e9);
  EXPECT_EQ(cpu.memory, kGiB * 64);
  EXPECT_EQ(cpu.usable_memory, kGiB * 64);
  EXPECT_EQ(*cpu.context_memory, kMiB * 180);
  EXPECT_TRUE(cpu.calibrated);
  const Calibration& c = *cpu.calibration;
  EXPECT_TRUE(c.disturbed);
  ASSERT_EQ(c.figures.size(), 3u);
  ASSERT_NE(find_figure(c, "forward_us", 2), nullptr);
  EXPECT_DOUBLE_EQ(find_figure(c, "forward_us", 2)->value, 6.75);
  EXPECT_DOUBLE_EQ(find_figure(c, "forward_us", 1)->spread, 0.03);
  EXPECT_EQ(find_figure(c, "forward_us", 4), nullptr);
  ASSERT_EQ(c.operators.size(), 1u);
  EXPECT_EQ(label_of(c.operators[0]),
            "elementwise gelu_backward elements=1048576 inputs=2 fp32 forward threads=2");
}

TEST(MachineCpu, IsWrittenAsItIsRead) {
  const auto file = parsed(kWhole);
  ASSERT_TRUE(file.has_value());
  MachineFile own = *file;
  own.calibration = calibration_toml(*file->device->facts().calibration);
  const std::string text = machine_file_text(own);
  const auto again = parsed(text);
  ASSERT_TRUE(again.has_value()) << again.error().text() << "\n" << text;
  const std::string second = machine_file_text(*again);
  const auto third = parsed(second);
  ASSERT_TRUE(third.has_value()) << third.error().text();
  EXPECT_EQ(machine_file_text(*third), second);
  EXPECT_EQ(calibration_toml(*again->device->facts().calibration), own.calibration);
  EXPECT_EQ(again->device->cpu()->l3, kMiB * 35);
  EXPECT_DOUBLE_EQ(again->device->facts().peak.fp32, 1.5e12);
  EXPECT_EQ(text.find("[gpu]"), std::string::npos);
  EXPECT_EQ(text.find("[link]"), std::string::npos);
}

TEST(MachineCpu, PeakFollowsFromClockAndWidth) {
  const auto file = parsed(
      "[cpu]\nname = \"X\"\ncores = 4\nsimd_bits = 256\nclock_mhz = 3000\nbandwidth_gbs = 20\n"
      "memory = \"8G\"\n");
  ASSERT_TRUE(file.has_value()) << file.error().text();
  // 4 cores, 8 lanes, 2 units of 2 FLOP.
  EXPECT_DOUBLE_EQ(file->device->facts().peak.fp32, 4 * 3e9 * 8 * 2 * 2);
  EXPECT_FALSE(file->device->facts().calibrated);
  EXPECT_FALSE(file->device->facts().context_memory.has_value());
}

TEST(MachineCpu, AFigureIsReplacedByItsNameAndThreads) {
  Calibration c;
  set_figure(c, {.name = "fault_us", .threads = 1, .value = 0.2});
  set_figure(c, {.name = "fault_us", .threads = 2, .value = 0.3});
  set_figure(c, {.name = "fault_us", .threads = 1, .value = 0.4});
  ASSERT_EQ(c.figures.size(), 2u);
  EXPECT_DOUBLE_EQ(find_figure(c, "fault_us", 1)->value, 0.4);
}

/// Every name that is listed can be written and read.
TEST(MachineCpu, EveryFigureHasBoundsThatHold) {
  for (const FigureKind& kind : figure_kinds()) {
    Calibration c;
    c.figures.push_back({.name = std::string(kind.name), .value = kind.range.most});
    EXPECT_TRUE(parsed("[gpu]\nbase = \"t4\"\n" + calibration_toml(c)).has_value()) << kind.name;
    c.figures[0].value = 2 * kind.range.most;
    EXPECT_FALSE(parsed("[gpu]\nbase = \"t4\"\n" + calibration_toml(c)).has_value()) << kind.name;
    EXPECT_FALSE(kind.what.empty());
  }
}

TEST(MachineCpu, RefusesWithPlaceAndCure) {
  const std::string cpu =
      "[cpu]\nname = \"X\"\ncores = 4\nfp32_tflops = 1\nbandwidth_gbs = 20\nmemory = \"8G\"\n";
  ASSERT_TRUE(parsed(cpu).has_value());
  struct Refusal {
    std::string text, where, says;
  };
  const std::vector<Refusal> refusals{
      {cpu + "[gpu]\nbase = \"t4\"\n", "m.toml:7, gpu", "one device: leave one of them out"},
      {"[gpu]\nbase = \"t4\"\n" + cpu, "m.toml:3, cpu", "stands beside [gpu]"},
      {"nodes = 2\n" + cpu, "m.toml:1, nodes", "not modelled"},
      {cpu + "[link]\npcie_gbs = 12\n", "m.toml:8, [link] pcie_gbs", "belongs to a GPU"},
      {"[cpu]\nname = \"X\"\ncores = 4\n", "m.toml:1, [cpu]", "lacks memory"},
      {"[cpu]\nname = \"X\"\ncores = 4\nmemory = \"8G\"\nbandwidth_gbs = 3\n", "m.toml:1, [cpu]",
       "lacks fp32_tflops"},
      {cpu + "simd_bits = 300\n", "m.toml:7, [cpu] simd_bits", "power of two"},
      {cpu + "core = 3\n", "m.toml:7, [cpu] core", "did you mean cores?"},
      {cpu + "context_memory = \"9G\"\n", "m.toml:7, [cpu] context_memory", "leaves nothing"},
      {cpu + "l1 = \"2M\"\nl2 = \"1M\"\n", "m.toml:7, [cpu] l1", "exceeds the second level's"},
      {cpu + "sm_count = 4\n", "m.toml:7, [cpu] sm_count", "not known here"},
      {"[gpu]\nbase = \"t4\"\nvendor = \"CPU\"\n", "m.toml:3, [gpu] vendor", "by [cpu]"},
      {"[calibration]\ndisturbed = true\n", "m.toml:1, calibration", "no [gpu] or [cpu]"},
      {cpu + "[[calibration.figure]]\nname = \"fault\"\nvalue = 1\n",
       "m.toml:8, [calibration.figure] name", "did you mean fault_us?"},
      {cpu + "[[calibration.figure]]\nname = \"fault_us\"\n", "m.toml:7, [calibration.figure]",
       "lacks value"},
      {cpu + "[[calibration.figure]]\nname = \"fault_us\"\nvalue = -1\n",
       "m.toml:9, [calibration.figure] value", "cannot be"},
      {cpu + "[[calibration.figure]]\nname = \"context_mib\"\nthreads = 2\nvalue = 1\n",
       "m.toml:9, [calibration.figure] threads", "does not depend on threads"},
      {cpu + "[[calibration.figure]]\nname = \"fault_us\"\nthreads = 2\nvalue = 1\n"
             "[[calibration.figure]]\nname = \"fault_us\"\nthreads = 2\nvalue = 1\n",
       "m.toml:12, [calibration.figure] name", "already for 2 threads"},
      {cpu + "[[calibration.operator]]\nkind = \"gemm\"\nfunction = \"add mm\"\ntime_us = 2\n",
       "m.toml:9, [calibration.operator] function", "without namespace"},
      {cpu + "[[calibration.operator]]\nkind = \"gemm\"\nthreads = -1\ntime_us = 2\n",
       "m.toml:9, [calibration.operator] threads", "cannot be"},
  };
  for (const Refusal& refusal : refusals) {
    const auto file = parsed(refusal.text);
    ASSERT_FALSE(file.has_value()) << refusal.text;
    EXPECT_EQ(file.error().where, refusal.where) << refusal.text;
    EXPECT_NE(file.error().message.find(refusal.says), std::string::npos)
        << refusal.text << file.error().message;
  }
}

}  // namespace
}  // namespace stoker
