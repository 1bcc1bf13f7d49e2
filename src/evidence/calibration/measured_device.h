#pragma once

#include <string>

#include "base/units.h"
#include "json/fields.h"

namespace stoker {

/// The device that something was measured on, as the measuring process saw it. Zero: not told.
struct MeasuredDevice {
  bool cpu = false;  ///< else a GPU
  std::string name;  ///< "NVIDIA A100-SXM4-40GB", "Intel(R) Xeon(R) Processor"
  int cores = 0;     ///< that the process may use; of a GPU its multiprocessors
  int simd_bits = 0;
  Bytes l1{}, l2{}, l3{};
  Bytes memory{};   ///< all of it
  Bytes usable{};   ///< of a GPU: what cudaMemGetInfo calls total
  Bytes context{};  ///< the process before the model, or the CUDA context
  double clock_mhz = 0;
  int compute_capability = 0;  ///< 80 for 8.0
  bool mig = false;            ///< a slice of a GPU
};

/// Reads the object "device" of a rows file.
[[nodiscard]] MeasuredDevice read_measured_device(json::Fields& fields, const json::Value& root);

}  // namespace stoker
