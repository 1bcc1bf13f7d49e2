#include <algorithm>

#include "timing/cost_rules.h"

namespace stoker {
namespace {

/// Backward: the recurrent product again for the gradient of the state, and the weight gradients,
/// which cuDNN gathers into one product over all time steps.
struct Products {
  double recurrent, gathered;
};
constexpr Products kForward{1, 0}, kBackward{1, 1};

}  // namespace

/// cuDNN's plan of a recurrent layer (Appleyard et al., arXiv 1604.01946): the products with the
/// input of all time steps at once, then one small product for each time step, serially; directions
/// and layers overlap only where SMs are left over, which is not credited.
RawCost rnn_cost(const Kernel& kernel, const RnnShape& s, const Device& device,
                 const Coefficients& coefficients) {
  RawCost cost;
  cost.cost_class = CostClass::kRnn;
  const auto unit = static_cast<std::size_t>(kernel.unit);
  const double rate = device.rate[unit] * coefficients.of(CostClass::kRnn).compute;
  const bool tensor = device.tensor[unit];
  const auto product = [&](double m, double n, double k) {
    return best_tile({.m = m, .n = n, .k = k, .tensor = tensor}, rate, device, coefficients.kernel)
        .seconds;
  };
  const double batch = static_cast<double>(s.batch), length = static_cast<double>(s.length);
  const double hidden = static_cast<double>(s.hidden), gates = s.gates, directions = s.directions;
  const Products products = s.backward ? kBackward : kForward;

  const double step = product(batch, gates * hidden, hidden) * products.recurrent;
  const double serial = length * std::max(step, coefficients.kernel.recurrence_us * 1e-6);
  double gathered = 0;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const double width = layer == 0 ? static_cast<double>(s.input) : hidden * directions;
    gathered += product(batch * length, gates * hidden, width);
    if (products.gathered > 0) gathered += product(gates * hidden, width + hidden, batch * length);
  }
  cost.compute = directions * (static_cast<double>(s.layers) * serial + gathered);
  cost.memory = memory_seconds(bytes_of(kernel), CostClass::kRnn, device, coefficients);
  return cost;
}

}  // namespace stoker
