#pragma once

#include <memory>

#include "device/gpu.h"
#include "lower/common/device_backend.h"

namespace stoker {

/// How PyTorch trains on a GPU, which it borrows.
[[nodiscard]] std::unique_ptr<const DeviceBackend> gpu_backend(const Gpu& gpu);

}  // namespace stoker
