#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lower/common/batch_buffers.h"
#include "lower/common/operator_kernels.h"
#include "lower/common/storage_buffers.h"
#include "lower/loop/gradients.h"

namespace stoker {

/// Walks the events of a step, once for each micro-batch, and emits what they do.
class StepWalk {
 public:
  StepWalk(const Lowering& lowering, StorageBuffers& storages, BatchBuffers& batch,
           Gradients& gradients, LibraryState& libraries)
      : l_(lowering),
        storages_(storages),
        batch_(batch),
        gradients_(gradients),
        kernels_(lowering.device.kernels(lowering, libraries, batch)) {}

  void micro_batch(MicroBatch micro);
  /// After the last micro-batch: waits for the gradients that collectives bring.
  void await_collectives();

 private:
  void event(std::uint32_t e);
  void enter(Phase phase);
  void allocate(std::uint32_t storage);
  /// Whether the storage of this event comes into being within the operator that follows.
  [[nodiscard]] bool is_left_to_operator(std::uint32_t e) const;
  void allocate_left(std::uint32_t storage);
  void run_operator(std::uint32_t e, std::uint32_t op_index);
  void scale_loss();

  const Lowering& l_;
  StorageBuffers& storages_;
  BatchBuffers& batch_;
  Gradients& gradients_;
  std::unique_ptr<OperatorKernels> kernels_;
  MicroBatch micro_;
  std::optional<BufferId> scaled_loss_;
  std::vector<std::uint32_t> left_;                  ///< storages that the next operator allocates
  std::uint32_t last_collective_ = StepPlan::kNone;  ///< an operator that nobody awaited yet
};

}  // namespace stoker
