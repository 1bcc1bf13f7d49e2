#pragma once

#include "input/pipeline/pipeline_probe.h"

namespace stoker {

/// Whether samples run threads of their own: a worker of the real loader takes more CPU time than
/// there is time.
[[nodiscard]] bool runs_threads(const PipelineProbe& probe);

/// Sets the cost beside the real DataLoader of one worker that the probe ran, which shows what its
/// parts miss. Returns how far the forecast of that very loader lies from what it took all the
/// same, as a factor less 1; 0 without such a run.
[[nodiscard]] double match_one_worker(const PipelineProbe& probe, SampleCost& cost);

}  // namespace stoker
