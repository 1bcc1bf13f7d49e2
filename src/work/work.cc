#include "work/work.h"

#include "work/describer.h"

namespace stoker {

void append_work(const Step& step, const Operator& op, const Sizes& sizes,
                 std::vector<Work>& into) {
  const Describer d(step, op, sizes);
  switch (d.rule()) {
    case WorkRule::kNothing:
      return;
    case WorkRule::kProduct:
    case WorkRule::kProductAndSum:
    case WorkRule::kLinear:
    case WorkRule::kSummedBatch:
      return append_gemm(d, into);
    case WorkRule::kConvolution:
    case WorkRule::kTransposedConvolution:
      return d.is_backward() ? append_convolution_backward(d, into) : append_convolution(d, into);
    case WorkRule::kRecurrent:
      return append_rnn(d, into);
    case WorkRule::kAttention:
    case WorkRule::kAttentionInside:
      return append_attention(d, into);
    case WorkRule::kCollective:
      return append_collective(d, into);
    default:
      return append_memory_bound(d, into);
  }
}

StepTotals totals_of(const Step& step, const Sizes& sizes) {
  StepTotals totals;
  for (const Parameter& p : step.parameters) {
    totals.parameters += sizes.tensor(step, p.type);
    if (p.gradient >= 0) totals.gradients += sizes.tensor(step, p.type);
  }
  for (const NamedTensor& input : step.inputs) totals.inputs += sizes.storage(input.storage);
  bool backward = false;
  Bytes live;
  std::vector<Work> work;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) {
      backward = true;
      totals.activations = live;
    } else if (event.kind == EventKind::kAllocate) {
      live += sizes.storage(StorageId(event.value));
    } else if (event.kind == EventKind::kFree) {
      live -= sizes.storage(StorageId(event.value));
    } else if (event.kind == EventKind::kOperator) {
      work.clear();
      append_work(step, step.operators[event.value], sizes, work);
      for (const Work& w : work) (backward ? totals.backward : totals.forward) += w.flops;
    }
  }
  return totals;
}

}  // namespace stoker
