#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/result.h"
#include "evidence/training/training_runs.h"

namespace stoker {

/// A recording of the user's own loop (docs/reference/observation-file.md) as one measured run, of
/// a model that the caller names: the file knows it by its class alone.
struct Observation {
  TrainingRuns runs;        ///< of one run and one repetition
  std::string model_class;  ///< "ResNet"; empty: no model was attached
  std::size_t steps = 0;    ///< that the medians are over
  Diagnostics data;         ///< damaged lines, steps left out
};

/// Steps of training that ended well, without the first ten (of fewer than 50 the first fifth);
/// medians over them, by the device's clock where the file has it; what the loop waited for data is
/// left out. `where` names the file in errors.
[[nodiscard]] Result<Observation> parse_observation(std::string_view text,
                                                    const std::string& where);
[[nodiscard]] Result<Observation> read_observation(const std::filesystem::path& path);

/// Whether a file of this name is one: "*.obs.jsonl".
[[nodiscard]] bool names_an_observation(std::string_view file);

}  // namespace stoker
