#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/definition/study.h"

namespace stoker::cli {

/// What the words of `stoker sweep` say of the study itself.
struct SweepRequest {
  std::string file;  ///< a study file, a store, or empty
  std::vector<std::string> vary, condition, exclude, metric, env, forecast, command;
  std::optional<std::int64_t> repeat, seed;
  std::string model, gpu, order, cores, gpus, memory, time, grace, image, store;
  bool shell = false;
};

struct SweepStudy {
  std::filesystem::path store;
  std::optional<study::Study> study;  ///< nothing where a store alone was named
};

/// A study file with what flags add to it, or a study of flags alone.
[[nodiscard]] Result<SweepStudy> sweep_study(const SweepRequest& request);

/// The store that `named` is, or that belongs to the study file of this name.
[[nodiscard]] std::filesystem::path store_of(const std::string& named);

}  // namespace stoker::cli
