#pragma once

#include <string>
#include <string_view>

#include "tune/curve/rate_range.h"
#include "tune/goodput/goodput.h"

namespace stoker {

/// What a learning-rate range test says: `stoker tune --lr-test`.
[[nodiscard]] std::string range_text(const tune::RangeResult& result, std::size_t runs);
[[nodiscard]] std::string range_json(const tune::RangeResult& result, std::size_t runs,
                                     std::string_view version);

/// Batches and numbers of GPUs by the time and money to a loss: `stoker tune --noise-scale N`.
struct GoodputReport {
  tune::Goodput found{};
  double noise_scale = 0;
  std::string model{}, gpu{};
};
[[nodiscard]] std::string goodput_text(const GoodputReport& report);
[[nodiscard]] std::string goodput_json(const GoodputReport& report, std::string_view version);

}  // namespace stoker
