#include "lower/common/batch_buffers.h"

#include <utility>

namespace stoker {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBf16;
}

}  // namespace

void BatchBuffers::keep_loader_buffers() {
  if (!l_.job.prefetching_loader) return;
  for (const NamedTensor& input : l_.step.inputs) {
    const auto s = static_cast<std::uint32_t>(index(input.storage));
    if (storages_.empty(s)) continue;
    Buffer b = storages_.description(s, BufferRole::kInput);
    b.stream = Stream::kCopy;
    if (l_.extra) {
      loader_.push_back(l_.emit.buffer(b));
      l_.emit.allocate(loader_.back(), When::kFirst);
    } else {
      l_.emit.keep(b);
    }
  }
}

void BatchBuffers::keep_inputs() {
  for (const NamedTensor& input : l_.step.inputs) {
    const auto s = static_cast<std::uint32_t>(index(input.storage));
    if (storages_.empty(s)) continue;
    const BufferId id = storages_.renew(s, storages_.description(s, BufferRole::kInput));
    if (l_.extra) {
      loader_.push_back(id);
      l_.emit.allocate(id, When::kFirst);
    } else {
      l_.emit.program().setup.push_back(
          {InstructionKind::kAllocate, When::kAlways, static_cast<std::uint32_t>(id)});
    }
  }
}

void BatchBuffers::load(MicroBatch micro) {
  if (!l_.device.is_apart()) return;
  if (l_.job.prefetching_loader) load_prefetched(micro);
  else load_plain(micro);
  if (micro.first()) inputs_replaced_at_ = l_.emit.instructions().size();
}

void BatchBuffers::take_input(std::uint32_t storage, MicroBatch micro) {
  Buffer b = storages_.description(storage, BufferRole::kInput);
  if (l_.job.prefetching_loader) b.stream = Stream::kCopy;
  const BufferId id = storages_.renew(storage, b);
  l_.emit.allocate(id);
  if (micro.last()) last_inputs_.push_back(id);
}

void BatchBuffers::copy_in(DType dtype, Bytes bytes, std::int64_t elements) {
  const bool side_stream = l_.job.copy == CopyWay::kOverlapped || l_.job.prefetching_loader;
  Kernel copy;
  copy.kernel_class = KernelClass::kHostToDevice;
  copy.dtype = dtype;
  copy.stream = side_stream ? Stream::kCopy : Stream::kCompute;
  copy.read = copy.written = bytes;
  copy.elements = elements;
  l_.emit.launch(copy);
}

void BatchBuffers::load_plain(MicroBatch micro) {
  for (const NamedTensor& input : l_.step.inputs) {
    const auto s = static_cast<std::uint32_t>(index(input.storage));
    if (storages_.empty(s)) continue;
    const BufferId before = storages_.of(s);
    take_input(s, micro);
    copy_in(l_.step.types[index(input.type)].dtype, storages_.bytes(s),
            l_.sizes.elements(input.type));
    if (!micro.first()) l_.emit.free(before);
  }
}

/// timm's PrefetchLoader (timm/data/loader.py): on a side stream the batch comes as bytes, becomes
/// floats in another tensor, and is normalised there; targets come as they are. What is loaded at
/// the begin of a step is the batch of the next one; its own, of the same size, is the buffer of
/// keep_loader_buffers.
void BatchBuffers::load_prefetched(MicroBatch micro) {
  struct Raw {
    std::uint32_t storage;
    BufferId id;
    Bytes bytes;
  };
  std::vector<Raw> raw;
  std::vector<BufferId> before;
  for (const NamedTensor& input : l_.step.inputs) {
    const auto s = static_cast<std::uint32_t>(index(input.storage));
    if (storages_.empty(s)) continue;
    before.push_back(storages_.of(s));
    const DType dtype = l_.step.types[index(input.type)].dtype;
    const std::int64_t elements = l_.sizes.elements(input.type);
    if (!is_floating(dtype)) {
      take_input(s, micro);
      copy_in(dtype, storages_.bytes(s), elements);
      continue;
    }
    const Bytes bytes(elements * size_of(DType::kU8));
    const Buffer buffer{bytes, BufferRole::kInput, Stream::kCopy, false, ModuleId{}};
    raw.push_back({s, l_.emit.buffer(buffer), bytes});
    l_.emit.allocate(raw.back().id);
    copy_in(DType::kU8, bytes, elements);
  }
  for (const Raw& r : raw) {
    take_input(r.storage, micro);
    normalise(r.bytes, storages_.bytes(r.storage));
    l_.emit.free(r.id);
  }
  if (micro.first()) return;
  for (const BufferId id : before) l_.emit.free(id);
}

/// `.to(float)`, `.sub_(mean)`, `.div_(std)`.
void BatchBuffers::normalise(Bytes raw, Bytes floats) {
  Kernel cast = kernel_over(KernelClass::kCopy, floats, 1, 1);
  cast.read = raw;
  cast.stream = Stream::kCopy;
  l_.emit.launch(cast);
  Kernel in_place = kernel_over(KernelClass::kElementwise, floats, 1, 1);
  in_place.stream = Stream::kCopy;
  l_.emit.launch(in_place);
  l_.emit.launch(in_place);
}

Bytes BatchBuffers::copied_bytes() const {
  Bytes sum;
  if (!l_.device.is_apart()) return sum;
  for (const NamedTensor& input : l_.step.inputs) {
    const bool raw =
        l_.job.prefetching_loader && is_floating(l_.step.types[index(input.type)].dtype);
    sum += raw ? Bytes(l_.sizes.elements(input.type) * size_of(DType::kU8))
               : storages_.bytes(static_cast<std::uint32_t>(index(input.storage)));
  }
  return sum;
}

void BatchBuffers::begin_outputs() {
  if (l_.job.drop_output) drop_outputs();
  old_outputs_ = std::exchange(outputs_, {});
  outputs_replaced_ = false;
}

void BatchBuffers::drop_outputs() {
  for (const BufferId id : outputs_) l_.emit.free(id);
  outputs_.clear();
}

void BatchBuffers::allocate_output(std::uint32_t storage) {
  const BufferId id = storages_.renew(storage, storages_.description(storage, BufferRole::kOutput));
  outputs_.push_back(id);
  l_.emit.allocate(id);
}

void BatchBuffers::hold_with_outputs(const std::vector<BufferId>& ids) {
  outputs_.insert(outputs_.end(), ids.begin(), ids.end());
}

void BatchBuffers::replace_outputs(MicroBatch micro) {
  if (std::exchange(outputs_replaced_, true)) return;
  if (micro.first()) outputs_replaced_at_ = l_.emit.instructions().size();
  for (const BufferId id : old_outputs_) l_.emit.free(id);
  old_outputs_.clear();
}

void BatchBuffers::insert_frees_of(const BatchBuffers& before) {
  std::vector<Instruction>& all = l_.emit.instructions();
  const auto insert = [&](std::size_t at, const std::vector<BufferId>& ids) {
    std::vector<Instruction> frees;
    for (const BufferId id : ids) {
      frees.push_back(
          {InstructionKind::kFreePrevious, When::kAlways, static_cast<std::uint32_t>(id)});
    }
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), frees.begin(), frees.end());
  };
  // The later place first, so that the earlier stays true.
  insert(outputs_replaced_at_, before.outputs_);
  insert(inputs_replaced_at_, before.last_inputs_);
}

void BatchBuffers::free_all(Emitter& into) const {
  for (const auto* ids : {&outputs_, &last_inputs_, &loader_}) {
    for (const BufferId id : *ids) into.free(id);
  }
}

}  // namespace stoker
