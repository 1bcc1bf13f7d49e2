#include "lower/common/storage_buffers.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "lower/common/rnn_reserve.h"
#include "work/work.h"

namespace stoker {

StorageBuffers::StorageBuffers(const Lowering& lowering) : l_(lowering) {
  bytes_.reserve(l_.step.storages.size());
  for (std::size_t s = 0; s < l_.step.storages.size(); ++s) {
    bytes_.push_back(l_.sizes.storage(StorageId(static_cast<std::uint32_t>(s))));
  }
  buffers_.assign(l_.step.storages.size(), kNone);
  before_ = buffers_;
  size_rnn_reserves();
}

StorageBuffers::StorageBuffers(const Lowering& lowering, const StorageBuffers& training)
    : StorageBuffers(lowering) {
  const std::size_t count = std::min(buffers_.size(), training.buffers_.size());
  for (std::size_t s = 0; s < count; ++s) {
    switch (l_.step.storages[s].kind) {
      case StorageKind::kParameter:
      case StorageKind::kBuffer:
      case StorageKind::kGradient:
      case StorageKind::kPersistent:
        buffers_[s] = training.buffers_[s];
        break;
      default:
        break;
    }
  }
}

/// The RNN's reserve is written with 0 bytes, since only cuDNN knows its size.
void StorageBuffers::size_rnn_reserves() {
  std::vector<Work> work;
  for (const Operator& op : l_.step.operators) {
    const OperatorName& name = l_.step.name_of(op);
    if (name.family().kernel_class != KernelClass::kRnn || name.backward()) continue;
    work.clear();
    append_work(l_.step, op, l_.sizes, work);
    if (op.outputs.empty() || work.empty()) continue;
    const auto reserve = index(op.outputs.back().storage);
    const auto* shape = std::get_if<RnnShape>(&work.front().shape);
    if (shape != nullptr && bytes_[reserve].count() == 0) {
      bytes_[reserve] = rnn_reserve(*shape, work.front().dtype);
      if (l_.extra) continue;
      l_.emit.program().diagnostics.add("rnn_reserve_estimated", Severity::kNote,
                                        "cuDNN's reserve of recurrent layers is an estimate");
    }
  }
}

Buffer StorageBuffers::description(std::uint32_t storage, BufferRole role) const {
  return {bytes_[storage], role, l_.plan.streams[storage], false, l_.plan.modules[storage]};
}

BufferId StorageBuffers::renew(std::uint32_t storage, const Buffer& buffer) {
  if (turns_ && before_[storage] != kNone) {
    std::swap(before_[storage], buffers_[storage]);
    return of(storage);
  }
  const BufferId id = l_.emit.buffer(buffer);
  before_[storage] = std::exchange(buffers_[storage], static_cast<std::uint32_t>(id));
  return id;
}

BufferId StorageBuffers::ensure(std::uint32_t storage, BufferRole role) {
  return buffers_[storage] == kNone ? renew(storage, description(storage, role)) : of(storage);
}

void StorageBuffers::keep_model() {
  for (std::uint32_t s = 0; s < l_.step.storages.size(); ++s) {
    const StorageKind kind = l_.step.storages[s].kind;
    if (kind != StorageKind::kParameter && kind != StorageKind::kBuffer) continue;
    if (empty(s)) continue;
    buffers_[s] = static_cast<std::uint32_t>(l_.emit.keep(description(s, l_.plan.roles[s])));
  }
}

}  // namespace stoker
