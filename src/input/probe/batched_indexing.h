#pragma once

#include <cstdint>

#include "input/probe/sample_cost.h"

namespace stoker {

/// Whether a batch of cheap samples costs mostly the handling of each by itself in Python (a call
/// of __getitem__, a place in the list that is collated), of which one indexing operation a batch
/// has none. Tables and tensors in memory are of this kind.
[[nodiscard]] bool handles_samples_singly(const SampleCost& cost, std::int64_t batch);

/// What the data cost when they are indexed once a batch: their bytes are gathered, and copied once
/// more on the way out of a worker.
[[nodiscard]] SampleCost indexed_by_batches(SampleCost cost);

}  // namespace stoker
