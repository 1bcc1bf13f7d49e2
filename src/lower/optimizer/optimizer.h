#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lower/common/emitter.h"
#include "program/job.h"
#include "step/sizes.h"

namespace stoker {

/// One parameter that the optimizer updates (or, for emit_ema, any tensor of the model).
struct TrainedParameter {
  Bytes bytes;
  DType dtype = DType::kF32;
  ModuleId module{};
  /// Parameter group, index into the groups of emit_optimizer_step; -1: the optimizer was not given
  /// it, so it is neither unscaled nor stepped.
  std::int32_t group = 0;
  /// Sizes of the last two dimensions, which Adafactor factors over; 0: fewer than two dimensions.
  std::int64_t rows = 0, columns = 0;
};

/// What one parameter group has for itself. PyTorch steps group after group.
struct GroupSettings {
  double weight_decay = 0;
  /// What steps this group, where it is not the settings of all.
  std::optional<OptimizerSettings> own = {};
};

/// The parameter as the optimizer sees it, its sizes at one batch.
[[nodiscard]] TrainedParameter trained_parameter(const Step& step, const Sizes& sizes,
                                                 const Parameter& parameter, ModuleId module);

/// The groups that the capture function's optimizer had, with `settings` over them: a weight decay
/// other than the captured one applies to the groups that had any, or to all if none had. Groups
/// that another optimizer of the capture steps keep theirs, unless `settings` name another one. One
/// group where the capture returned no optimizer.
[[nodiscard]] std::vector<GroupSettings> optimizer_groups(const Step& step,
                                                          const OptimizerSettings& settings);

/// Whether PyTorch has a fused CUDA kernel for it; a job that asks for one that is not there is
/// stepped as foreach.
[[nodiscard]] bool has_fused(OptimizerKind kind);

/// Emits `optimizer.step()`: state at its first call, temporaries, kernels, group after group.
/// `parameters` in the order of the model; a group beyond `groups` takes the last one's settings.
/// The recipes are those of torch/optim; scripts/record-optimizers recorded PyTorch's own
/// allocations, which optimizer_test.cc compares with. docs/models/memory.md lists them.
void emit_optimizer_step(Emitter& emit, const OptimizerSettings& settings,
                         const std::vector<GroupSettings>& groups,
                         const std::vector<TrainedParameter>& parameters);

/// Emits `optimizer.step()` of one group, which has the settings' weight decay.
void emit_optimizer_step(Emitter& emit, const OptimizerSettings& settings,
                         const std::vector<TrainedParameter>& parameters);

}  // namespace stoker
