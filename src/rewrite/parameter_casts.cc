#include "rewrite/parameter_casts.h"

#include <vector>

#include "rewrite/storage_of.h"

namespace stoker {

ParameterCasts parameter_casts(const Step& step, DType computed) {
  std::vector<bool> parameter(step.storages.size()), gradient(step.storages.size());
  for (const Parameter& p : step.parameters) {
    parameter[index(p.storage)] = true;
    if (p.gradient >= 0) gradient[static_cast<std::size_t>(p.gradient)] = true;
  }
  std::vector<int> writers(step.storages.size());
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kOperator) continue;
    for (const TensorRef& out : step.operators[event.value].outputs) ++writers[storage_of(out)];
  }
  ParameterCasts casts;
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    if (step.operator_name(op) != "aten::_to_copy" || op.inputs.size() != 1 ||
        op.outputs.size() != 1)
      continue;
    const DType from = step.types[index(op.inputs[0].type)].dtype;
    const DType to = step.types[index(op.outputs[0].type)].dtype;
    const std::uint32_t source = storage_of(op.inputs[0]), made = storage_of(op.outputs[0]);
    const bool down = parameter[source] && from == DType::kF32 && to == computed;
    const bool back = gradient[made] && writers[made] == 1 && from == computed &&
                      to == DType::kF32 && step.storages[source].kind == StorageKind::kTransient;
    if (!down && !back) continue;
    casts.operators.insert(event.value);
    if (down) {
      casts.copies[made] = source;
    } else {
      casts.gradients[made] = source;
      casts.kept.insert(source);
    }
  }
  return casts;
}

}  // namespace stoker
