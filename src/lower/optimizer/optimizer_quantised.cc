#include "lower/optimizer/optimizer_recipes.h"

// bitsandbytes/optim/optimizer.py, Optimizer1State and Optimizer2State: init_state, update_step.
namespace stoker {
namespace {

/// Elements that share one scale (block-wise quantisation; 2,048 before version 0.44).
constexpr std::int64_t kBlock = 256;
/// Tensors below it keep their state in FP32 (min_8bit_size).
constexpr std::int64_t kLeastQuantised = 4096;
constexpr Bytes kScale{4};
/// The values that 8 bits stand for, one FP32 number each.
constexpr Bytes kCode{256 * 4};

}  // namespace

void step_quantised(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  const int copies = state_tensors(o);
  if (group.empty()) return;
  for (int code = 0; code < copies; ++code) step.state(group.front(), kCode);
  for (const TrainedParameter& p : group) {
    const std::int64_t elements = elements_of(p);
    const bool small = elements < kLeastQuantised;
    const Bytes values(small ? elements * 4 : elements);
    const Bytes scales((elements + kBlock - 1) / kBlock * kScale.count());
    Bytes state;
    for (int copy = 0; copy < copies; ++copy) {
      step.state(p, values);
      state += values;
    }
    for (int copy = 0; copy < copies && !small; ++copy) {
      step.state(p, scales);
      state += scales;
    }
    step.run(p, p.bytes + p.bytes + state, p.bytes + state);
  }
}

}  // namespace stoker
