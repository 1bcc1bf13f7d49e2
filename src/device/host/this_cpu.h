#pragma once

#include "base/result.h"
#include "device/machine.h"
#include "system/system_files.h"

namespace stoker {

/// The processor of a computer as a device to train on, by what the system's files say of it
/// (/proc/cpuinfo, the caches under /sys): name, cores and memory that this process may use, width
/// of the vector units, clock, caches. The peak follows from them; memory bandwidth, which no file
/// tells, is a stated guess. Nothing is measured. Refused when not even the memory is known.
[[nodiscard]] Result<Cpu> cpu_from(const SystemFiles& files, const Host& host);

/// The processor of this computer.
[[nodiscard]] Result<Cpu> this_cpu(const Host& host);

/// FLOP/s of fused multiply-adds in FP32: cores x clock x lanes x 2, on two units a core. 0 when
/// clock or width is unknown.
[[nodiscard]] double vector_peak(double cores, double clock_mhz, int simd_bits);

/// The host around a CPU whose machine file has no [host]: its own cores and memory.
[[nodiscard]] Host host_of_cpu(const Cpu& cpu);

}  // namespace stoker
