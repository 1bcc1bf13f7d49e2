#include "lower/loop/trained_share.h"

#include <cstdio>
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

/// "124 M", "8.03 G".
std::string count_words(double count) {
  char text[32];
  if (count >= 1e9) std::snprintf(text, sizeof text, "%.3g G", count * 1e-9);
  else if (count >= 1e6) std::snprintf(text, sizeof text, "%.3g M", count * 1e-6);
  else if (count >= 1e3) std::snprintf(text, sizeof text, "%.3g k", count * 1e-3);
  else std::snprintf(text, sizeof text, "%.0f", count);
  return text;
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

std::string trained_words(const Step& step) {
  if (step.mode != "train") return {};
  const TrainedShare found = trained_share(step);
  if (found.trained <= 0 || found.trained >= found.total) return {};
  char share[32];
  constexpr double kWhole = 0.01;  // from one per cent on three digits, below it two
  std::snprintf(share, sizeof share, found.share() < kWhole ? "%.2g %%" : "%.3g %%",
                100 * found.share());
  return "trains " + count_words(found.trained) + " of " + count_words(found.total) +
         " parameters (" + share + ")";
}

}  // namespace stoker
