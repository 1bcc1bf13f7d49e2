#pragma once

#include <vector>

#include "lower/common/batch_buffers.h"
#include "lower/common/lowering.h"
#include "lower/common/operator_kernels.h"
#include "lower/common/storage_buffers.h"
#include "lower/loop/gradients.h"

namespace stoker {

/// Emits a whole Program: setup and iteration when constructed, then the extra passes, which run
/// over the same parameters, gradients and optimizer state.
class TrainingRun {
 public:
  TrainingRun(const Step& step, const StepPlan& plan, const Sizes& sizes, const Job& job,
              const DeviceBackend& device);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  /// The epoch's last, smaller batch: a whole training iteration of `batch` samples, whose sizes
  /// are `sizes`. With accumulation each of its micro-batches is as small.
  void add_last_batch(std::int64_t batch, const Sizes& sizes);

  /// Forward and loss alone, between epochs. The gradients of the last iteration are alive unless
  /// zero_grad() came after the step; so are its batch and its loss, which names of the training
  /// loop hold until training goes on. The validation's own last batch and loss die with it.
  void add_validation(const Step& evaluation, const Sizes& sizes);

  [[nodiscard]] Program take() { return std::move(program_); }

 private:
  void iteration();

  const Job& job_;
  Program program_;
  Emitter emit_;
  const StepPlan& plan_;
  const Lowering l_;
  StorageBuffers storages_;
  BatchBuffers batch_;
  Gradients gradients_;
  LibraryState libraries_;
  std::vector<Instruction> update_;  ///< of all but the first iteration
};

}  // namespace stoker
