#include "input/probe/cache_what_if.h"

#include <algorithm>

#include "input/probe/page_cache.h"

namespace stoker {
namespace {

/// Below this share of misses storage is no limit: a guard against dividing by nearly nothing.
constexpr double kNoMisses = 1e-6;

CacheWhatIf row(const Probe& probe, double cores_per_s, double storage_per_s, Bytes memory) {
  CacheWhatIf out{.memory = memory};
  out.cached = cached_share(probe.dataset.total_bytes, memory);
  const double misses = 1 - out.cached;
  const double storage_later = misses > kNoMisses ? storage_per_s / misses : cores_per_s;
  out.first_per_s = std::min(cores_per_s, storage_per_s);
  out.later_per_s = std::min(cores_per_s, storage_later);
  out.disk_bound = storage_later < cores_per_s;
  const auto samples = static_cast<double>(probe.dataset.samples);
  out.first_seconds = samples / out.first_per_s;
  out.later_seconds = samples / out.later_per_s;
  return out;
}

}  // namespace

double storage_samples_per_s(const Probe& probe) {
  if (!probe.storage) return 0;
  const DepthFacts* best = probe.storage->best_whole_files();
  if (probe.kind == DataKind::kPictures) return best == nullptr ? 0 : best->reads_per_s;
  // Samples that lie one after the other: by their bytes.
  const double rate =
      std::max(probe.storage->sequential_bytes_per_s, best == nullptr ? 0 : best->bytes_per_s);
  const double mean = static_cast<double>(probe.dataset.total_bytes.count()) /
                      static_cast<double>(std::max<std::int64_t>(1, probe.dataset.samples));
  return mean > 0 ? rate / mean : 0;
}

std::vector<CacheWhatIf> cache_what_if(const Probe& probe, const SampleCost& cost,
                                       const std::vector<Bytes>& memories) {
  std::vector<CacheWhatIf> out;
  const double storage_per_s = storage_samples_per_s(probe);
  const double cpu = seconds(cost.mean_cpu());
  if (probe.kind == DataKind::kRecords || storage_per_s <= 0 || cpu <= 0) return out;
  const double cores_per_s = probe.parallel.threads * probe.parallel.efficiency / cpu;
  if (const Bytes here = probe.storage->usable_memory(); here.count() > 0) {
    out.push_back(row(probe, cores_per_s, storage_per_s, here));
    out.back().this_host = true;
  }
  for (const Bytes memory : memories) out.push_back(row(probe, cores_per_s, storage_per_s, memory));
  return out;
}

}  // namespace stoker
