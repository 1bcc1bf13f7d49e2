#pragma once

#include <cstdint>
#include <vector>

#include "input/loader/loader_events.h"
#include "input/loader/loader_simulation.h"

namespace stoker {

/// A stream that does not end while anyone looks.
inline constexpr std::int64_t kEndlessStream = std::int64_t{1} << 60;

/// The measured streams that so many workers read, or those of the number measured that is
/// nearest; nullptr where all workers' samples are alike, or one worker reads all.
[[nodiscard]] const StreamSet* streams_of(const SampleCost& cost, int workers);

/// Whether each worker reads a stream of its own.
[[nodiscard]] inline bool reads_streams(const SampleCost& cost, int workers) {
  return workers > 0 && (cost.iterable || cost.work_units > 0);
}

/// Parts of the data (shards, files, row groups) of which one worker reads each: as the data say,
/// or as the streams show where some workers got none. 0: unknown, or samples are handed out
/// singly.
[[nodiscard]] std::int64_t work_units(const SampleCost& cost);

/// Samples of each worker's stream when an epoch of one rank holds `samples`: as measured, else by
/// whole work units, else equal.
[[nodiscard]] std::vector<std::int64_t> stream_lengths(const SampleCost& cost, int workers,
                                                       std::int64_t samples);

/// What of an endless epoch's model depends on streams: their costs where these differ, and workers
/// that have nothing to do. `cpu_scale`: CPU time here against that measured.
void fill_streams(const LoaderSettings& settings, const SampleCost& cost, double cpu_scale,
                  LoaderModel& model);

}  // namespace stoker
