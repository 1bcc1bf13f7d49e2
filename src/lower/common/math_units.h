#pragma once

#include "device/machine.h"
#include "program/job.h"
#include "program/program.h"
#include "work/work.h"

namespace stoker {

/// Which arithmetic unit of this device runs a kernel: tensor cores for half precision where there
/// are any, TF32 for FP32 where PyTorch's switches allow it (convolutions by default, matrix
/// products not: torch.backends.cudnn.allow_tf32 = True, torch.backends.cuda.matmul.allow_tf32 =
/// False).
[[nodiscard]] MathUnit unit_for(const Work& work, const Job& job, const DeviceFacts& device);

/// Says where a precision is computed on stand-ins, because the device lacks its units.
void note_units(const Job& job, const DeviceFacts& device, Diagnostics& diagnostics);

}  // namespace stoker
