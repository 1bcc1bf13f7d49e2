#pragma once

#include "base/diagnostics.h"
#include "lower/common/device_backend.h"
#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

/// Warns where a step meets what certain versions or sizes are known to do much worse, and this
/// forecast does not count (docs/models/known-cliffs.md has the table with its sources).
void note_known_cliffs(const Step& step, const Sizes& sizes, const DeviceBackend& device,
                       Diagnostics& diagnostics);

}  // namespace stoker
