#include "cli/request/allocator_options.h"

#include <cstdlib>
#include <span>
#include <string_view>

#include "base/setting.h"
#include "memory/cuda/allocator_config.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kCublasVariable = "CUBLAS_WORKSPACE_CONFIG";
constexpr std::string_view kCublasLtVariable = "CUBLASLT_WORKSPACE_SIZE";

GivenText from_environment(std::span<const std::string_view> variables) {
  for (const std::string_view variable : variables) {
    const char* value = std::getenv(std::string(variable).c_str());
    if (value != nullptr && *value != '\0') return {value, std::string(variable)};
  }
  return {};
}

/// The flag's text, else the first variable's that is set.
GivenText given(const std::string& flag, Setting setting,
                std::span<const std::string_view> variables) {
  return flag.empty() ? from_environment(variables) : GivenText{flag, mark(setting)};
}

}  // namespace

std::vector<Binding> allocator_bindings(AllocatorOptions& o) {
  return {{"alloc-conf", &o.alloc_conf},
          {"memory-fraction", &o.memory_fraction},
          {"cublas-workspace", &o.cublas_workspace}};
}

AllocatorRequest allocator_request(const AllocatorOptions& o) {
  return {.config = given(o.alloc_conf, Setting::kAllocConf, kAllocatorEnvironment),
          .cublas_workspace =
              given(o.cublas_workspace, Setting::kCublasWorkspace, {&kCublasVariable, 1}),
          .cublaslt_workspace = from_environment({&kCublasLtVariable, 1}),
          .memory_fraction = o.memory_fraction};
}

}  // namespace stoker::cli
