#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "system/system_files.h"

namespace stoker {

/// Caches that hold data, in bytes; 0: not told.
struct ProcessorCaches {
  Bytes l1{}, l2{};    ///< of one core
  Bytes l3{};          ///< of one group of processors that share it
  int l3_sharing = 0;  ///< processors (as the kernel numbers them) in such a group
};

/// The processor of a computer by /proc/cpuinfo and /sys/devices/system/cpu. Nothing is measured;
/// what no file tells is empty or 0.
struct Processor {
  std::string name{};      ///< "AMD EPYC 7B13"; of many Arm machines the kernel tells none
  std::string vendor{};    ///< "GenuineIntel"; of Arm the implementer's number, "0x41"
  int logical_cores = 0;   ///< online, hardware threads counted singly
  int physical_cores = 0;  ///< that these are threads of
  /// Threads that share one core's vector units, as /proc/cpuinfo has it; 1 where it says nothing.
  double threads_per_core = 1;
  int simd_bits = 0;                ///< of the widest vector unit: 128, 256, 512
  std::vector<std::string> simd{};  ///< instruction sets that decide a kernel: "avx2", "amx_bf16"
  double clock_mhz =
      0;  ///< the highest that the governor allows, else by the name, else at present
  ProcessorCaches caches{};
};

[[nodiscard]] Processor processor_from(const SystemFiles& files);

/// The processor of this computer. Where the kernel tells no name, it has the architecture's
/// ("aarch64").
[[nodiscard]] Processor this_processor();

/// Whether two descriptions can be of one processor: by name, and by vector width and caches of a
/// core where both tell them. Cores and memory do not count: a quota, an affinity or a container's
/// limit changes them, and the processor stays the same.
[[nodiscard]] bool same_processor(const Processor& a, const Processor& b);

}  // namespace stoker
