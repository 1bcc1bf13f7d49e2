#pragma once

#include <memory>

#include "device/cpu.h"
#include "lower/common/device_backend.h"

namespace stoker {

/// How PyTorch trains on a CPU, which it borrows.
[[nodiscard]] std::unique_ptr<const DeviceBackend> cpu_backend(const Cpu& cpu);

}  // namespace stoker
