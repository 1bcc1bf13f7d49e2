#pragma once

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/percent.h"
#include "input/findings/findings.h"

/// Internal to src/input: what the rules of findings.cc share.
namespace stoker::rules {

/// A change of speed below this is not worth a line: best-of-three runs of real loaders differ by
/// about as much (docs/models/input.md).
inline constexpr double kWorthSaying = 0.03;
/// Two settings this near count as equally fast; the smaller one wins (plan/search.h).
inline constexpr double kSame = 0.01;

/// The case and what is simulated of it.
struct Diagnosis {
  const LoaderCase& given;
  LoaderForecast now;

  [[nodiscard]] LoaderForecast with(const LoaderSettings& settings) const {
    return simulate_loader(settings, given.sample, given.host, given.consumer);
  }
  /// What the loader could deliver to a GPU that needs no time.
  [[nodiscard]] LoaderForecast ceiling() const {
    constexpr Nanos kInstant{1e3};
    return simulate_loader(given.settings, given.sample, given.host, kInstant);
  }
  [[nodiscard]] int all_workers() const {
    return given.settings.workers * std::max(1, given.host.ranks);
  }
  /// The limit lies in the making of samples.
  [[nodiscard]] bool prep_bound() const {
    return now.limit == InputLimit::kCores || now.limit == InputLimit::kWorkers ||
           now.limit == InputLimit::kInProcess;
  }
};

using Rule = std::optional<Finding> (*)(const Diagnosis&);

/// What the host grants: shared memory, files, cores, memory.
[[nodiscard]] const std::vector<Rule>& host_rules();
/// What makes batches late.
[[nodiscard]] const std::vector<Rule>& speed_rules();
/// How an epoch starts, and when there is nothing left to do.
[[nodiscard]] const std::vector<Rule>& epoch_rules();

/// "12", "3.5", "0.21": three digits at most that say something.
[[nodiscard]] inline std::string decimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  const bool large = value >= 1000;
  if (large) std::snprintf(buffer, sizeof buffer, "%.0f", value);
  return buffer;
}
[[nodiscard]] inline std::string rate_text(double rate) { return decimal(rate) + " samples/s"; }

}  // namespace stoker::rules
