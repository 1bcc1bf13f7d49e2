#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "forecast/forecast.h"

namespace stoker {

/// Layers that launch the same kernels, each timed as a network of its own. All times are of one of
/// them and of one step.
struct LayerGroup {
  std::vector<ModuleId> modules;          ///< in order of their first kernel
  Nanos forward, loss, backward, update;  ///< device time
  Nanos overhead;  ///< launches, the wait for the device and what surrounds a step
  Nanos alone;     ///< sum of the above: what a benchmark of this layer would measure
};

/// Why the sum of the layers differs from the step.
enum class LayerTerm : std::uint8_t {
  kBenchmarkOnly,   ///< a loss of its own for each layer, and input gradients that nobody needs
  kLaunchAndWait,   ///< launched and waited for once a layer instead of once a step
  kUpdateByLayer,   ///< the optimizer called for each layer instead of once for all
  kHostAhead,       ///< a benchmark waits after each step, a run lets the host run ahead
  kOutsideOfLayers  ///< the step's own work in no layer: below 0
};
inline constexpr std::size_t kLayerTerms = 5;
[[nodiscard]] std::string_view name_of(LayerTerm term);

/// The way that predicts a network by adding its layers up, beside the step itself.
/// Invariant: sum - all terms = step.
struct LayerSum {
  std::vector<LayerGroup> groups;  ///< in order of their first kernel
  std::size_t layers = 0;          ///< of all groups
  Nanos sum;                       ///< of all layers alone
  std::array<Nanos, kLayerTerms> terms{};
  StepTime step;
  [[nodiscard]] double factor() const { return sum / step.total; }
};

/// Layers are the modules that hold no others. Refuses jobs of several GPUs or several
/// micro-batches, for which a layer alone has no meaning.
[[nodiscard]] Result<LayerSum> layer_sum(const Scenario& scenario, const Knowledge& knowledge);

/// "h.*.attn.c_attn": the modules' common name, `*` where they differ.
[[nodiscard]] std::string name_of(const LayerGroup& group, const Step& step);

}  // namespace stoker
