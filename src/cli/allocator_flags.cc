#include "cli/allocator_flags.h"

#include <cstdlib>
#include <span>
#include <string_view>

#include "lower/gpu/workspace.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kCublasVariable = "CUBLAS_WORKSPACE_CONFIG";
constexpr std::string_view kCublasLtVariable = "CUBLASLT_WORKSPACE_SIZE";

/// A setting and the flag or variable that it came from.
struct Given {
  std::string text, where;
};

Given from_environment(std::span<const std::string_view> variables) {
  for (const std::string_view variable : variables) {
    const char* value = std::getenv(std::string(variable).c_str());
    if (value != nullptr && *value != '\0') return {value, std::string(variable)};
  }
  return {};
}

Given allocator_setting(const AllocatorOptions& o) {
  return o.alloc_conf.empty() ? from_environment(kAllocatorEnvironment)
                              : Given{o.alloc_conf, "--alloc-conf"};
}

Given cublas_setting(const AllocatorOptions& o) {
  return o.cublas_workspace.empty() ? from_environment({&kCublasVariable, 1})
                                    : Given{o.cublas_workspace, "--cublas-workspace"};
}

}  // namespace

std::vector<Flag> allocator_flags(AllocatorOptions& o) {
  return grouped(
      "Memory",
      {{"--alloc-conf", "as PYTORCH_ALLOC_CONF, which is read too", &o.alloc_conf},
       {"--memory-fraction", "as torch.cuda.set_per_process_memory_fraction", &o.memory_fraction},
       {"--cublas-workspace", "as CUBLAS_WORKSPACE_CONFIG (:4096:2:16:8), which is read too",
        &o.cublas_workspace}});
}

std::vector<std::string> allocator_words(const AllocatorOptions& o) {
  std::vector<std::string> words;
  for (const Given& given :
       {allocator_setting(o), cublas_setting(o), from_environment({&kCublasLtVariable, 1})}) {
    if (!given.text.empty()) words.push_back(given.where + " " + given.text);
  }
  return words;
}

Result<AllocatorConfig> allocator_of(const AllocatorOptions& o) {
  const Given given = allocator_setting(o);
  auto config = parse_allocator_config(given.text);
  if (!config) return fail(config.error().code, config.error().text(), given.where);
  if (o.memory_fraction) {
    if (!(*o.memory_fraction > 0 && *o.memory_fraction <= 1))
      return fail(ErrorCode::kBadInput, "must be above 0 and at most 1", "--memory-fraction");
    config->memory_fraction = o.memory_fraction;
  }
  return config;
}

Status fill_workspaces(const AllocatorOptions& o, Job& job) {
  const Given cublas = cublas_setting(o);
  if (!cublas.text.empty()) {
    const auto bytes = parse_cublas_workspace_config(cublas.text);
    if (!bytes) return fail(bytes.error().code, bytes.error().message, cublas.where);
    job.cublas_workspace = *bytes;
  }
  const Given lt = from_environment({&kCublasLtVariable, 1});
  if (!lt.text.empty()) {
    const auto bytes = parse_cublaslt_workspace_size(lt.text);
    if (!bytes) return fail(bytes.error().code, bytes.error().message, lt.where);
    job.cublaslt_workspace = *bytes;
  }
  return {};
}

}  // namespace stoker::cli
