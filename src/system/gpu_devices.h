#pragma once

#include <string>
#include <vector>

#include "system/system_files.h"

namespace stoker {

/// A GPU that this machine has, as far as files tell; what they do not tell is empty.
struct GpuDevice {
  std::string name{};    ///< "NVIDIA A100-SXM4-40GB": only NVIDIA's driver writes it
  std::string vendor{};  ///< "nvidia", "amd"
  std::string bus_id{};  ///< "0000:3b:00.0"
  std::string uuid{};    ///< "GPU-...", by NVIDIA's driver
};

struct GpuDevices {
  std::vector<GpuDevice> devices{};  ///< by bus id
  std::string nvidia_driver{};       ///< "550.54.15"; empty: no such driver is loaded
};

/// The GPUs that NVIDIA's driver lists under /proc/driver/nvidia and those on the PCI bus that it
/// does not list (no driver, another vendor's). Memory, clocks and load are the driver library's to
/// tell.
[[nodiscard]] GpuDevices gpu_devices_from(const SystemFiles& files, const SystemFolders& folders);

}  // namespace stoker
