#pragma once

#include <string>

#include "input/pipeline/pipeline_probe.h"

namespace stoker {

/// What `stoker probe FILE.py:FUNCTION` prints: the rate of one worker, where the time of a sample
/// goes, what batches and workers cost, what is odd, and what to do next. `profile` stands in for
/// what the probe lacks.
[[nodiscard]] std::string pipeline_probe_text(const PipelineProbe& probe,
                                              const LoaderProfile& profile);

}  // namespace stoker
