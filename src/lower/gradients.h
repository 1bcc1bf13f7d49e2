#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "lower/storage_buffers.h"

namespace stoker {

/// Lifetimes of gradients, and what happens to them until the optimizer's step: accumulation over
/// micro-batches, DDP's buckets.
class Gradients {
 public:
  Gradients(const Lowering& lowering, StorageBuffers& storages);

  /// Before the first iteration.
  void keep_buckets();

  /// A gradient comes into being during the backward.
  void allocate(std::uint32_t storage, MicroBatch micro);
  /// After operator event `e` wrote `storage`: if that completes a gradient, it is accumulated into
  /// `.grad`, and its bucket is told.
  void written(std::uint32_t storage, std::uint32_t e, MicroBatch micro);
  /// Without bucket views the averaged gradients are copied back into `.grad` at the end of the
  /// backward.
  void copy_buckets_back();
  /// zero_grad(), before the forward (kFreePrevious) or after the step (kFree).
  void zero(InstructionKind kind);

 private:
  BufferId ensure_temporary(std::uint32_t storage);
  void tell_buckets(const std::vector<std::uint32_t>& parameters);

  const Lowering& l_;
  StorageBuffers& storages_;
  /// Gradient storage -> parameters; recurrent layers have one for many.
  std::map<std::uint32_t, std::vector<std::uint32_t>> parameters_of_;
  std::unordered_map<std::uint32_t, BufferId> temporaries_;
  std::vector<std::uint32_t> bucket_of_;  ///< by parameter
  std::vector<std::uint32_t> missing_;    ///< by bucket: gradients not ready yet
};

}  // namespace stoker
