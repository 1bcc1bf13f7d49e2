#pragma once

#include <cstdint>
#include <vector>

#include "lower/common/storage_buffers.h"

namespace stoker {

/// Lifetimes of what names of the training loop hold across iterations: the batch on the device,
/// and what the step returned.
class BatchBuffers {
 public:
  BatchBuffers(const Lowering& lowering, StorageBuffers& storages)
      : l_(lowering), storages_(storages) {}

  /// The next batch, which timm's PrefetchLoader holds on the device while the loop works on the
  /// current one: there before the first iteration, or in an extra pass from its begin to its end.
  void keep_loader_buffers();

  /// Where the device shares the host's memory, the batch is the loader's own tensor: there before
  /// the first iteration, or in an extra pass from its begin to its end. Nothing is copied.
  void keep_inputs();

  /// `x = x.to(device)`: the new batch is there before the name lets the old one go.
  void load(MicroBatch micro);
  /// Bytes copied from host to device for one batch.
  [[nodiscard]] Bytes copied_bytes() const;

  /// A micro-batch begins: what the one before returned is now old.
  void begin_outputs();
  /// `del output, loss`: what the step returned dies here.
  void drop_outputs();
  /// Allocates a storage that the step returns.
  void allocate_output(std::uint32_t storage);
  /// These live as long as what the step returned.
  void hold_with_outputs(const std::vector<BufferId>& ids);
  /// `output = model(x)`: what the step before returned lives until the name is taken anew.
  void replace_outputs(MicroBatch micro);

  /// What `before` left alive (inputs and outputs of its last micro-batch) dies where this one's
  /// names were taken. For the training `before` is itself, one iteration ago. Called when all is
  /// emitted.
  void insert_frees_of(const BatchBuffers& before);
  /// What the last micro-batch leaves alive dies.
  void free_all(Emitter& into) const;

 private:
  void load_plain(MicroBatch micro);
  void load_prefetched(MicroBatch micro);
  void take_input(std::uint32_t storage, MicroBatch micro);
  void copy_in(DType dtype, Bytes bytes, std::int64_t elements);
  void normalise(Bytes raw, Bytes floats);

  const Lowering& l_;
  StorageBuffers& storages_;
  std::vector<BufferId> loader_, last_inputs_, outputs_, old_outputs_;
  bool outputs_replaced_ = false;
  std::size_t inputs_replaced_at_ = 0, outputs_replaced_at_ = 0;  ///< positions in the iteration
};

}  // namespace stoker
