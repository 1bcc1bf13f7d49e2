#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/method/search.h"

namespace stoker::cli {

/// Values of configurations as Optuna draws them, "sobol" or "tpe": asked anew each time with all
/// that is known, so that nothing but the store has to survive. What is handed over and back lies
/// beside the store.
[[nodiscard]] std::function<Result<std::vector<std::string>>(const tune::History&, std::int64_t)>
python_sampler(const tune::SearchOptions& search, const std::string& sampler,
               const std::filesystem::path& store);

}  // namespace stoker::cli
