#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewrite/step_edit.h"
#include "step/step.h"

namespace stoker {

/// When the tensors of a forward would die if autograd kept none of them. A capture of a training
/// step does not show it for those that autograd kept; they are taken to die with their last use,
/// where an argument of a module lives as long as the module's call, since nn.Module.__call__ holds
/// its arguments. (A local variable that the model's code keeps longer is not known.)
class ForwardLifetimes {
 public:
  ForwardLifetimes(const Step& step, const EventIndex& index);

  /// The event after which `storage` is let go. The storage was made in the forward.
  [[nodiscard]] std::size_t end_of(std::uint32_t storage) const { return end_[storage]; }

  /// A weight that autocast cast and keeps in its cache until its context ends, before the backward
  /// (cached_cast in aten/src/ATen/autocast_mode.cpp: leaves that need a gradient).
  [[nodiscard]] bool cached_cast(std::uint32_t storage) const { return cast_[storage]; }

 private:
  void find_casts(const Step& step);
  [[nodiscard]] std::size_t end_of_call(const Step& step, ModuleId maker, std::size_t use) const;

  std::vector<std::size_t> operators_;  ///< of the forward: positions in the events
  std::vector<std::size_t> end_;        ///< by storage
  std::vector<bool> cast_;              ///< by storage
};

}  // namespace stoker
