#pragma once

#include "base/diagnostics.h"
#include "step/step.h"

namespace stoker {

/// What a capture could not do faithfully, as diagnostics with advice.
void note_capture(const Step& step, Diagnostics& diagnostics);

}  // namespace stoker
