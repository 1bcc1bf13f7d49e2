#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "forecast/forecast.h"

namespace stoker {

/// The scenario's model, captured in another precision.
struct OtherPrecision {
  Precision precision = Precision::kFp32;
  const Step* step = nullptr;  ///< not owned
};

/// One change of settings and what it brings, both by simulation.
struct Remedy {
  std::string what;      ///< "recompute the repeated blocks in the backward"
  std::string settings;  ///< "{checkpoint} blocks"; empty: no setting does it
  Bytes device_peak;     ///< after it, unconstrained
  Bytes saving;          ///< of the device peak; negative: it costs memory
  /// Relative change of the time per sample, the data taken as fast enough; absent: not modelled.
  std::optional<double> time_change;
  bool fits = false;  ///< on this GPU, by the forecast itself, its error left aside
  MemoryVerdictWord verdict = MemoryVerdictWord::kDoesNotFit;  ///< that of a forecast with it
  bool only_by_flushing = false;
  bool estimate = false;  ///< a rule of thumb stands in for the library that would do it
};

struct Remedies {
  /// By saving, largest first; of a job that does not fit, those that make it fit come before those
  /// that make it risky, and both before the others.
  std::vector<Remedy> list;
  int too_small = 0;  ///< save less than kWorthSaving, left out
  /// Where no single one makes it fit: several that do together, or that make it risky where no
  /// single one does even that.
  std::optional<Remedy> together;
  /// Where it does not fit: on so many GPUs it surely does by FSDP (ZeRO-3); 0: not looked for, or
  /// none up to kMostGpus.
  int fsdp_gpus = 0;
};

/// Share of the device peak below which a saving is not worth a line.
inline constexpr double kWorthSaving = 0.01;

/// Tries every remedy that applies to the scenario. `now` is its forecast; `others` the captures at
/// hand.
[[nodiscard]] Result<Remedies> find_remedies(const Scenario& scenario, const Forecast& now,
                                             const std::vector<OtherPrecision>& others,
                                             const Knowledge& knowledge);

/// The smallest device, context included, on which the scenario still runs (by giving the cache
/// back), in steps of 2 MiB.
[[nodiscard]] Result<Bytes> smallest_device(const Scenario& scenario);

}  // namespace stoker
