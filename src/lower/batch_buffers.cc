#include "lower/batch_buffers.h"

#include <utility>

namespace stoker {

void BatchBuffers::keep_loader_buffers() {
  for (const NamedTensor& input : l_.step.inputs) {
    const auto s = static_cast<std::uint32_t>(index(input.storage));
    l_.emit.program().input_bytes += storages_.bytes(s);
    for (int copy = 0; copy < l_.job.loader_buffers; ++copy) {
      Buffer b = storages_.description(s, BufferRole::kInput);
      b.stream = Stream::kCopy;
      if (b.bytes.count() > 0) l_.emit.keep(b);
    }
  }
}

void BatchBuffers::load(MicroBatch micro) {
  for (const NamedTensor& input : l_.step.inputs) {
    const auto s = static_cast<std::uint32_t>(index(input.storage));
    if (storages_.empty(s)) continue;
    const BufferId before = storages_.of(s);
    const BufferId id = storages_.renew(s, BufferRole::kInput);
    l_.emit.allocate(id);
    Kernel copy;
    copy.kernel_class = KernelClass::kHostToDevice;
    copy.dtype = l_.step.types[index(input.type)].dtype;
    copy.stream = l_.job.overlapped_copy ? Stream::kCopy : Stream::kCompute;
    copy.read = copy.written = storages_.bytes(s);
    copy.elements = l_.sizes.elements(input.type);
    l_.emit.launch(copy);
    if (!micro.first()) l_.emit.free(before);
    if (micro.last()) last_inputs_.push_back(id);
  }
  if (micro.first()) inputs_replaced_at_ = l_.emit.instructions().size();
}

void BatchBuffers::begin_outputs() {
  old_outputs_ = std::exchange(outputs_, {});
  outputs_replaced_ = false;
}

void BatchBuffers::allocate_output(std::uint32_t storage) {
  const BufferId id = storages_.renew(storage, BufferRole::kOutput);
  outputs_.push_back(id);
  l_.emit.allocate(id);
}

void BatchBuffers::replace_outputs(MicroBatch micro) {
  if (std::exchange(outputs_replaced_, true)) return;
  if (micro.first()) outputs_replaced_at_ = l_.emit.instructions().size();
  for (const BufferId id : old_outputs_) l_.emit.free(id);
  old_outputs_.clear();
}

void BatchBuffers::insert_frees_of_previous() {
  std::vector<Instruction>& all = l_.emit.instructions();
  const auto insert = [&](std::size_t at, const std::vector<BufferId>& ids) {
    std::vector<Instruction> frees;
    for (const BufferId id : ids) {
      frees.push_back(
          {InstructionKind::kFreePrevious, When::kAlways, static_cast<std::uint32_t>(id)});
    }
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), frees.begin(), frees.end());
  };
  insert(outputs_replaced_at_, outputs_);  // the later place first, so that the earlier stays true
  insert(inputs_replaced_at_, last_inputs_);
}

}  // namespace stoker
