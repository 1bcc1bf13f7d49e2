#include "device/device.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

#include "device/calibration_data.h"

namespace stoker {
namespace {

template <class T>
concept HasMultiprocessors = requires(const T& device) {
  device.sm_count;
};
template <class T>
concept HasLinks = requires(const T& device) {
  device.link_bandwidth;
};
template <class T>
concept HasCores = requires(const T& device) {
  device.cores;
};

// What only one kind has cannot be asked of the other, nor of a device before its kind is known.
static_assert(HasMultiprocessors<Gpu> && HasLinks<Gpu> && !HasCores<Gpu>);
static_assert(!HasMultiprocessors<Cpu> && !HasLinks<Cpu> && HasCores<Cpu>);
static_assert(!HasMultiprocessors<Device> && !HasLinks<Device> && !HasCores<Device>);
static_assert(!std::is_convertible_v<Device, Gpu> && !std::is_convertible_v<Device, Cpu>);

Gpu some_gpu() {
  Gpu gpu;
  gpu.name = "card";
  gpu.sm_count = 80;
  gpu.memory = kGiB * 16;
  gpu.usable_memory = kMiB * 16160;
  gpu.peak.fp32 = 15.7e12;
  return gpu;
}

Cpu some_cpu() {
  Cpu cpu;
  cpu.name = "processor";
  cpu.cores = 8;
  cpu.memory = cpu.usable_memory = kGiB * 64;
  cpu.peak.fp32 = 1.5e12;
  return cpu;
}

std::string kind_of(const Device& device) {
  return device.visit([](const Gpu& gpu) { return std::to_string(gpu.sm_count) + " SMs"; },
                      [](const Cpu& cpu) { return std::to_string(cpu.cores) + " cores"; });
}

TEST(Device, FactsOfBothKindsAreReadAlike) {
  const Device gpu = some_gpu(), cpu = some_cpu();
  EXPECT_EQ(gpu->name, "card");
  EXPECT_EQ(cpu->name, "processor");
  EXPECT_EQ(gpu->usable_memory, kMiB * 16160);
  EXPECT_EQ(cpu->usable_memory, kGiB * 64);
  EXPECT_DOUBLE_EQ(gpu->peak.fp32, 15.7e12);
  EXPECT_DOUBLE_EQ(cpu.facts().peak.fp32, 1.5e12);
}

TEST(Device, AVisitAnswersForItsKind) {
  EXPECT_EQ(kind_of(some_gpu()), "80 SMs");
  EXPECT_EQ(kind_of(some_cpu()), "8 cores");
  EXPECT_EQ(kind_of(Device()), "0 SMs");  // a GPU of which nothing is known
}

TEST(Device, TheOtherKindIsNull) {
  const Device gpu = some_gpu(), cpu = some_cpu();
  ASSERT_NE(gpu.gpu(), nullptr);
  EXPECT_EQ(gpu.cpu(), nullptr);
  ASSERT_NE(cpu.cpu(), nullptr);
  EXPECT_EQ(cpu.gpu(), nullptr);
  EXPECT_EQ(gpu.gpu()->sm_count, 80);
  EXPECT_EQ(cpu.cpu()->cores, 8);
}

TEST(Device, WhatIsWrittenThroughTheFactsIsInTheDevice) {
  Device device = some_cpu();
  const Device before = device;
  device->context_memory = kMiB * 180;
  device->calibration = std::make_shared<const Calibration>();
  device->calibrated = true;
  EXPECT_EQ(device.cpu()->context_memory, kMiB * 180);
  EXPECT_NE(device.cpu()->calibration, nullptr);
  EXPECT_FALSE(before->context_memory.has_value());
  EXPECT_FALSE(before->calibrated);
}

TEST(Device, MayBecomeTheOtherKind) {
  Device device = some_gpu();
  device = some_cpu();
  EXPECT_EQ(kind_of(device), "8 cores");
  EXPECT_EQ(device->name, "processor");
}

}  // namespace
}  // namespace stoker
