#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "memory/cuda/allocator_config.h"
#include "program/job.h"

namespace stoker::cli {

/// What the user typed about PyTorch's allocator and cuBLAS's workspaces. PyTorch reads the same
/// from the environment; so do we, where a flag says nothing.
struct AllocatorOptions {
  std::string alloc_conf, cublas_workspace;
  std::optional<double> memory_fraction;
};

[[nodiscard]] std::vector<Flag> allocator_flags(AllocatorOptions& o);

/// What was set, each with the flag or variable that it came from: for the report.
[[nodiscard]] std::vector<std::string> allocator_words(const AllocatorOptions& o);
[[nodiscard]] Result<AllocatorConfig> allocator_of(const AllocatorOptions& o);
/// cuBLAS's and cuBLASLt's workspaces.
[[nodiscard]] Status fill_workspaces(const AllocatorOptions& o, Job& job);

}  // namespace stoker::cli
