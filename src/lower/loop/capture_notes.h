#pragma once

#include "base/diagnostics.h"
#include "lower/common/device_backend.h"
#include "step/step.h"

namespace stoker {

/// What a capture could not do faithfully for this device, as diagnostics with advice.
void note_capture(const Step& step, const DeviceBackend& device, Diagnostics& diagnostics);

}  // namespace stoker
