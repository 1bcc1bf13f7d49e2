#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "program/program.h"

namespace stoker {

/// A place in the execution of a Program.
struct Moment {
  static constexpr int kSetup = -1;
  static constexpr int kTraining = -1;
  /// Counts from 0: the iteration, or in a pass its repetition. The iteration that follows the
  /// passes goes on counting.
  int iteration = kSetup;
  int pass = kTraining;           ///< index into Program::passes
  std::uint32_t instruction = 0;  ///< index into the setup, the iteration or the pass
  /// The phase of the kernel that follows; absent in the setup and where none follows.
  std::optional<StepPhase> phase;

  [[nodiscard]] bool in_setup() const { return iteration == kSetup && pass == kTraining; }
};

/// The instructions that a moment lies in.
[[nodiscard]] const std::vector<Instruction>& instructions_of(const Program& program,
                                                              const Moment& moment);

/// The phase of each instruction: that of the kernel that follows; those behind the last kernel
/// belong to its phase. Empty without kernels.
[[nodiscard]] std::vector<StepPhase> phases_of(const Program& program,
                                               const std::vector<Instruction>& instructions);

/// `moment` with its phase filled in.
[[nodiscard]] Moment with_phase(const Program& program, Moment moment);

/// "backward", "optimizer step".
[[nodiscard]] std::string_view words_of(StepPhase phase);
/// "before the first iteration", "forward, iteration 2", "validation, batch 64".
[[nodiscard]] std::string words_of(const Program& program, const Moment& moment);

}  // namespace stoker
