#include "forecast/memory_forecast.h"

#include <algorithm>
#include <cmath>

#include "lower/lower.h"

namespace stoker {
namespace {

/// A search beyond this is of no use to anyone.
constexpr std::int64_t kLargestBatch = 1 << 20;

/// `band` is that of the device's peak: its parts are known as well, or as badly.
Figure bytes_figure(Bytes value, Band band, const std::string& basis) {
  return with_band(static_cast<double>(value.count()), band, basis);
}

/// The forecast whose band ends at `capacity`: what a truth at the upper (or lower) end of its band
/// would fill exactly. The band may depend on the forecast, so it is approached.
Bytes forecast_that_fills(Bytes capacity, const MemoryErrorCase& error, bool upper_end) {
  constexpr int kRounds = 30;  // each shrinks the error by the band's absolute share, a tenth or so
  const auto wanted = static_cast<double>(capacity.count());
  double forecast = wanted;
  for (int round = 0; round < kRounds; ++round) {
    const Band band = error.band_at(Bytes(static_cast<std::int64_t>(forecast)));
    forecast = wanted / (upper_end ? 1 + band.above : 1 - std::min(band.below, 0.9));
  }
  return Bytes(static_cast<std::int64_t>(forecast));
}

}  // namespace

std::string memory_error_case(const Program& program, const Job& job) {
  double convolution = 0;
  double total = 0;
  bool attention = false;
  for (const Kernel& kernel : program.kernels) {
    total += kernel.flops.count();
    if (std::holds_alternative<ConvolutionShape>(kernel.shape)) convolution += kernel.flops.count();
    // Attention as one kernel, or as products batched over heads.
    const auto* product = std::get_if<GemmShape>(&kernel.shape);
    attention = attention || kernel.kernel_class == KernelClass::kAttention ||
                (product != nullptr && product->batch > 1);
  }
  const std::string kind = convolution > 0.5 * total ? "cnn" : attention ? "transformer" : "other";
  const bool half = job.precision != Precision::kFp32 && job.precision != Precision::kTf32;
  const std::string profile = job.cudnn == CudnnProfile::kBenchmark ? "benchmark" : "default";
  return kind + (half ? "-amp-" : "-fp32-") + profile;
}

MemoryForecast forecast_memory(const Program& program, const Machine& machine,
                               const AllocatorConfig& allocator, const Knowledge& knowledge,
                               const std::string& error_case) {
  MemoryForecast forecast;
  ReplayOptions options{.allocator = allocator};
  forecast.outcome = replay(program, options);
  forecast.outside = program.outside;
  forecast.usable = machine.gpu.usable_memory;
  const Bytes outside = outside_bytes(program);
  const MemoryErrorCase error = knowledge.memory_case(error_case);
  const std::string basis = "allocator simulation; " + error.basis;
  const Bytes device_peak = forecast.outcome.reserved_peak + outside;
  const Band band = error.band_at(device_peak);
  forecast.device_peak = bytes_figure(device_peak, band, basis);
  forecast.reserved_peak = bytes_figure(forecast.outcome.reserved_peak, band, basis);
  forecast.allocated_peak = bytes_figure(forecast.outcome.allocated_peak, band, basis);

  const Bytes capacity = std::max(Bytes(0), machine.gpu.usable_memory - outside);
  if (forecast.outcome.reserved_peak <= capacity) {
    forecast.fits = true;
    return forecast;
  }
  options.capacity = capacity;
  options.total = machine.gpu.usable_memory;
  options.detail = ReplayDetail::kVerdict;
  const MemoryOutcome constrained = replay(program, options);
  forecast.fits = constrained.fits();
  forecast.only_by_flushing = constrained.fits() && constrained.retries > 0;
  if (constrained.failure) forecast.out_of_memory = constrained.failure->numbers.text();
  return forecast;
}

Result<BatchLimits> forecast_batch_limits(const Step& step, const Job& job, const Machine& machine,
                                          const AllocatorConfig& allocator,
                                          const Knowledge& knowledge) {
  std::string error_case = "default";
  std::int64_t minimum = std::max<std::int64_t>(1, step.dimensions[0].minimum);
  const LowerAt lower_at = [&](std::int64_t batch) -> Result<Program> {
    Job at = job;
    at.batch = std::max(batch, minimum);
    auto program = lower(step, at, machine);
    if (program) error_case = memory_error_case(*program, at);
    return program;
  };
  const auto search = [&](Bytes usable, std::int64_t hint) {
    LargestBatchOptions options;
    options.limit = step.dimensions[0].maximum > 0 ? step.dimensions[0].maximum : kLargestBatch;
    options.hint = hint;
    options.replay.allocator = allocator;
    options.replay.detail = ReplayDetail::kVerdict;
    return find_largest_batch(lower_at, usable, options);
  };
  const Bytes usable = machine.gpu.usable_memory;
  auto nominal = search(usable, 0);
  if (!nominal) return tl::unexpected(nominal.error());
  BatchLimits limits;
  limits.value = limits.low = limits.high = nominal->batch;
  limits.first_failing = nominal->first_failing.value_or(0);
  limits.missing = nominal->missing.value_or(Bytes(0));
  const MemoryErrorCase error = knowledge.memory_case(error_case);
  limits.basis = "allocator simulation under capacity; " + error.basis;
  if (nominal->batch == 0) return limits;
  // A truth at the upper end of the band still fits when the forecast is no more than this.
  const auto safe = search(forecast_that_fills(usable, error, true), nominal->batch);
  const auto lucky = search(forecast_that_fills(usable, error, false), nominal->batch);
  if (!safe) return tl::unexpected(safe.error());
  if (!lucky) return tl::unexpected(lucky.error());
  limits.low = std::min(safe->batch, limits.value);
  limits.high = std::max(lucky->batch, limits.value);
  return limits;
}

}  // namespace stoker
