#pragma once

#include <string>
#include <vector>

#include "device/resolve/machine_file.h"
#include "evidence/training/learning.h"

namespace stoker {

struct LearnedMachine {
  MachineFile file;  ///< as it was where nothing is worth keeping
  Learning learning;
};

/// A machine file with what the runs taught folded in. Rows, figures and everything written by hand
/// stay; of the learned corrections those of the same threads and classes are replaced.
[[nodiscard]] LearnedMachine learned_machine(MachineFile file, const std::vector<ComparedRun>& runs,
                                             const std::string& date);

}  // namespace stoker
