#pragma once

#include "forecast/knowledge.h"
#include "program/program.h"
#include "timing/common/step_time.h"

namespace stoker {

/// Whether the program is the eager form of a step that its script compiles.
[[nodiscard]] bool is_eager_for_compiled(const Program& program);

/// The band of time reaches down to what a compiled step may take, and its basis says so.
void widen_for_compiler(const Program& program, StepTime& time);

/// The band of memory reaches to what a compiled step may need, and its basis says so.
[[nodiscard]] MemoryErrorCase widened_for_compiler(MemoryErrorCase error, const Program& program);

}  // namespace stoker
