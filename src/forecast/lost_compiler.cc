#include "forecast/lost_compiler.h"

#include <algorithm>

#include "lower/loop/capture_notes.h"
#include "step/lost_compiler.h"

namespace stoker {

bool is_eager_for_compiled(const Program& program) {
  return program.diagnostics.count(kEagerForCompiled) > 0;
}

void widen_for_compiler(const Program& program, StepTime& time) {
  if (!is_eager_for_compiled(program)) return;
  time.band.below = 1 - (1 - time.band.below) * kLeastTimeCompiled;
  time.basis += "; the step is the eager one of a script that compiles it";
}

MemoryErrorCase widened_for_compiler(MemoryErrorCase error, const Program& program) {
  if (!is_eager_for_compiled(program)) return error;
  error.below.share = std::max(error.below.share, 1 - kLeastMemoryCompiled);
  for (Reach* reach : {&error.above, &error.need.reach})
    reach->share = std::max(reach->share, kMostMemoryCompiled - 1);
  error.basis += "; the step is the eager one of a script that compiles it";
  return error;
}

}  // namespace stoker
