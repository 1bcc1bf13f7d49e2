#include "lower/common/compiled_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace stoker {
namespace {

/// Limits of decide_layout_opt: as many operators for each convolution make them few among many,
/// and convolutions with no more channels are small.
constexpr std::size_t kOperatorsPerConvolution = 300;
constexpr std::int64_t kSmallChannels = 64;

/// A convolution's weight: channels that it makes and reads, the first side of its filter.
struct Weight {
  std::int64_t out = 0, in = 0, side = 1;
  int groups = 1;

  [[nodiscard]] bool is_grouped() const { return groups > 1 && in > 1; }
  [[nodiscard]] bool narrows() const { return 2 * out <= in && side > 1; }
  [[nodiscard]] bool is_small() const { return out <= kSmallChannels && in <= kSmallChannels; }
};

}  // namespace

bool compiled_channels_last(const Step& step, const Sizes& sizes, CompiledFor device) {
  std::vector<Weight> weights;
  std::set<std::int32_t> graphs;
  for (const Operator& op : step.operators) {
    const Attributes& attributes = step.attributes_of(op);
    if (attributes.graph == 0 || op.inputs.size() < 2) continue;
    if (step.operator_name(op) != "aten::convolution") continue;
    const auto shape = sizes.shape(op.inputs[1].type);
    if (shape.size() < 3) continue;
    weights.push_back({shape[0], shape[1], shape[2], attributes.groups});
    graphs.insert(attributes.graph);
  }
  if (weights.empty()) return false;
  if (device == CompiledFor::kCpu) return true;
  const auto operators = static_cast<std::size_t>(std::count_if(
      step.operators.begin(), step.operators.end(),
      [&](const Operator& op) { return graphs.count(step.attributes_of(op).graph) > 0; }));
  return operators < kOperatorsPerConvolution * weights.size() &&
         std::none_of(weights.begin(), weights.end(),
                      [](const Weight& w) { return w.is_grouped() || w.narrows(); }) &&
         !std::all_of(weights.begin(), weights.end(), [](const Weight& w) { return w.is_small(); });
}

}  // namespace stoker
