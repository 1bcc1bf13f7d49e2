#pragma once

#include <memory>

#include "device/gpu.h"
#include "program/program.h"

namespace stoker {

/// Times of kernels on one GPU as measurements taught them.
class LearnedKernels {
 public:
  virtual ~LearnedKernels() = default;

  /// Seconds beyond the floor; negative where nothing is known of the kernel, so that rules speak.
  [[nodiscard]] virtual double seconds_of(const Kernel& kernel) const = 0;
};

/// What measurements taught of kernels on all GPUs. Cost models of GPUs take it as it comes, so
/// that how it was learned is no concern of theirs.
class LearnedTimes {
 public:
  virtual ~LearnedTimes() = default;

  /// Valid while this lives.
  [[nodiscard]] virtual std::shared_ptr<const LearnedKernels> of_gpu(const Gpu& gpu) const = 0;
};

}  // namespace stoker
