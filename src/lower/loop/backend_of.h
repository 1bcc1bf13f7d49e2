#pragma once

#include <memory>

#include "device/device.h"
#include "lower/common/device_backend.h"

namespace stoker {

/// The back end of a device, which it borrows.
[[nodiscard]] std::unique_ptr<const DeviceBackend> backend_of(const Device& device);

}  // namespace stoker
