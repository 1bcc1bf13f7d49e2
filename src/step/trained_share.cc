#include "step/trained_share.h"

#include <set>

namespace stoker {
namespace {

double weights_of(const Step& step, const Parameter& parameter) {
  const TensorType& type = step.types[index(parameter.type)];
  double product = type.dtype == DType::kU8 ? 2 : 1;  // NF4 and FP4, as bitsandbytes packs them
  for (const Polynomial& side : type.shape)
    product *= static_cast<double>(side.evaluate({}).value_or(0));
  return product;
}

}  // namespace

TrainedShare trained_share(const Step& step) {
  TrainedShare found;
  std::set<StorageId> seen;  // tied weights count once
  for (const Parameter& parameter : step.parameters) {
    if (!seen.insert(parameter.storage).second) continue;
    const double weights = weights_of(step, parameter);
    found.total += weights;
    if (parameter.requires_grad && parameter.group >= 0) found.trained += weights;
  }
  return found;
}

}  // namespace stoker
