#include "scenario/request/allocator.h"

#include "lower/gpu/workspace.h"

namespace stoker {

Result<AllocatorConfig> allocator_of(const AllocatorRequest& r) {
  auto config = parse_allocator_config(r.config.text);
  if (!config) return fail(config.error().code, config.error().text(), r.config.where);
  if (r.memory_fraction) config->memory_fraction = r.memory_fraction;
  return config;
}

Status fill_workspaces(const AllocatorRequest& r, Job& job) {
  if (!r.cublas_workspace.text.empty()) {
    const auto bytes = parse_cublas_workspace_config(r.cublas_workspace.text);
    if (!bytes) return fail(bytes.error().code, bytes.error().message, r.cublas_workspace.where);
    job.cublas_workspace = *bytes;
  }
  if (!r.cublaslt_workspace.text.empty()) {
    const auto bytes = parse_cublaslt_workspace_size(r.cublaslt_workspace.text);
    if (!bytes) return fail(bytes.error().code, bytes.error().message, r.cublaslt_workspace.where);
    job.cublaslt_workspace = *bytes;
  }
  return {};
}

std::vector<std::string> allocator_words(const AllocatorRequest& r) {
  std::vector<std::string> words;
  for (const GivenText* given : {&r.config, &r.cublas_workspace, &r.cublaslt_workspace}) {
    if (!given->text.empty()) words.push_back(given->where + " " + given->text);
  }
  return words;
}

}  // namespace stoker
