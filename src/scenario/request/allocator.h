#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "memory/cuda/allocator_config.h"
#include "program/job.h"
#include "scenario/request/request.h"

namespace stoker {

[[nodiscard]] Result<AllocatorConfig> allocator_of(const AllocatorRequest& request);
/// cuBLAS's and cuBLASLt's workspaces.
[[nodiscard]] Status fill_workspaces(const AllocatorRequest& request, Job& job);

/// What was set, each with where it stood: for the report.
[[nodiscard]] std::vector<std::string> allocator_words(const AllocatorRequest& request);

}  // namespace stoker
