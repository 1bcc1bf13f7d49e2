#pragma once

#include "device/device_facts.h"

namespace stoker {

/// A processor that trains, with the memory around it.
struct Cpu : DeviceFacts {
  int cores = 0;         ///< that the process may use
  int simd_bits = 0;     ///< of the widest vector unit: 128, 256, 512; 0 = unknown
  double clock_mhz = 0;  ///< 0 = unknown
  Bytes l1, l2;          ///< caches of one core; 0 = unknown
  Bytes l3;              ///< shared by all cores; 0 = unknown
};

}  // namespace stoker
