#include "forecast/energy.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace stoker {
namespace {

/// A board's draw as a share of its TDP. Priors, wide on purpose. Waiting with a context open and
/// the clocks up: boards of 250 to 700 W are reported at 15-25 % of their limit. Running kernels:
/// Strubell et al. 2019 (ACL, "Energy and Policy Considerations", table 3) metered training at 63 %
/// (64 V100), 59-71 % (8 P100) and 69 % (3 GTX 1080 Ti) of TDP, host included; matrix products at
/// full occupancy run into the limit, kernels that wait for memory stay far below.
struct Share {
  double value, low, high;
};
constexpr Share kWaiting{0.20, 0.10, 0.30};
constexpr Share kRunning{0.70, 0.45, 1.00};
constexpr const char* kBasis = "estimate from TDP and the busy share; GPU boards alone";

double draw(double tdp, double waiting, double running, double busy) {
  return tdp * (waiting + (running - waiting) * std::clamp(busy, 0.0, 1.0));
}

/// Two errors that know nothing of each other: their logarithms add in quadrature.
Figure product(const Figure& a, const Figure& b) {
  const double value = a.value * b.value;
  if (!(value > 0)) return {0, 0, 0, a.basis};
  const auto spread = [&](double one, double other) {
    return std::hypot(std::log(one / a.value), std::log(other / b.value));
  };
  return {value, value * std::exp(-spread(a.low, b.low)), value * std::exp(spread(a.high, b.high)),
          a.basis};
}

/// Boards wait while Python starts, then draw what they draw in training. One factor of error for
/// both, the training's.
Figure run_energy(double boards, const Figure& watts, const EnergyInput& input) {
  const double start_up = std::min(input.start_up_s.value, input.run_s.value);
  const Figure as_training = product(watts, input.run_s);
  const double joules = as_training.value - start_up * (watts.value - kWaiting.value * boards);
  return scaled(as_training, joules / as_training.value / kJoulesPerKwh);
}

Figure inverse(const Figure& f) { return {1 / f.value, 1 / f.high, 1 / f.low, f.basis}; }

}  // namespace

double mean_watts(const DeviceFacts& device, double busy) {
  return draw(std::max(0.0, device.tdp_watts), kWaiting.value, kRunning.value, busy);
}

std::optional<EnergyForecast> estimate_energy(const DeviceFacts& device, const EnergyInput& input) {
  if (!(device.tdp_watts > 0) || !(input.samples_per_s.low > 0)) return std::nullopt;
  const double boards = device.tdp_watts * input.gpus;
  EnergyForecast energy;
  energy.watts = {draw(boards, kWaiting.value, kRunning.value, input.busy.value),
                  draw(boards, kWaiting.low, kRunning.low, input.busy.low),
                  draw(boards, kWaiting.high, kRunning.high, input.busy.high), kBasis};
  energy.joules_per_sample = product(energy.watts, inverse(input.samples_per_s));
  if (input.epoch_s.low > 0)
    energy.epoch_kwh = scaled(product(energy.watts, input.epoch_s), 1 / kJoulesPerKwh);
  if (input.run_s.low > 0) energy.run_kwh = run_energy(boards, energy.watts, input);
  return energy;
}

}  // namespace stoker
