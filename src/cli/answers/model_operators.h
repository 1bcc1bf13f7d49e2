#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

struct ModelOperatorsOptions {
  std::string model;  ///< empty: not asked for
  std::string precision = "fp32";
  std::optional<std::int64_t> batch;
  std::vector<std::string> dimensions;  ///< NAME=NUMBER
  bool json = false;
};

/// Prints what the operators of one model's step have to do: FLOPs and bytes by their shapes alone.
[[nodiscard]] Result<int> print_model_operators(const ModelOperatorsOptions& options);

}  // namespace stoker::cli
