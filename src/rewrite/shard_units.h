#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "step/step.h"

namespace stoker {

/// From before the allocations of the first operator's outputs to after the frees that follow the
/// last one: positions between events, 0 before the first.
struct EventSpan {
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  std::size_t begin = kNever;
  std::size_t end = kNever;
  [[nodiscard]] bool empty() const { return begin == kNever; }
};

/// Parameters that are gathered and reduced together: one call of fully_shard.
struct ShardUnit {
  std::string module;  ///< "" for the root
  ModuleId module_id{};
  std::vector<std::uint32_t> parameters;  ///< indices into Step::parameters, in their order
  EventSpan forward, backward;
};

/// What one unit of fully_shard moves and holds.
struct UnitState {
  std::vector<std::uint32_t> storages;   ///< of its parameters, each once
  std::vector<std::uint32_t> gradients;  ///< storages of the unsharded gradients, each once
  Polynomial gathered;                   ///< bytes of all its parameters, padded
  Polynomial reduced;                    ///< of all its gradients, padded, as they are reduced
  DType stored = DType::kF32, dtype = DType::kF32;  ///< of the shards, of what is gathered
  DType gradient_dtype = DType::kF32, reduced_dtype = DType::kF32, summed_into = DType::kF32;
  bool casts = false;  ///< a shard is of another precision than what is gathered of it
  std::optional<std::uint32_t> sharded_gradient;  ///< storage
  bool done = false;                              ///< the gradients are reduced
  std::optional<std::uint32_t> pending;           ///< gathered buffer that is not copied out yet
  std::map<std::uint32_t, std::uint32_t> copies;  ///< parameter storage -> unsharded, while there
  [[nodiscard]] bool unsharded() const { return !copies.empty(); }
};

/// The units of `step`, in the order in which their forwards end, the root last: each of `blocks`
/// with the parameters below it, the root with the rest. Units without parameters are left out. An
/// operator belongs to a unit by its module, by a parameter that it reads, or by a gradient that it
/// writes. A unit that runs several times counts as running from its first to its last operator.
///
/// For the root unit, `forward` spans the model's forward, and `backward` begins when the gradient
/// of the model's output is there.
[[nodiscard]] std::vector<ShardUnit> shard_units(const Step& step,
                                                 const std::vector<std::string>& blocks);

}  // namespace stoker
