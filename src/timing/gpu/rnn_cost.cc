#include <algorithm>

#include "timing/gpu/cost_rules.h"
#include "work/real.h"

namespace stoker {
namespace {

/// Where weights stay on the chip, one kernel runs all time steps and a step costs a barrier of the
/// whole grid instead of two launches (Diamos et al., "Persistent RNNs", ICML 2016): a prior.
constexpr double kPersistentStep = 0.5;

/// Limits of PyTorch's choice (aten/src/ATen/native/cudnn/RNN.cpp, use_rnn_persist_small_h and
/// use_persist_common_heuristics).
constexpr std::int64_t kSmallGatedForward = 192, kSmallGatedBackward = 128;
constexpr std::int64_t kSmallPlainForward = 384, kSmallPlainBackward = 256;
constexpr std::int64_t kPersistentWidth = 1024, kPersistentMultiple = 128;
constexpr std::int64_t kPersistentBatch = 128;
constexpr int kPersistentSms = 98;

/// Whether cuDNN keeps the weights on the chip. The finer conditions on batch and length of Volta
/// are left out.
bool is_persistent(const RnnShape& s, DType dtype, const GpuRates& device) {
  if (s.projection > 0 || dtype == DType::kF64) return false;
  const bool old = device.architecture == Architecture::kKepler ||
                   device.architecture == Architecture::kMaxwell ||
                   device.architecture == Architecture::kCdna;
  const std::int64_t small = s.gates > 1 ? (s.backward ? kSmallGatedBackward : kSmallGatedForward)
                                         : (s.backward ? kSmallPlainBackward : kSmallPlainForward);
  if (!old && s.hidden <= small) return true;
  const bool fits = s.layers == 1 && s.directions == 1 && s.hidden <= kPersistentWidth &&
                    s.hidden % kPersistentMultiple == 0 && s.input % kPersistentMultiple == 0 &&
                    s.batch % 8 == 0 && s.batch <= kPersistentBatch;
  const bool volta = device.architecture == Architecture::kVolta;
  const bool server = (device.architecture == Architecture::kAmpere ||
                       device.architecture == Architecture::kHopper) &&
                      device.sms >= kPersistentSms && s.gates != 3;
  return dtype == DType::kF16 && fits && (volta || server);
}

}  // namespace

/// cuDNN's plan of a recurrent layer (Appleyard et al., arXiv 1604.01946): the products with the
/// input of all time steps at once, then one small product for each time step, serially. Layers of
/// one direction run as a wavefront, layer l a step behind layer l - 1; two directions run beside
/// each other, and then each layer waits for the whole one before it.
RawCost rnn_cost(const Kernel& kernel, const RnnShape& s, const GpuRates& device,
                 const Coefficients& coefficients) {
  RawCost cost;
  cost.cost_class = CostClass::kRnn;
  const auto unit = static_cast<std::size_t>(kernel.unit);
  const double rate = device.rate[unit] * coefficients.of(CostClass::kRnn).compute;
  const bool tensor = device.tensor[unit];
  const auto product = [&](double m, double n, double k, double batch = 1) {
    return best_tile({.m = m, .n = n, .k = k, .batch = batch, .tensor = tensor}, rate, device,
                     coefficients.kernel)
        .time;
  };
  const double batch = real(s.batch), length = real(s.length), layers = real(s.layers);
  const double hidden = real(s.hidden), gates = s.gates, directions = s.directions;
  const double state = real(s.projection > 0 ? s.projection : s.hidden);

  // Cells that run beside each other, and the steps that one after the other remain.
  const bool wavefront = s.directions == 1;
  const double beside = wavefront ? std::min(layers, length) : directions;
  const double steps = wavefront ? length + layers - 1 : length * layers;
  Seconds step = product(batch, gates * hidden, state, beside);
  if (s.projection > 0) step += product(batch, state, hidden, beside);
  Seconds least = as_seconds(coefficients.kernel.recurrence);
  if (is_persistent(s, kernel.dtype, device)) least = least * kPersistentStep;
  const Seconds serial = steps * std::max(step, least);

  // Backward has the recurrent product again for the gradient of the state, and gathers the weight
  // gradients into one product over all time steps.
  Seconds gathered;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const double width = layer == 0 ? real(s.input) : state * directions;
    gathered += directions * product(batch * length, gates * hidden, width);
    if (s.backward) gathered += directions * product(gates * hidden, width + state, batch * length);
  }
  cost.compute = serial + gathered;
  cost.memory = memory_time(bytes_of(kernel), CostClass::kRnn, device, coefficients);
  return cost;
}

}  // namespace stoker
