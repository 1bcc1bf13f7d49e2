#include "lower/loop/micro_batches.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace stoker {
namespace {

/// The first ones differ by what is born in them. Two buffers take turns for what a micro-batch
/// leaves to the next one, so that pairs repeat rather than single ones.
constexpr int kFirstOfPairs = 2, kPair = 2;

/// Where a list of instructions, and what they name, ends at some moment.
struct Mark {
  std::size_t instructions, buffers;
};

Mark mark_of(const Lowering& l) {
  return {l.emit.instructions().size(), l.emit.program().buffers.size()};
}

bool same_work(const Kernel& a, const Kernel& b) {
  return a.kernel_class == b.kernel_class && a.unit == b.unit && a.phase == b.phase &&
         a.stream == b.stream && a.launches == b.launches && a.source == b.source &&
         a.flops == b.flops && a.read == b.read && a.written == b.written;
}

bool same_memory(const Buffer& a, const Buffer& b) {
  return a.bytes == b.bytes && a.role == b.role && a.stream == b.stream && a.optional == b.optional;
}

/// Whether the instructions between the marks are those of the pair before: kernels and buffers of
/// their own may have other numbers.
bool alike(const Lowering& l, const Mark& from, const Mark& middle, const Mark& to) {
  const std::size_t count = middle.instructions - from.instructions;
  if (to.instructions - middle.instructions != count) return false;
  const Program& program = l.emit.program();
  std::unordered_map<std::uint32_t, std::uint32_t> buffers;  // of the first, in the second
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& a = l.emit.instructions()[from.instructions + i];
    const Instruction& b = l.emit.instructions()[middle.instructions + i];
    if (a.kind != b.kind || a.when != b.when) return false;
    if (a.kind == InstructionKind::kLaunch) {
      if (!same_work(program.kernels[a.value], program.kernels[b.value])) return false;
    } else if (a.value != b.value) {
      const bool memory = a.kind == InstructionKind::kAllocate || a.kind == InstructionKind::kFree;
      const bool own = a.value >= from.buffers && b.value >= middle.buffers;
      if (!memory || !own || !same_memory(program.buffers[a.value], program.buffers[b.value]))
        return false;
      if (buffers.emplace(a.value, b.value).first->second != b.value) return false;
    }
  }
  return true;
}

}  // namespace

Repeated walk_micro_batches(StepWalk& walk, StorageBuffers& storages, const Lowering& lowering,
                            int count) {
  int next = 0;
  const auto walk_to = [&](int end) {
    for (; next < end; ++next) walk.micro_batch({next, count});
  };
  Repeated repeated;
  if (count > kMostWrittenOut && lowering.training()) {
    walk_to(kFirstOfPairs);
    const Mark from = mark_of(lowering);
    walk_to(kFirstOfPairs + 1);
    storages.take_turns();
    walk_to(kFirstOfPairs + kPair);
    const Mark middle = mark_of(lowering);
    walk_to(kFirstOfPairs + 2 * kPair);
    const Mark to = mark_of(lowering);
    if (alike(lowering, from, middle, to)) {
      // One or two are left, so that the turns go on and the last one is written out.
      const int times = (count - 1 - kFirstOfPairs - kPair) / kPair;
      repeated = {middle.instructions, to.instructions, times};
      next = kFirstOfPairs + kPair + times * kPair;
    }
  }
  walk_to(count);
  return repeated;
}

}  // namespace stoker
