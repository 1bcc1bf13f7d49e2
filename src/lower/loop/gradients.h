#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lower/common/storage_buffers.h"

namespace stoker {

/// Lifetimes of gradients, and what happens to them until the optimizer's step: accumulation over
/// micro-batches, DDP's buckets, zero_grad().
///
/// The backward's first gradient of a parameter becomes its `.grad`; while there is a `.grad`, a
/// new gradient is a temporary that is added to it
/// (torch/csrc/autograd/functions/accumulate_grad.h).
class Gradients {
 public:
  Gradients(const Lowering& lowering, StorageBuffers& storages)
      : l_(lowering), storages_(storages) {}

  /// Before the first iteration.
  void keep_buckets();
  /// In an extra pass: the buckets are those of the training.
  void share_buckets(const Gradients& training);

  /// A gradient comes into being during the backward.
  void allocate(std::uint32_t storage, MicroBatch micro);
  /// After operator event `e` wrote `storage` on `stream`: if that completes a gradient, it is
  /// accumulated into `.grad` there, and its bucket is told.
  void written(std::uint32_t storage, std::uint32_t e, MicroBatch micro, Stream stream);
  /// Without bucket views the averaged gradients are copied back into `.grad` at the end of the
  /// backward.
  void copy_buckets_back();
  /// zero_grad(): lets the gradients go, or fills them with zeros. Before the forward or between it
  /// and the backward these are the gradients of the iteration before; after the step, its own.
  void zero_before_use();
  void zero_after_step();

 private:
  /// Whether a gradient that the backward makes now is a temporary beside `.grad`, and in which
  /// iterations.
  struct Birth {
    bool temporary = false;
    When when = When::kAlways;
  };
  [[nodiscard]] Birth birth(MicroBatch micro) const;
  void release(InstructionKind kind);
  void fill(When when);
  BufferId ensure_temporary(std::uint32_t storage);
  void tell_buckets(const std::vector<std::uint32_t>& parameters);

  const Lowering& l_;
  StorageBuffers& storages_;
  std::unordered_map<std::uint32_t, BufferId> temporaries_;
  std::vector<std::uint32_t> bucket_of_;  ///< by parameter
  std::vector<std::uint32_t> missing_;    ///< by bucket: gradients not ready yet
};

}  // namespace stoker
