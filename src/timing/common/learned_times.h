#pragma once

#include <memory>
#include <optional>

#include "base/durations.h"
#include "device/gpu.h"
#include "program/program.h"

namespace stoker {

/// Times of kernels on one GPU as measurements taught them.
class LearnedKernels {
 public:
  virtual ~LearnedKernels() = default;

  /// Beyond the floor; nothing where nothing is known of the kernel, so that rules speak.
  [[nodiscard]] virtual std::optional<Seconds> time_of(const Kernel& kernel) const = 0;
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
