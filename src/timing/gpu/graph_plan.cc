#include "timing/gpu/graph_plan.h"

#include <algorithm>
#include <cstdint>

namespace stoker {

GraphPlan::GraphPlan(const Program& program, const std::vector<Instruction>& instructions)
    : on_(program.cuda_graphs && &instructions == &program.iteration) {
  if (!on_) return;
  with_optimizer_ =
      std::none_of(instructions.begin(), instructions.end(),
                   [](const Instruction& in) { return in.kind == InstructionKind::kSynchronize; });
  launched_.resize(instructions.size(), 0);
  std::size_t* open = nullptr;
  bool repeats = false;  // the open graph is launched in each repetition
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& in = instructions[i];
    if (in.kind == InstructionKind::kSynchronize) open = nullptr;
    if (in.kind != InstructionKind::kLaunch || in.value >= program.kernels.size()) continue;
    const Kernel& kernel = program.kernels[in.value];
    if (!holds(kernel)) {
      open = nullptr;
      continue;
    }
    const std::int64_t times = program.repeated.times_of(i);
    if (open == nullptr || (repeats && times == 1)) {  // what follows repetitions runs once
      open = &launched_[i];
      repeats = times > 1;
    }
    // A graph that is launched before the repetitions holds the kernels of all of them.
    *open += kernel.launches * static_cast<std::size_t>(repeats ? 1 : times);
  }
}

bool GraphPlan::holds(const Kernel& kernel) const {
  return on_ && kernel.kernel_class != KernelClass::kHostToDevice &&
         kernel.stream != Stream::kCopy &&
         (with_optimizer_ || kernel.phase != StepPhase::kOptimizer);
}

}  // namespace stoker
