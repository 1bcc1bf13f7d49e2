#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/figure.h"
#include "base/units.h"
#include "input/loader_profile.h"
#include "input/probe.h"

namespace stoker {

/// What one sample of the data set costs the user's loader, wherever that knowledge comes from.
struct SampleCost {
  /// False: nothing is known about the data; the simulation then reports that input does not limit
  /// and says so in its basis.
  bool known = false;
  std::vector<Nanos> cpu;  ///< CPU time of one sample; one element = every sample the same
  Bytes output;            ///< bytes of one sample in the batch, all tensors together
  int tensors = 2;         ///< tensors a batch (picture and label)
  double read_bytes = 0;   ///< mean bytes read a sample; 0: data already in memory
  std::int64_t dataset_samples = 0;  ///< 0: unknown
  Bytes dataset_bytes;
  /// CPU time a sample with all cores busy / alone, minus 1, a further busy core.
  double slowdown_per_core = 0;
  double cold_seek_ms = 0;    ///< one uncached read, without its bytes
  double cold_bandwidth = 0;  ///< bytes/s of uncached reads; 0: unknown
  double cold_speedup = 0;    ///< what several readers at once gain over one; 0: unknown
  TransportCoefficients transport;
  Band band;  ///< relative error of the CPU time a sample
  std::string basis;

  [[nodiscard]] Nanos mean_cpu() const;
};

struct OutputShape {
  Bytes bytes_per_sample{};  ///< 0: 3 * image_size^2 * 4 (float) + 8 (label)
  int tensors = 2;
};

/// A probe of pictures, seen through the costs of the Python loader.
[[nodiscard]] SampleCost sample_cost_from_probe(const Probe& probe, const LoaderProfile& profile,
                                                OutputShape output = {});

/// Numbers that the user gives (`--sample-cost 0.2ms`): the same for every sample.
[[nodiscard]] SampleCost sample_cost_given(Nanos cpu, OutputShape output,
                                           const LoaderProfile& profile);

/// Nothing known: never limits.
[[nodiscard]] SampleCost sample_cost_unknown(OutputShape output);

}  // namespace stoker
