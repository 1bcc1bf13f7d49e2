#include "lower/common/device_backend.h"

#include "lower/cpu/cpu_backend.h"
#include "lower/gpu/gpu_backend.h"

namespace stoker {

std::unique_ptr<const DeviceBackend> backend_of(const Device& device) {
  using Backend = std::unique_ptr<const DeviceBackend>;
  return device.visit([](const Gpu& gpu) -> Backend { return std::make_unique<GpuBackend>(gpu); },
                      [](const Cpu& cpu) -> Backend { return std::make_unique<CpuBackend>(cpu); });
}

}  // namespace stoker
