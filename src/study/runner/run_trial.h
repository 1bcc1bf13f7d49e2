#pragma once

#include <filesystem>

#include "base/result.h"
#include "study/trial/trial_files.h"

namespace stoker::study {

enum class TrialRun : std::uint8_t {
  kEnded,   ///< result.json says how
  kClaimed  ///< somebody else runs it, ran it or withdrew it: nothing was done
};

/// Where the command's output goes beside its files: descriptors, none by default.
struct Echo {
  int output = -1, errors = -1;
};

/// Runs the trial of this folder, in a process that does nothing else: takes the claim, starts the
/// command in its own process group, keeps its output, collects its metrics, holds it to its
/// limits, passes signals on, and writes result.json by rename. SIGTERM and SIGINT cancel the
/// trial; SIGUSR1, with which a batch system says that time is nearly up, ends it as its time limit
/// does. SIGUSR2 is passed on. A file `stop` in the folder ends it as done, with the cause
/// "stopped".
[[nodiscard]] Result<TrialRun> run_trial(const TrialFiles& files, Echo echo = {});

}  // namespace stoker::study
