#pragma once

#include <string_view>

#include "program/program.h"

namespace stoker {

/// Kernel::function of FSDP's optimizer step over shards in the host's memory, one kernel of a
/// GPU's program that the host's processor runs while the device waits.
inline constexpr std::string_view kOffloadedUpdate = "offloaded_update";

[[nodiscard]] inline bool is_on_host(const Program& program, const Kernel& kernel) {
  return kernel.function != 0 && program.function_of(kernel) == kOffloadedUpdate;
}

}  // namespace stoker
