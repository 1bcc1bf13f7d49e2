#include "system/gpu_devices.h"

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

constexpr const char* kDriver = "/proc/driver/nvidia/";
constexpr const char* kBus = "/sys/bus/pci/devices/";

/// The name of a vendor of GPUs by its number on the PCI bus (pci-ids); empty: of others.
std::string vendor_of(std::string_view number) {
  if (number == "0x10de") return "nvidia";
  return number == "0x1002" ? "amd" : "";
}

/// PCI classes of what computes: VGA, 3D and other display controllers, processing accelerators.
bool is_gpu_class(std::string_view number) {
  return number.starts_with("0x0300") || number.starts_with("0x0302") ||
         number.starts_with("0x0380") || number.starts_with("0x1200");
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 ..."
std::string driver_version(const std::string& text) {
  const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
  for (const std::string& word : split(first, ' ')) {
    const bool digits = !word.empty() && word.find_first_not_of("0123456789.") == std::string::npos;
    if (digits && word.find('.') != std::string::npos) return word;
  }
  return {};
}

}  // namespace

GpuDevices gpu_devices_from(const SystemFiles& files, const SystemFolders& folders) {
  GpuDevices found;
  found.nvidia_driver = driver_version(files(std::string(kDriver) + "version").value_or(""));
  const std::string listed = std::string(kDriver) + "gpus/";
  for (const std::string& bus_id : folders(listed)) {
    const std::string text = files(listed + bus_id + "/information").value_or("");
    found.devices.push_back({.name = std::string(value_of(text, "Model")),
                             .vendor = "nvidia",
                             .bus_id = bus_id,
                             .uuid = std::string(value_of(text, "GPU UUID"))});
  }
  for (const std::string& bus_id : folders(kBus)) {
    const auto fact = [&](const char* name) {
      return files(kBus + bus_id + "/" + name).value_or("");
    };
    const std::string vendor = vendor_of(trimmed(fact("vendor")));
    const bool known = std::ranges::any_of(
        found.devices, [&](const GpuDevice& device) { return device.bus_id == bus_id; });
    if (vendor.empty() || known || !is_gpu_class(trimmed(fact("class")))) continue;
    found.devices.push_back({.name = {}, .vendor = vendor, .bus_id = bus_id, .uuid = {}});
  }
  std::ranges::sort(found.devices, {}, &GpuDevice::bus_id);
  return found;
}

}  // namespace stoker
