#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/setting.h"
#include "scenario/request.h"

namespace stoker {

/// Beyond such a batch a model's bytes no longer fit into 64 bits.
inline constexpr std::int64_t kMostBatch = 1LL << 24;
inline constexpr std::int64_t kMostSamples = 1LL << 50;
inline constexpr std::int64_t kMostWorkers = 1024;
inline constexpr std::int64_t kMostImageSide = 8192;
/// Nobody can try an answer beyond.
inline constexpr int kMostGpus = 1024;
/// Money per GPU and hour.
inline constexpr double kDearestGpu = 1e6;

/// Refuses a value outside of [low, high]: "must be between 1 and 1,024, not 0".
[[nodiscard]] Status check_range(Setting setting, const std::optional<std::int64_t>& value,
                                 std::int64_t low, std::int64_t high);

/// A price is positive and below kDearestGpu.
[[nodiscard]] Status check_price(double price);

/// Every count of a request within what it can count.
[[nodiscard]] Status check_ranges(const RunRequest& request);

}  // namespace stoker
