#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "forecast/forecast.h"
#include "forecast/knowledge.h"
#include "forecast/memory_forecast.h"
#include "input/pipeline/pipeline_probe.h"
#include "input/probe/probe.h"
#include "scenario/request/job_words.h"
#include "scenario/request/request.h"
#include "scenario/resolve/facts.h"
#include "scenario/sources/model_source.h"
#include "scenario/sources/tools.h"

namespace stoker {

/// What a request means: everything that a forecast needs, and what it must be judged in.
struct Resolved {
  LoadedModel model;
  Scenario base;                          ///< its step is one of `model`
  std::optional<Probe> probe;             ///< of a folder
  std::optional<PipelineProbe> pipeline;  ///< of the user's own Dataset or DataLoader
  Knowledge knowledge;
  Facts facts;
  RunRequest request;            ///< with what was found in a script filled in
  int gpus_of_machine = 1;       ///< that it has, whatever the job takes
  bool well_known_data = false;  ///< named, not measured

  /// The first line of a report about `job`.
  [[nodiscard]] ModelLine line(const Job& job) const;
};

/// Resolves everything but the number of GPUs, the batch, the precision and the loader, which a
/// search decides: the base scenario is the first variant's step at batch 1 on one GPU. Without
/// precisions in the request, those that the device has units for.
[[nodiscard]] Result<Resolved> resolve(const RunRequest& request, const ScenarioTools& tools);

/// The scenario of exactly this request. What was not asked for has its documented default (fp32,
/// the captured batch, one GPU, a worker for each core that a GPU has); nothing is searched but the
/// largest safe batch, when it was asked for.
[[nodiscard]] Result<Resolved> resolve_exactly(const RunRequest& request,
                                               const ScenarioTools& tools);

/// Adds to the facts what the job assumes of the links between so many GPUs.
[[nodiscard]] Status add_link(Resolved& resolved, int gpus);

/// How far the batch of this job could grow.
[[nodiscard]] Result<BatchLimits> batch_limits_of(const Resolved& resolved);

}  // namespace stoker
