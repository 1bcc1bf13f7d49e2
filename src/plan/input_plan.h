#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/figure.h"
#include "input/findings/findings.h"
#include "plan/knobs.h"
#include "plan/loader_search.h"
#include "plan/thesis_rule.h"

namespace stoker {

/// The loader of a training loop whose step is known, with or without a model behind it.
struct InputPlanRequest {
  /// The loader as it is (`now_known`) or PyTorch's defaults, its data and its host, before a step
  /// at its batch.
  LoaderCase now;
  bool now_known = false;
  LoaderFreedom freedom;
  std::optional<LoaderSettings> chosen;  ///< the best settings, where another search found them
  /// Rate of the whole job with them, where the step is a forecast whose band belongs to it.
  std::optional<Figure> chosen_rate;
  std::optional<bool> pin;  ///< fixed; absent: searched
  bool persistent = true;   ///< workers live on between epochs
  bool gpu = true;          ///< false: batches stay on the CPU, copies cost nothing
  Host room;                ///< /dev/shm and DRAM of the host
  StepOf step;              ///< empty: in proportion to the batch, with a copy where it is pageable
  const LoaderProfile* profile = nullptr;
  double price_per_gpu_hour = 0;
  int gpus = 1;  ///< of the whole job
  std::optional<ThesisLimits> thesis;
};

/// The answer of the thesis's rule, and what our simulation expects of it.
struct ThesisComparison {
  ThesisAnswer answer;
  LoaderSettings settings;  ///< per process
  LoaderForecast forecast;  ///< of them
};

struct InputPlan {
  LoaderSettings best, now;
  bool now_known = false;
  LoaderForecast forecast, now_forecast;  ///< of one process
  Figure samples_per_s;                   ///< of the whole job, steady
  Figure ceiling;                         ///< likewise, were a step to take no time
  Figure epoch_s;                         ///< a later one; 0: the data set's size is unknown
  Figure first_epoch_s;               ///< 0: as the later ones, or nothing is known of the storage
  double cached = 1;                  ///< share of a later epoch's reads that memory serves
  Figure epoch_cost;                  ///< 0: no price
  double gpu_waits = 0;               ///< share of the time
  Nanos step;                         ///< at the recommended batch, copy included
  Nanos copy;                         ///< of it: pageable memory to the GPU before each step
  std::vector<Knob> knobs;            ///< settings first, then the rest by value
  std::vector<std::string> traps;     ///< what not to do here, with its numbers
  std::vector<Finding> findings;      ///< of the recommended settings
  std::vector<Finding> findings_now;  ///< of the loader as it is, where known: those that go away
  std::optional<ThesisComparison> thesis;
  std::string thesis_has_none;  ///< why its rule has no answer, where it was asked for
  bool stop = false;            ///< the step is the limit: nothing of the input is worth changing
  int ranks = 1;
  int gpus = 1;
  std::string shortage;  ///< what of the host forbade a faster loader
  std::int64_t settings_considered = 0;
};

/// Fails with kAnswerIsNo when nothing stays within the host's room.
[[nodiscard]] Result<InputPlan> make_input_plan(const InputPlanRequest& request);

/// The copy of a batch out of pageable memory, which holds the loop.
[[nodiscard]] Nanos pageable_copy(double bytes);

}  // namespace stoker
