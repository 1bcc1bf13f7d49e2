#include "system/gpu_devices.h"

#include <gtest/gtest.h>

#include "system/test_files.h"

namespace stoker {
namespace {

using test_system::files_of;
using test_system::folders_of;

TEST(GpuDevices, AreNamedByTheDriverAndFoundOnTheBus) {
  const std::string bus = "/sys/bus/pci/devices/";
  const GpuDevices found = gpu_devices_from(
      files_of(
          {{"/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC 12.2.0\n"},
           {"/proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 18\nGPU UUID: \t GPU-1234\n"},
           {bus + "0000:3b:00.0/vendor", "0x10de\n"},
           {bus + "0000:3b:00.0/class", "0x030200\n"},
           {bus + "0000:1a:00.0/vendor", "0x1002\n"},
           {bus + "0000:1a:00.0/class", "0x120000\n"},
           {bus + "0000:3b:00.1/vendor", "0x10de\n"},
           {bus + "0000:3b:00.1/class", "0x040300\n"},
           {bus + "0000:00:02.0/vendor", "0x8086\n"},
           {bus + "0000:00:02.0/class", "0x030000\n"}}),
      folders_of({{"/proc/driver/nvidia/gpus/", {"0000:3b:00.0"}},
                  {bus, {"0000:00:02.0", "0000:1a:00.0", "0000:3b:00.0", "0000:3b:00.1"}}}));
  EXPECT_EQ(found.nvidia_driver, "550.54.15");
  ASSERT_EQ(found.devices.size(), 2U) << "neither the card's sound nor another vendor's screen";
  EXPECT_EQ(found.devices[0].vendor, "amd");
  EXPECT_EQ(found.devices[0].bus_id, "0000:1a:00.0");
  EXPECT_EQ(found.devices[0].name, "");
  EXPECT_EQ(found.devices[1].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(found.devices[1].uuid, "GPU-1234");
}

TEST(GpuDevices, OfAMachineWithoutAnyAreNone) {
  const GpuDevices found = gpu_devices_from(files_of({}), folders_of({}));
  EXPECT_TRUE(found.devices.empty());
  EXPECT_EQ(found.nvidia_driver, "");
}

}  // namespace
}  // namespace stoker
