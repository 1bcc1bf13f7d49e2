#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/verbs/study_arguments.h"
#include "cli/verbs/study_executor.h"
#include "json/value.h"
#include "scenario/settings/settings.h"
#include "tune/method/greedy.h"
#include "tune/method/search.h"
#include "tune/run/tuner.h"

namespace stoker::cli {

/// What the words of `stoker tune` say.
struct TuneArguments {
  std::string file;    ///< the store of a search
  std::string points;  ///< runs of a range test
  std::string batch, lr, metric, direction, method, by, sampler, stop, budget, checkpoint_space,
      objective, cluster;
  std::optional<double> threshold, share, probe_steps, min_delta, min_share, budget_steps,
      budget_money, price, min_steps, max_steps, noise_scale, target, energy_weight;
  std::optional<std::int64_t> repeat, refine, smaller_batches, patience, seed, width, trials, eta,
      keep_checkpoints;
  StudyPlace place;
  std::optional<bool> final_run;
  std::vector<std::string> vary, env, forecast, command;
  std::string model, gpu, cores, gpus, memory, time, grace, image, store, html;
  bool shell = false, quiet = false, json = false, lr_test = false;
};

/// Where its words go: those that say what the search is, which do not change while it goes on, and
/// all others.
[[nodiscard]] std::vector<Binding> tune_identity(TuneArguments& a);
[[nodiscard]] std::vector<Binding> tune_other(TuneArguments& a);

/// What says what the search is, as it is kept in the store, and back.
[[nodiscard]] json::Value arguments_json(TuneArguments& a);
void arguments_from(const json::Value& stored, TuneArguments& a);

/// The search that is asked for.
struct TuneStudy {
  std::filesystem::path store;
  study::Study study;
  bool is_greedy = true;
  tune::GreedyOptions greedy;  ///< without forecasts
  tune::SearchOptions search;  ///< of all other methods
  std::string sampler{};       ///< "sobol", "tpe", or empty: drawn here
  tune::TunerOptions options;
};
[[nodiscard]] Result<TuneStudy> tune_study(const TuneArguments& a);

}  // namespace stoker::cli
