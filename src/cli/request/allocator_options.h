#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenario/request/request.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {

/// What the user typed about PyTorch's allocator and cuBLAS's workspaces. PyTorch reads the same
/// from the environment.
struct AllocatorOptions {
  std::string alloc_conf, cublas_workspace;
  std::optional<double> memory_fraction;
};

[[nodiscard]] std::vector<Binding> allocator_bindings(AllocatorOptions& o);

/// The flags, and where they say nothing the environment that PyTorch reads, too.
[[nodiscard]] AllocatorRequest allocator_request(const AllocatorOptions& o);

}  // namespace stoker::cli
