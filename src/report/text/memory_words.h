#pragma once

#include <string>

#include "forecast/memory/remedies.h"
#include "forecast/memory_forecast.h"

/// Internal to src/report: what a memory forecast consists of, in words.
namespace stoker {

/// "parameters 44.6 MiB, gradients 41.2 MiB": what is live at the peak.
[[nodiscard]] std::string live_words(const MemoryForecast& memory);
/// "CUDA context 426.0 MiB, cuDNN 290.0 MiB": what lies outside of the tensors' allocator.
[[nodiscard]] std::string outside_words(const MemoryForecast& memory);
/// Whether a job fits with this change: "yes", "risky", "no", "by emptying the cache".
[[nodiscard]] std::string fits_words(const Remedy& remedy);

}  // namespace stoker
