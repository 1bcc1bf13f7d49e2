#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/controller/guide.h"
#include "study/executor/executor.h"
#include "study/store/store.h"

namespace stoker::study {

/// What the user wants while a study runs.
enum class Wish : std::uint8_t {
  kGoOn,
  kFinish,  ///< start no more, wait for those that run
  kCancel,  ///< end those that run, too
  kLeave    ///< stop following; what runs goes on
};

/// What a search adds to a study that runs.
struct Feed {
  std::vector<TrialRow> trials{};  ///< in the store already, waiting
  bool finished = true;            ///< nothing will follow what there is
  /// Why no trial is to begin any more; empty: trials may. Those that wait in a batch system's
  /// queue are taken back, and wait in the store.
  std::string stopped{};
};

struct ControllerOptions {
  /// Trials that were handed over and have not ended, at most; 0: as many as there is room for.
  int at_most = 0;
  /// Asked between any two steps.
  std::function<Wish()> wish = [] { return Wish::kGoOn; };
  /// Told of each trial that changed.
  std::function<void(const TrialRow& row)> progress = [](const TrialRow&) {};
  /// Whether a trial that ended is run again, as a trial of its own; asked once of each.
  std::function<bool(const TrialRow& row)> again = [](const TrialRow&) { return false; };
  /// Asked between any two steps while the study goes on.
  std::function<Result<Feed>()> feed = [] { return Feed{}; };
  /// Chooses among trials that wait; null: all run, as they stand. Not owned.
  Guide* guide = nullptr;
};

struct RunSummary {
  bool complete = false;   ///< all trials are final
  std::string stopped;     ///< why not: a budget, failures in a row, a wish
  std::int64_t ended = 0;  ///< trials that ended in this run
};

/// Runs the trials of a study that wait, and follows those that an earlier controller started. It
/// may die at any instant and be started again: a trial's command is never started twice, and each
/// trial comes to a final state. The caller holds the study's lock and has blocked SIGCHLD.
[[nodiscard]] Result<RunSummary> run_study(Store& store, Executor& executor,
                                           const ControllerOptions& options);

}  // namespace stoker::study
