#pragma once

// The time that rows of single convolutions hold besides their kernels: a shape has the same share
// of it on every GPU, and nothing about the shape tells that share (docs/models/time.md).

#include <cstdint>
#include <string_view>
#include <vector>

namespace stoker::accuracy {

/// Largest offset of a row on this GPU in microseconds; of a GPU that was not seen, or that no row
/// is of, what is typical of the others.
double offset_span(std::string_view gpu, bool gpu_seen);

/// A row's forecast in microseconds: the host's floor, what the row takes beyond without its
/// offset, and the offset's span.
struct OffsetForecast {
  std::uint64_t shape = 0;
  double measured = 0;
  double floor = 0, issued = 0, span = 0;

  /// The forecast when nothing tells the share: the mean relative error is least at the geometric
  /// mean of the ends.
  [[nodiscard]] double unknowing() const;
};

/// Forecasts by the share of the offset that rows of the same shape on other GPUs show.
std::vector<double> told_by_others(const std::vector<OffsetForecast>& forecasts);

}  // namespace stoker::accuracy
