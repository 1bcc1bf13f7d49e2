#pragma once

#include <cstdint>
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
/// How Slurm says that a job ended.
struct SlurmEnd {
  std::string state;          ///< "NODE_FAIL"; empty: it knows nothing of the job
  bool preempted = false;     ///< it had to give way to another job, whatever its state says
  std::int64_t restarts = 0;  ///< times that it was put back into the queue
};
/// Reads a line of `scontrol show job -o`, or one "STATE" of sacct.
[[nodiscard]] SlurmEnd parse_job_end(std::string_view text);

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
