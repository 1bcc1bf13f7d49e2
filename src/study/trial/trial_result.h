#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/trial/trial_state.h"

namespace stoker::study {

/// A value that a trial reported on its way.
struct MetricPoint {
  std::string metric;
  std::optional<double> step{};
  double seconds = 0;  ///< since the trial started
  double value = 0;
};

/// How a trial ended: what result.json holds.
struct TrialResult {
  TrialState state = TrialState::kFailed;
  /// Why it is not done, in a word: exit_code, signal, time_limit, memory_limit,
  /// cuda_out_of_memory, host_out_of_memory, metric_absent, metric_not_a_number, no_command, lost,
  /// cancelled. A trial that is done may have one, too: metric_not_finite,
  /// stopped.
  std::string cause{};
  std::string reason{};  ///< the same as a sentence
  std::optional<std::int64_t> exit_code{}, signal{};
  double started = 0, ended = 0;  ///< seconds since 1970 by the clock of its machine
  double wall_s = 0;              ///< by a clock that nobody sets
  std::string host{};
  std::map<std::string, double> metrics{};
  std::map<std::string, double> resources{};
  std::vector<MetricPoint> points{};  ///< at most kMostPoints of each metric, evenly thinned
  std::string tail{};                 ///< last lines of its output
};

inline constexpr std::size_t kMostPoints = 1000;

[[nodiscard]] std::string result_text(const TrialResult& result);
[[nodiscard]] Result<TrialResult> parse_result(std::string_view text, const std::string& where);

}  // namespace stoker::study
