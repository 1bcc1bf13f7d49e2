#include "forecast/lost_compiler.h"

#include <algorithm>

#include "lower/loop/capture_notes.h"

namespace stoker {
namespace {

/// Shares of the eager step's time and memory that a compiled one takes at least, and at most of
/// the memory: forecasts of both forms of GPT-2 large, ResNet-18 and two small networks on A100 and
/// T4 gave 0.29 (launching kernels limits) to 0.99 of the time and 0.93 to 1.08 of the memory.
/// Priors: no measured row checks them.
constexpr double kLeastTime = 0.3, kLeastMemory = 0.9, kMostMemory = 1.1;

}  // namespace

bool is_eager_for_compiled(const Program& program) {
  return program.diagnostics.count(kEagerForCompiled) > 0;
}

void widen_for_compiler(const Program& program, StepTime& time) {
  if (!is_eager_for_compiled(program)) return;
  time.band.below = 1 - (1 - time.band.below) * kLeastTime;
  time.basis += "; the step is the eager one of a script that compiles it";
}

MemoryErrorCase widened_for_compiler(MemoryErrorCase error, const Program& program) {
  if (!is_eager_for_compiled(program)) return error;
  error.below.share = std::max(error.below.share, 1 - kLeastMemory);
  for (Reach* reach : {&error.above, &error.need.reach})
    reach->share = std::max(reach->share, kMostMemory - 1);
  error.basis += "; the step is the eager one of a script that compiles it";
  return error;
}

}  // namespace stoker
