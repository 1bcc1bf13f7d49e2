#pragma once

#include <cstdint>

namespace stoker {

/// `Step::compiled_graphs` of a step that torch.compile runs and that was captured eagerly, since
/// the compiler could not be followed (docs/reference/step-file.md, "compiled").
inline constexpr std::int64_t kCompilerLost = -1;

/// Shares of the eager step's time and memory that a compiled one takes at least, and at most of
/// the memory: forecasts of both forms of GPT-2 large, ResNet-18 and two small networks on A100 and
/// T4 gave 0.29 (launching kernels limits) to 0.99 of the time and 0.93 to 1.08 of the memory.
/// Priors: no measured row checks them.
inline constexpr double kLeastTimeCompiled = 0.3;
inline constexpr double kLeastMemoryCompiled = 0.9, kMostMemoryCompiled = 1.1;

}  // namespace stoker
