#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stoker::study {

/// Half the width of a 95 % interval of a mean is this many standard errors, for `degrees` of
/// freedom (Student's t, two-sided; the table that every text book prints, interpolated).
[[nodiscard]] double student_t(std::int64_t degrees);

/// A mean with its 95 % interval; none from a single value.
struct MeanInterval {
  std::int64_t count = 0;
  double mean = 0;
  std::optional<double> low{}, high{};

  /// Whether the interval leaves zero out.
  [[nodiscard]] bool certain() const { return low && (*low > 0 || *high < 0); }
};
[[nodiscard]] MeanInterval mean_interval(const std::vector<double>& values);

/// Coefficients of a least-squares fit of `targets` by the columns of `rows`; nullopt where they do
/// not decide them.
[[nodiscard]] std::optional<std::vector<double>> least_squares(
    const std::vector<std::vector<double>>& rows, const std::vector<double>& targets);

}  // namespace stoker::study
