#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

/// One execution of a module in the forward: its events, from the first allocation for its first
/// operator to its last operator.
struct ModuleRun {
  std::string module;
  std::size_t begin = 0;  ///< position in Step::events
  std::size_t end = 0;    ///< one behind the last
};

/// The modules meant by `names` (a name, "NAME.*" for its children, or "blocks"), without those
/// inside of another. A name that no operator of the step carries is refused with the nearest.
[[nodiscard]] Result<std::vector<std::string>> resolve_modules(
    const Step& step, const std::vector<std::string>& names);

/// The executions of `modules` in the forward of the step, in order. A module that is called again
/// at once (a shared layer in a loop) is told apart by its operators repeating; one that is
/// interrupted by a layer registered elsewhere (an activation shared by all blocks) stays one.
[[nodiscard]] std::vector<ModuleRun> module_runs(const Step& step,
                                                 const std::vector<std::string>& modules);

}  // namespace stoker
