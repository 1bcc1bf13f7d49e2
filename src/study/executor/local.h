#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>

#include "study/executor/executor.h"
#include "study/executor/slots.h"

namespace stoker::study {

/// Starts a runner for a trial in a process of its own that outlives this one; its process id.
using Launch = std::function<Result<pid_t>(const TrialFiles& files)>;

/// Trials on this machine, each with cores and GPUs of its own. Runners go on when this process
/// dies, and another takes them over by their claims.
[[nodiscard]] std::unique_ptr<Executor> local_executor(Capacity capacity, Launch launch);

/// `stoker run-trial FOLDER` by this program's own file, in a session of its own; what the runner
/// itself has to say goes to runner.log in the trial's folder.
[[nodiscard]] Launch own_runner();

/// Ends the processes that a trial left behind on this machine: they have its folder in their
/// environment. How many there were.
int end_left_behind(const TrialFiles& files);

}  // namespace stoker::study
