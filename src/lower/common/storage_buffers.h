#pragma once

#include <cstdint>
#include <vector>

#include "lower/common/lowering.h"

namespace stoker {

/// Which buffer of the Program each storage of the step lies in at the moment, and how large it is.
class StorageBuffers {
 public:
  explicit StorageBuffers(const Lowering& lowering);
  /// In an extra pass over a step with the same storages: parameters, buffers, gradients and what
  /// persists are those of the training.
  StorageBuffers(const Lowering& lowering, const StorageBuffers& training);

  [[nodiscard]] Bytes bytes(std::uint32_t storage) const { return bytes_[storage]; }
  /// Storages of zero bytes have no buffer.
  [[nodiscard]] bool empty(std::uint32_t storage) const { return bytes_[storage].count() == 0; }
  [[nodiscard]] BufferId of(std::uint32_t storage) const { return BufferId(buffers_[storage]); }

  /// A buffer as this storage would need one.
  [[nodiscard]] Buffer description(std::uint32_t storage, BufferRole role) const;
  /// Another buffer for the storage, which it lies in from now on; while buffers take turns, the
  /// one that it lay in before the last.
  BufferId renew(std::uint32_t storage, const Buffer& buffer);
  /// From now on two buffers of a storage that is renewed take turns.
  void take_turns() { turns_ = true; }
  /// The storage's buffer, made at the first call.
  BufferId ensure(std::uint32_t storage, BufferRole role);
  /// Allocates parameters and buffers before the first iteration.
  void keep_model();

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  void size_rnn_reserves();

  const Lowering& l_;
  std::vector<Bytes> bytes_;            ///< by storage
  std::vector<std::uint32_t> buffers_;  ///< by storage: its BufferId now
  std::vector<std::uint32_t> before_;   ///< by storage: the one before, where it was renewed
  bool turns_ = false;
};

}  // namespace stoker
