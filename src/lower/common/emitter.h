#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "program/program.h"

namespace stoker {

/// Appends to a Program; the one place that knows how buffers, kernels and instructions hang
/// together.
class Emitter {
 public:
  explicit Emitter(Program& program) : Emitter(program, program.iteration) {}
  /// Instructions go to `into` (an extra pass), buffers and kernels to the program.
  Emitter(Program& program, std::vector<Instruction>& into) : program_(program), into_(into) {}

  BufferId buffer(Buffer b) {
    program_.buffers.push_back(b);
    return BufferId(static_cast<std::uint32_t>(program_.buffers.size() - 1));
  }
  void allocate(BufferId id, When when = When::kAlways) {
    emit(InstructionKind::kAllocate, id, when);
  }
  void free(BufferId id, When when = When::kAlways) { emit(InstructionKind::kFree, id, when); }
  void free_previous(BufferId id) { emit(InstructionKind::kFreePrevious, id, When::kAlways); }
  void launch(Kernel kernel, When when = When::kAlways) {
    kernel.phase = phase_;
    program_.kernels.push_back(kernel);
    emit(InstructionKind::kLaunch,
         KernelId(static_cast<std::uint32_t>(program_.kernels.size() - 1)), when);
  }
  void empty_cache(When when) { into_.push_back({InstructionKind::kEmptyCache, when, 0}); }
  void synchronize() { into_.push_back({InstructionKind::kSynchronize, When::kAlways, 0}); }
  /// The compute stream waits for what `op` (an operator of the step) has launched.
  void await_communication(std::uint32_t op) {
    into_.push_back({InstructionKind::kAwaitCommunication, When::kAlways, op});
  }
  void bucket_ready(std::size_t bucket) {
    into_.push_back(
        {InstructionKind::kBucketReady, When::kAlways, static_cast<std::uint32_t>(bucket)});
  }
  /// Allocates once before the first iteration.
  BufferId keep(Buffer b) {
    const BufferId id = buffer(b);
    program_.setup.push_back(
        {InstructionKind::kAllocate, When::kAlways, static_cast<std::uint32_t>(id)});
    return id;
  }
  /// What Kernel::function says of a function of this name.
  [[nodiscard]] std::uint16_t function(std::string_view name) {
    if (name.empty()) return 0;
    std::vector<std::string>& known = program_.functions;
    const auto at = std::find(known.begin(), known.end(), name) - known.begin();
    if (static_cast<std::size_t>(at) == known.size()) known.emplace_back(name);
    return static_cast<std::uint16_t>(std::min<std::ptrdiff_t>(at + 1, 0xffff));
  }
  void enter(StepPhase phase) { phase_ = phase; }
  [[nodiscard]] StepPhase phase() const { return phase_; }
  [[nodiscard]] Program& program() { return program_; }
  /// Where instructions go: those emitted so far, in order.
  [[nodiscard]] std::vector<Instruction>& instructions() { return into_; }

 private:
  template <class Id>
  void emit(InstructionKind kind, Id id, When when) {
    into_.push_back({kind, when, static_cast<std::uint32_t>(id)});
  }

  Program& program_;
  std::vector<Instruction>& into_;
  StepPhase phase_ = StepPhase::kLoad;
};

}  // namespace stoker
