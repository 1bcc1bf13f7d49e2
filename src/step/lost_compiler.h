#pragma once

#include <cstdint>

namespace stoker {

/// `Step::compiled_graphs` of a step that torch.compile runs and that was captured eagerly, since
/// the compiler could not be followed (docs/reference/step-file.md, "compiled").
inline constexpr std::int64_t kCompilerLost = -1;

}  // namespace stoker
