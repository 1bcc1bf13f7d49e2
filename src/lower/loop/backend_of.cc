#include "lower/loop/backend_of.h"

#include "lower/cpu/cpu_backend.h"
#include "lower/gpu/gpu_backend.h"

namespace stoker {

std::unique_ptr<const DeviceBackend> backend_of(const Device& device) {
  return device.visit([](const Gpu& gpu) { return gpu_backend(gpu); },
                      [](const Cpu& cpu) { return cpu_backend(cpu); });
}

}  // namespace stoker
