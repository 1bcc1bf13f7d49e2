#pragma once

#include <cstdint>
#include <vector>

#include "lower/storage_buffers.h"

namespace stoker {

/// Lifetimes of what names of the training loop hold across iterations: the batch on the device,
/// and what the step returned.
class BatchBuffers {
 public:
  BatchBuffers(const Lowering& lowering, StorageBuffers& storages)
      : l_(lowering), storages_(storages) {}

  /// Before the first iteration: batches that a loader holds on the device besides the current one.
  void keep_loader_buffers();

  /// `x = x.to(device)`: the new batch is there before the name lets the old one go.
  void load(MicroBatch micro);

  /// A micro-batch begins: what the one before returned is now old.
  void begin_outputs();
  /// Allocates a storage that the step returns.
  void allocate_output(std::uint32_t storage);
  /// `output = model(x)`: what the step before returned lives until the name is taken anew.
  void replace_outputs(MicroBatch micro);

  /// Inputs and outputs of an iteration's last micro-batch die in the next iteration, at the places
  /// noted. Called when the iteration is complete.
  void insert_frees_of_previous();

 private:
  const Lowering& l_;
  StorageBuffers& storages_;
  std::vector<BufferId> last_inputs_, outputs_, old_outputs_;
  bool outputs_replaced_ = false;
  std::size_t inputs_replaced_at_ = 0, outputs_replaced_at_ = 0;  ///< positions in the iteration
};

}  // namespace stoker
