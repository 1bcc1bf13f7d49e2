#include "system/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

/// Opens the stand-in with a script (testdata/fake_nvml.cc).
std::unique_ptr<Nvml> played(const std::string& script, std::string* why = nullptr) {
  const auto path =
      std::filesystem::temp_directory_path() / ("nvml_test." + std::to_string(::getpid()));
  std::ofstream(path) << script;
  ::setenv("FAKE_NVML", path.c_str(), 1);
  return Nvml::open(why, FAKE_NVML_LIBRARY);
}

TEST(Nvml, ReadsWhatTheDriverTells) {
  const auto nvml = played(
      "0 0 name NVIDIA-H100\n0 0 busy 97\n0 0 memory_percent 40\n0 0 used 1000\n0 0 total 8000\n"
      "0 0 power 300000\n0 0 power_limit 700000\n0 0 clock 1500\n0 0 clock_most 1980\n"
      "0 0 temperature 61\n0 0 throttle 4\n0 0 receive 12000\n0 0 send 300\n0 0 pid 4242\n"
      "0 0 sm 55.5\n0 0 tensor 20\n0 0 dram 33.3\n1 0 busy 12\n");
  ASSERT_NE(nvml, nullptr);
  ASSERT_EQ(nvml->size(), 1U);
  EXPECT_EQ(nvml->name(0), "NVIDIA-H100");
  EXPECT_FALSE(nvml->divided(0));
  const GpuReading r = nvml->read(0, Nvml::Depth::kRare);
  EXPECT_EQ(r.busy_percent, 97);
  EXPECT_EQ(r.memory_percent, 40);
  EXPECT_EQ(r.memory_used, 1000);
  EXPECT_EQ(r.memory_total, 8000);
  EXPECT_EQ(r.power_mw, 300000);
  EXPECT_EQ(r.power_limit_mw, 700000);
  EXPECT_EQ(r.clock_mhz, 1500);
  EXPECT_EQ(r.clock_most_mhz, 1980);
  EXPECT_EQ(r.temperature, 61);
  EXPECT_EQ(r.throttle_reasons, kPowerCap);
  EXPECT_EQ(r.receive_kb_s, 12000);
  EXPECT_EQ(r.send_kb_s, 300);
  ASSERT_EQ(r.processes.size(), 1U);
  EXPECT_EQ(r.processes[0].pid, 4242);
  EXPECT_EQ(r.processes[0].bytes, 1 << 30);
  EXPECT_EQ(r.sm_permille, -1);  // a difference of two samples
  const GpuReading later = nvml->read(0, Nvml::Depth::kUsual);
  EXPECT_EQ(later.busy_percent, 12);
  EXPECT_EQ(later.receive_kb_s, -1);
  EXPECT_EQ(later.sm_permille, 555);
  EXPECT_EQ(later.tensor_permille, 200);
  EXPECT_EQ(later.dram_permille, 333);
}

TEST(Nvml, WhatIsNotSupportedIsNotTold) {
  const auto nvml = played("0 0 busy NA\n0 0 mig 1\n0 1 busy 5\n");
  ASSERT_NE(nvml, nullptr);
  ASSERT_EQ(nvml->size(), 2U);
  EXPECT_TRUE(nvml->divided(0));
  EXPECT_EQ(nvml->name(0), "");
  const GpuReading r = nvml->read(0, Nvml::Depth::kRare);
  for (const std::int64_t value :
       {r.busy_percent, r.memory_used, r.power_mw, r.power_limit_mw, r.clock_mhz, r.temperature,
        r.throttle_reasons, r.receive_kb_s, r.sm_permille})
    EXPECT_EQ(value, -1);
  EXPECT_EQ(nvml->read(1, Nvml::Depth::kUsual).busy_percent, 5);
}

TEST(Nvml, AMachineWithoutADriverLacksNothing) {
  std::string why;
  EXPECT_EQ(Nvml::open(&why, "libthere-is-no-such-library.so.1"), nullptr);
  EXPECT_EQ(why, "no NVIDIA driver library (libthere-is-no-such-library.so.1)");
  EXPECT_EQ(played("", &why), nullptr);
  EXPECT_EQ(why, "NVIDIA's driver library shows no GPU to this process");
  EXPECT_EQ(played("0 0 init fail\n", &why), nullptr);
  EXPECT_EQ(why, "NVIDIA's driver library does not start; see nvidia-smi");
  EXPECT_EQ(Nvml::open(&why, "libm.so.6"), nullptr);  // a library of another kind
  EXPECT_EQ(why, "NVIDIA's driver library does not start; see nvidia-smi");
}

}  // namespace
}  // namespace stoker
