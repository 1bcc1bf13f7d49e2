#pragma once

#include <string>

#include "system/machine_facts.h"

namespace stoker {

/// `stoker machine`: what the system says of this machine, and of the load on it.
struct MachineReport {
  std::string tool_version;
  MachineFacts facts;
  MachineLoad load;
};

[[nodiscard]] std::string machine_text(const MachineReport& report);
/// JSON by docs/reference/machine-facts.md.
[[nodiscard]] std::string machine_json(const MachineReport& report);

}  // namespace stoker
