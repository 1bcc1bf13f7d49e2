#include "device/host/this_cpu.h"

#include <gtest/gtest.h>

#include <map>

#include "device/calibration_data.h"
#include "device/host/host_speed.h"

namespace stoker {
namespace {

SystemFiles from(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

Host host(double cores) {
  Host h;
  h.cores = cores;
  h.memory = kGiB * 16;
  return h;
}

const std::string kCache = "/sys/devices/system/cpu/cpu0/cache/index";

TEST(ThisCpu, ReadsAnX86Server) {
  const auto cpu = cpu_from(
      from({{"/proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.10GHz\ncpu MHz\t\t: "
             "2900.1\nsiblings\t: 8\ncpu cores\t: 4\nflags\t\t: fpu sse2 avx avx2 avx512f\n\n"
             "processor\t: 1\nmodel name\t: other\n"},
            {kCache + "0/level", "1\n"},
            {kCache + "0/type", "Data\n"},
            {kCache + "0/size", "32K\n"},
            {kCache + "1/level", "1\n"},
            {kCache + "1/type", "Instruction\n"},
            {kCache + "1/size", "64K\n"},
            {kCache + "2/level", "2\n"},
            {kCache + "2/size", "1024K\n"},
            {kCache + "3/level", "3\n"},
            {kCache + "3/size", "30720K\n"},
            {kCache + "3/shared_cpu_list", "0-3\n"}}),
      host(8));
  ASSERT_TRUE(cpu.has_value()) << cpu.error().text();
  EXPECT_EQ(cpu->name, "Intel(R) Xeon(R) Processor @ 2.10GHz");
  EXPECT_EQ(cpu->cores, 8);
  EXPECT_EQ(cpu->simd_bits, 512);
  EXPECT_DOUBLE_EQ(cpu->clock_mhz, 2100);
  EXPECT_EQ(cpu->l1, kKiB * 32);
  EXPECT_EQ(cpu->l2, kMiB);
  EXPECT_EQ(cpu->l3, kMiB * 60);  // two of them
  // Four cores' units of 16 lanes; their second threads have none of their own.
  EXPECT_DOUBLE_EQ(cpu->peak.fp32, 4 * 2.1e9 * 16 * 2 * 2);
  EXPECT_EQ(cpu->memory, kGiB * 16);
  EXPECT_NE(cpu->assumption.find("memory bandwidth 80 GB/s a guess"), std::string::npos)
      << cpu->assumption;
}

TEST(ThisCpu, ReadsAnArmServer) {
  const auto cpu = cpu_from(
      from({{"/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd sve\nCPU part\t: 0xd0c\n"},
            {"/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "2600000\n"}}),
      host(2));
  ASSERT_TRUE(cpu.has_value());
  EXPECT_EQ(cpu->name, "CPU");
  EXPECT_EQ(cpu->simd_bits, 128);
  EXPECT_DOUBLE_EQ(cpu->clock_mhz, 2600);
}

/// Containers hide files: what is left is guessed and said, and unknown memory is refused.
TEST(ThisCpu, SaysWhatItGuesses) {
  const auto cpu = cpu_from(from({}), host(0.5));
  ASSERT_TRUE(cpu.has_value());
  EXPECT_EQ(cpu->cores, 1);
  EXPECT_GT(cpu->peak.fp32, 0);
  EXPECT_NE(cpu->assumption.find("clock 2.5 GHz"), std::string::npos) << cpu->assumption;
  Host blind = host(4);
  blind.memory = Bytes{};
  EXPECT_FALSE(cpu_from(from({}), blind).has_value());
  const auto odd = cpu_from(from({{"/proc/cpuinfo", "model name\t: X @ nanGHz\nflags\n:::\n"},
                                  {kCache + "0/level", "9"},
                                  {kCache + "1/level", "1"},
                                  {kCache + "1/size", "-5K"}}),
                            host(1));
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->l1, Bytes{});
}

TEST(ThisCpu, HostOfACpuIsItself) {
  const auto cpu = cpu_from(from({}), host(6));
  ASSERT_TRUE(cpu.has_value());
  EXPECT_DOUBLE_EQ(host_of_cpu(*cpu).cores, 6);
  EXPECT_EQ(host_of_cpu(*cpu).memory, kGiB * 16);
  EXPECT_EQ(host_of_cpu(*cpu).dispatch_speed, 0) << "nobody knows a processor without a name";
}

TEST(ThisCpu, AHostsDispatchIsWhatItsCalibrationMeasuredElseWhatItsNameSays) {
  Cpu cpu;
  cpu.name = "AMD EPYC 7763 64-Core Processor";
  EXPECT_DOUBLE_EQ(host_of_cpu(cpu).dispatch_speed, host_speed("EPYC 7763")->speed);
  Calibration calibration;
  set_figure(calibration, {"forward_us", 0, 2 * kReferenceForwardUs, 0.02});
  cpu.calibration = std::make_shared<const Calibration>(calibration);
  EXPECT_DOUBLE_EQ(host_of_cpu(cpu).dispatch_speed, 0.5);
  EXPECT_LT(host_of_cpu(cpu).dispatch_spread, host_speed("EPYC 7763")->spread);
}

}  // namespace
}  // namespace stoker
