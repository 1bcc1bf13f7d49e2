#pragma once

#include <cstdint>
#include <vector>

#include "lower/common/gradient_sums.h"
#include "program/program.h"
#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

/// What one pass over a step's events tells before anything is emitted. The same for every batch
/// size.
struct StepPlan {
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::vector<BufferRole> roles;  ///< by storage
  std::vector<ModuleId> modules;  ///< by storage: of the operator that made it
  std::vector<std::uint32_t>
      last_write;  ///< by storage: event index of the last operator that writes it
  GradientSums sums;
  /// By operator: modules whose call led to it since the operator before: parts of its module's
  /// path that are not the other's.
  std::vector<std::uint16_t> calls;
  /// By operator: index of the backward operator that will free what this attention forward saves.
  std::vector<std::uint32_t> attention_backward;
  /// By operator: the forward that an attention backward belongs to.
  std::vector<std::uint32_t> attention_forward;
  std::vector<Stream> streams;      ///< by storage: whose blocks it comes from
  std::vector<Stream> launched_on;  ///< by operator
  /// By operator: the operator on kCommunication whose end the compute stream awaits before this
  /// one starts (kAwaitCommunication).
  std::vector<std::uint32_t> awaits;

  /// A storage of a gradient and its parameters; recurrent layers have one for many.
  struct Gradient {
    std::uint32_t storage = 0;
    std::vector<std::uint32_t> parameters;
  };
  std::vector<Gradient> gradients;         ///< by storage, rising
  std::vector<std::uint32_t> gradient_of;  ///< by storage: index into `gradients`, or kNone
};

[[nodiscard]] StepPlan plan_step(const Step& step);

}  // namespace stoker
