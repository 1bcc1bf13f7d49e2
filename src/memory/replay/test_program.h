#pragma once

#include <cstdint>

#include "program/program.h"

namespace stoker::testing_support {

/// Builds small programs by hand: buffers by size, instructions by name.
class ProgramBuilder {
 public:
  std::uint32_t buffer(Bytes bytes, BufferRole role = BufferRole::kActivation,
                       bool optional = false, std::uint32_t module = 0) {
    program.buffers.push_back({bytes, role, Stream::kCompute, optional, ModuleId{module}});
    return static_cast<std::uint32_t>(program.buffers.size() - 1);
  }
  void setup(std::uint32_t id) {
    program.setup.push_back({InstructionKind::kAllocate, When::kAlways, id});
  }
  /// What follows belongs to a new extra pass.
  void pass(std::string name, int repeats = 2) {
    program.passes.push_back({std::move(name), repeats, {}, {}});
  }
  void allocate(std::uint32_t id, When when = When::kAlways) {
    current().push_back({InstructionKind::kAllocate, when, id});
  }
  void free(std::uint32_t id, When when = When::kAlways) {
    current().push_back({InstructionKind::kFree, when, id});
  }
  void free_previous(std::uint32_t id) {
    current().push_back({InstructionKind::kFreePrevious, When::kAlways, id});
  }
  void launch(StepPhase phase) {
    Kernel kernel;
    kernel.phase = phase;
    program.kernels.push_back(kernel);
    current().push_back({InstructionKind::kLaunch, When::kAlways,
                         static_cast<std::uint32_t>(program.kernels.size() - 1)});
  }
  Program program;

 private:
  std::vector<Instruction>& current() {
    return program.passes.empty() ? program.iteration : program.passes.back().instructions;
  }
};

constexpr Bytes operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n) * kMiB; }

}  // namespace stoker::testing_support
