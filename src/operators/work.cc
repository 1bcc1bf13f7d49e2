#include "operators/work.h"

#include "operators/describer.h"

namespace stoker {

void append_work(const Step& step, const Operator& op, const Sizes& sizes,
                 std::vector<Work>& into) {
  const std::string_view name = step.operator_name(op);
  if (launches_nothing(name)) return;
  const Describer d(step, op, sizes);
  switch (const KernelClass kernel_class = class_of(name)) {
    case KernelClass::kGemm:
      return append_gemm(d, into);
    case KernelClass::kConvolution:
    case KernelClass::kDepthwiseConvolution:
      return d.is_backward() ? append_convolution_backward(d, into) : append_convolution(d, into);
    case KernelClass::kRnn:
      return append_rnn(d, into);
    case KernelClass::kAttention:
      return append_attention(d, into);
    case KernelClass::kCollective:
      return append_collective(d, name, into);
    default:
      return append_memory_bound(d, kernel_class, into);
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
