#pragma once

#include "base/diagnostics.h"
#include "lower/common/device_backend.h"
#include "step/step.h"

namespace stoker {

/// The diagnostic of a step that is eager where the script compiles it; its bands reach further
/// down (forecast/lost_compiler.h).
inline constexpr const char* kEagerForCompiled = "eager_for_compiled";

/// What a capture could not do faithfully for this device, as diagnostics with advice.
void note_capture(const Step& step, const DeviceBackend& device, Diagnostics& diagnostics);

}  // namespace stoker
