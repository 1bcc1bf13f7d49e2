#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "diagnosis/timeline/job_timeline.h"
#include "input/loader/loader_simulation.h"

namespace stoker {

/// What a watched run teaches about the next one: its loader, its samples' cost, its step.
struct ObservedRun {
  LoaderSettings settings;   ///< as they were, of one training process
  SampleCost sample;         ///< of one sample; each batch that was seen stands for its samples
  Consumer consumer;         ///< the loop without its waiting for data
  int processes = 1;         ///< that trained
  double batches_per_s = 0;  ///< of one process
  bool on_gpu = false;       ///< the machine has one
  bool batch_told = false;   ///< by the loop; else by the caller
};

/// `batch` is what the caller says of the batch size; where the loop told it, that counts.
/// Refuses a recording that saw too little, naming it by `where`.
[[nodiscard]] Result<ObservedRun> observed_run(const JobTimeline& timeline,
                                               std::optional<std::int64_t> batch,
                                               const std::string& where);

}  // namespace stoker
