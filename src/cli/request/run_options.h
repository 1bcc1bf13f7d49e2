#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/request/allocator_flags.h"
#include "cli/request/job_flags.h"

namespace stoker::cli {

/// What the user typed about model, machine, data and settings: the flags that `plan` and `predict`
/// share.
struct RunOptions {
  std::string model, gpu, gpus, host, data, precision, sample_cost, coefficients;
  std::string price;  ///< one, or one a GPU: "1.3,2.5"
  std::optional<std::int64_t> batch, samples, workers, prefetch, image_size;
  bool no_pin = false, reprobe = false, json = false;
  JobOptions job;
  AllocatorOptions allocator;
};

/// Under headings. A verb may change the words of some.
[[nodiscard]] std::vector<Flag> run_flags(RunOptions& o);

}  // namespace stoker::cli
