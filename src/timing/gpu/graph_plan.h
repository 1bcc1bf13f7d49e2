#pragma once

#include <cstddef>
#include <vector>

#include "program/program.h"

namespace stoker {

/// Which kernels of a step CUDA graphs hold, and where each graph is launched. Passes of other
/// sizes than the iteration's run eagerly.
class GraphPlan {
 public:
  /// `instructions`: those of the program's iteration, or of a pass.
  GraphPlan(const Program& program, const std::vector<Instruction>& instructions);

  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] bool holds(const Kernel& kernel) const;
  /// Kernels of the graph that is launched at instruction `i`; 0: none is.
  [[nodiscard]] std::size_t launched_at(std::size_t i) const { return on_ ? launched_[i] : 0; }

 private:
  bool on_ = false;
  bool with_optimizer_ = false;  ///< a step that never waits for the device is one graph with it
  std::vector<std::size_t> launched_;
};

}  // namespace stoker
