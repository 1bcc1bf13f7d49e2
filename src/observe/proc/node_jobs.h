#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// Training jobs of this node that this user can see: processes that have DataLoader workers or
/// PyTorch's library in their memory, and the topmost Python or launcher that started them. One
/// process a job.
[[nodiscard]] std::vector<std::int64_t> training_jobs(const std::string& proc_folder);

/// The processes of a Slurm job on this node that no other of them started: by their control group,
/// else by SLURM_JOB_ID in their environment.
[[nodiscard]] std::vector<std::int64_t> slurm_job_roots(const std::string& proc_folder,
                                                        std::string_view job);

}  // namespace stoker
