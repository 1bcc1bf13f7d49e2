#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/units.h"

namespace stoker {

struct Calibration;

/// Dense peak rates without sparsity, in FLOP/s; 0 = the device has no such unit.
struct PeakRates {
  double fp32 = 0, fp16 = 0, tf32_tensor = 0, fp16_tensor = 0, bf16_tensor = 0;
};

/// What is known of any device, a GPU or a CPU: by its data sheet, or as a machine file corrects
/// it.
struct DeviceFacts {
  std::string name;  ///< "V100-SXM2-16GB", a key of the catalogue; "Intel(R) Xeon(R) Processor"
  PeakRates peak;
  Bytes memory;          ///< nameplate of a GPU; all of a CPU's machine
  Bytes usable_memory;   ///< what cudaMemGetInfo calls total, below the nameplate; a CPU's memory
  double bandwidth = 0;  ///< bytes/s
  double tdp_watts = 0;
  std::string source;  ///< where the figures come from
  std::string notes;
  bool calibrated = false;  ///< a machine file carries measurements of this very device
  /// Those measurements (device/calibration_data.h); null: none.
  std::shared_ptr<const Calibration> calibration;
  /// Bytes outside PyTorch's allocator: a GPU's context, kernels and libraries, a CPU's process
  /// before its model. nullopt: default.
  std::optional<Bytes> context_memory;
  double price_per_hour = 0;  ///< 0 = unknown
  /// What the name that was typed left open and how it was settled ("v100 taken as ..."), for the
  /// report's "Assumed" line; empty when nothing was.
  std::string assumption;
};

}  // namespace stoker
