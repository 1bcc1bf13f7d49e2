#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/allocator_flags.h"
#include "cli/arguments.h"
#include "cli/job_flags.h"
#include "cli/model_source.h"
#include "forecast/forecast.h"
#include "input/probe/pipeline_probe.h"
#include "input/probe/probe.h"
#include "report/model/report.h"

namespace stoker::cli {

/// What the user typed about model, machine, data and settings: the flags that `plan` and `predict`
/// share.
struct RunOptions {
  std::string model, gpu, gpus, host, data, precision, sample_cost, coefficients;
  std::string price;  ///< one, or one a GPU: "1.3,2.5"
  std::optional<std::int64_t> batch, samples, workers, prefetch, image_size;
  bool largest_batch = false;  ///< of predict: `--batch max`
  bool no_pin = false, reprobe = false, json = false;
  JobOptions job;
  AllocatorOptions allocator;
};

/// Under headings. A verb may change the words of some.
[[nodiscard]] std::vector<Flag> run_flags(RunOptions& o);

/// What a verb works with, resolved from the options.
struct Resolved {
  LoadedModel model;
  Scenario base;                          ///< step of the first variant; batch 1, one GPU
  std::optional<Probe> probe;             ///< of a folder
  std::optional<PipelineProbe> pipeline;  ///< of the user's own Dataset or DataLoader
  Knowledge knowledge;
  ReportContext context;  ///< model line left to the verb
};

/// Resolves everything but the number of GPUs and the searched settings. `gpu` is one GPU or
/// machine file.
[[nodiscard]] Result<Resolved> resolve(const RunOptions& o, const std::string& gpu,
                                       const std::vector<Precision>& precisions,
                                       std::size_t position = 0);

/// The precisions to consider on a GPU when the user named none: the plainest first, since a later
/// one must be faster to be chosen.
[[nodiscard]] std::vector<Precision> default_precisions(const Gpu& gpu);

/// "1", "1,2,4" or "1..8" -> counts in rising order.
[[nodiscard]] Result<std::vector<int>> parse_counts(const std::string& text);

}  // namespace stoker::cli
