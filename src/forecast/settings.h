#pragma once

#include <cstdint>

#include "forecast/forecast.h"

namespace stoker {

// What of a scenario follows from a choice that a search makes. Searches set precision and batch
// through these, never directly.

/// Runs `step` in `precision`. Unless the user or the captured function said otherwise, training
/// in amp-fp16 scales its gradients (torch.amp.GradScaler), and nothing else does.
void set_precision(Scenario& scenario, const Step& step, Precision precision);

/// Page-locked batches or not, of the loader and of the job's copies: out of pageable memory they
/// hold the host, whatever else was asked for.
void set_pinning(Scenario& scenario, bool pin);

/// The batch of each GPU, and what an epoch's last batch then holds.
void set_batch(Scenario& scenario, std::int64_t batch);

}  // namespace stoker
