#pragma once

#include <string>

#include "forecast/forecast.h"

/// Internal to src/report: the blocks of a forecast that a CPU says in other words than a GPU.
namespace stoker {

/// "Step 44.7 ms [..]", its phases, what its operators wait for, threads.
[[nodiscard]] std::string cpu_time_block(const Forecast& f);
/// "Memory resident 1.2 GiB; tensors 0.9 GiB", parts at the peak, the process around them.
[[nodiscard]] std::string cpu_memory_block(const Forecast& f);
/// "2 threads".
[[nodiscard]] std::string threads_text(int threads);

}  // namespace stoker
