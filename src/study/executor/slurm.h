#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "study/definition/study.h"
#include "study/executor/executor.h"

namespace stoker::study {

/// What squeue or scontrol tells of a job: "123_4" and "RUNNING".
struct SlurmJob {
  std::string state, nodes, reason;
};

/// Lines "ID|STATE|REASON|NODES" of squeue.
[[nodiscard]] std::map<std::string, SlurmJob> parse_squeue(std::string_view text);
/// The state of `scontrol show job -o` or of a line "STATE" of sacct; empty: none.
[[nodiscard]] std::string parse_job_state(std::string_view text);

/// Words of sbatch for trials with the same needs.
[[nodiscard]] std::vector<std::string> sbatch_words(const SlurmOptions& options, const Needs& needs,
                                                    const std::string& name,
                                                    const std::filesystem::path& script,
                                                    std::size_t count);

struct SlurmSettings {
  SlurmOptions options;
  std::filesystem::path folder;  ///< STORE.trials: scripts and lists of folders lie here
  std::string name = "stoker";   ///< of the jobs
  std::string program;           ///< this binary, as the nodes see it
  double poll_seconds = 5;
};

/// Trials as tasks of job arrays, one array for trials of the same needs that are handed over
/// together. Jobs are not requeued: a trial that its node lost is said to be lost, and is run again
/// when asked. Refused where there is no sbatch.
[[nodiscard]] Result<std::unique_ptr<Executor>> slurm_executor(SlurmSettings settings);

}  // namespace stoker::study
