#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/outside/scenario_tools.h"
#include "cli/request/allocator_options.h"
#include "cli/request/job_options.h"
#include "forecast/memory_forecast.h"

namespace stoker::cli {

/// What the user typed about model, machine, data and settings: the flags that `plan` and `predict`
/// share.
struct RunOptions {
  std::string model, gpu, gpus, host, data, from, precision, sample_cost, storage, coefficients;
  std::string start_method;
  std::string link;                           ///< between the GPUs of a computer
  std::string price;                          ///< one, or one a GPU: "1.3,2.5"
  std::vector<std::string> script_arguments;  ///< what follows --
  std::string batch_argument;
  ScriptRun script_run;
  std::optional<std::int64_t> batch, samples, workers, prefetch, image_size;
  std::optional<bool> pin, persistent_workers;
  bool reprobe = false, recapture = false, json = false;
  std::optional<std::int64_t> global_batch;  ///< of predict: batch x accumulate x GPUs
  bool strict = false;                       ///< RISKY is no, too
  std::string mode;
  std::string lora;  ///< "r=16,targets=q_proj"
  bool qlora = false;
  std::string html;  ///< file for the page; empty: none
  std::vector<std::string> assumptions;
  JobOptions job;
  AllocatorOptions allocator;

  /// Batches in pinned memory, unless it was said otherwise.
  [[nodiscard]] bool pins() const { return pin.value_or(true); }
};

/// Whether what was asked runs: with --strict not where it is RISKY.
[[nodiscard]] inline bool is_good(bool fits, MemoryVerdictWord verdict, const RunOptions& o) {
  return fits && (!o.strict || verdict == MemoryVerdictWord::kFits);
}

/// `batch` keeps what was said of the batch, whose forms differ by verb.
[[nodiscard]] std::vector<Binding> run_bindings(RunOptions& o, SettingTarget batch);

}  // namespace stoker::cli
