#pragma once

#include <cstdint>

#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

enum class CompiledFor : std::uint8_t { kGpu, kCpu };

/// Whether torch.compile lays the convolutions of a step's graphs out channels-last, whatever the
/// model's own layout: Inductor's decide_layout_opt (torch/_inductor/graph.py, PyTorch 2.13). On a
/// CPU it does always, on a GPU unless one is grouped, one makes half as many channels as it reads
/// or fewer, all are at most 64 wide, or they are few among many operators. It decides for each
/// graph; here one answer is for all of them.
[[nodiscard]] bool compiled_channels_last(const Step& step, const Sizes& sizes, CompiledFor device);

}  // namespace stoker
