#include "input/sample_cost.h"

#include <algorithm>

namespace stoker {
namespace {

/// Nine of ten real epochs were forecast from a probe within this share (docs/input-model.md).
constexpr double kValidatedError = 0.125;
/// What a busy machine adds; a guess, not measured.
constexpr double kDisturbedError = 0.05;

/// A float picture and its 64-bit label.
Bytes picture_bytes(int side) { return Bytes(std::int64_t{3} * side * side * 4 + 8); }

}  // namespace

Nanos SampleCost::mean_cpu() const {
  Nanos sum;
  for (const Nanos time : cpu) sum += time;
  return cpu.empty() ? sum : sum / static_cast<double>(cpu.size());
}

SampleCost sample_cost_from_probe(const Probe& probe, const LoaderProfile& profile,
                                  OutputShape output) {
  SampleCost cost;
  cost.known = true;
  const double slowness = core_slowness(profile, probe);
  for (const SampleRecord& sample : probe.samples)
    cost.cpu.push_back(loader_cost(profile, sample, slowness));
  cost.output = output.bytes_per_sample.count() > 0 ? output.bytes_per_sample
                                                    : picture_bytes(probe.image_size);
  cost.tensors = output.tensors;
  cost.read_bytes = probe.dataset.mean_bytes;
  cost.dataset_samples = probe.dataset.files;
  cost.dataset_bytes = probe.dataset.total_bytes;
  if (probe.parallel.threads > 1) {
    cost.slowdown_per_core = (1 / probe.parallel.efficiency - 1) / (probe.parallel.threads - 1);
  }
  if (probe.read.cold_measured) {
    cost.cold_seek_ms = probe.read.cold_seek_ms;
    cost.cold_bandwidth = probe.read.cold_bandwidth;
    cost.cold_speedup = probe.read.cold_speedup;
  }
  cost.transport = scaled(profile.transport, slowness);
  // Twice the profile's error on pictures that it has not seen, for a 90 % band; a disturbed probe
  // measured caches that others were using too.
  const double error = std::max(kValidatedError, 2 * profile.held_out_mape / 100) +
                       (probe.foreign.disturbed ? kDisturbedError : 0);
  cost.band = {error, error};
  cost.basis = "probe of " + probe.dataset.name + " (" + std::to_string(probe.samples.size()) +
               " pictures), loader costs: " + profile.basis;
  return cost;
}

SampleCost sample_cost_given(Nanos cpu, OutputShape output, const LoaderProfile& profile) {
  SampleCost cost;
  cost.known = true;
  cost.cpu = {cpu};
  cost.output = output.bytes_per_sample;
  cost.tensors = output.tensors;
  cost.transport = profile.transport;
  cost.band = {kValidatedError, kValidatedError};  // the simulation's own
  cost.basis = "CPU time a sample as given";
  return cost;
}

SampleCost sample_cost_unknown(OutputShape output) {
  SampleCost cost;
  cost.output = output.bytes_per_sample;
  cost.tensors = output.tensors;
  cost.basis = "no data given: input assumed never to limit";
  return cost;
}

}  // namespace stoker
