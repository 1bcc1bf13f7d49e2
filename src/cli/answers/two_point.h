#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "forecast/forecast.h"
#include "report/model/two_point_report.h"

namespace stoker::cli {

/// What the user typed about `--method two-point`.
struct TwoPointOptions {
  std::vector<std::string> readings;  ///< "10:3.1GB", "50:auto"
};

/// One reading as it was asked for; without bytes it is to be simulated.
struct ReadingRequest {
  std::int64_t batch = 0;
  std::optional<Bytes> bytes;
};

/// The two readings: those given, or 10:auto and 50:auto.
[[nodiscard]] Result<std::array<ReadingRequest, 2>> parse_readings(
    const std::vector<std::string>& texts);

/// The answer from two readings that were both measured: nothing is simulated, no model is needed.
[[nodiscard]] Result<TwoPointAnswer> answer_measured(const std::array<ReadingRequest, 2>& requests,
                                                     const DeviceFacts& gpu, int gpus);
/// Simulates what is missing, and sets our own largest batch beside it.
[[nodiscard]] Result<TwoPointAnswer> answer_simulated(const std::array<ReadingRequest, 2>& requests,
                                                      const Scenario& scenario,
                                                      const BatchLimits& limits);

}  // namespace stoker::cli
