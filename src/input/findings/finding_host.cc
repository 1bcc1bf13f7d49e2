// Findings about what the host grants a loader: /dev/shm, open files, cores, memory.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "input/findings/finding_rules.h"

namespace stoker::rules {
namespace {

/// The share of /dev/shm and DRAM that a job may fill: the rest belongs to others
/// (forecast/verdicts.cc).
constexpr double kMayFill = 0.9;
/// /dev/shm of a Docker container when nobody says otherwise (docker run --shm-size).
constexpr Bytes kDockerSharedMemory = 64 * kMiB;
/// Descriptors that a training process holds beside its batches: libraries, sockets, CUDA devices.
/// A guess on the careful side.
constexpr std::int64_t kOpenAnyway = 128;
/// Pipes of the index queue and the process's sentinel, each worker (multiprocessing.Process and
/// Queue of CPython).
constexpr std::int64_t kOpenPerWorker = 4;
/// Memory that grows by less than this share of the DRAM stays unnoticed.
constexpr double kNoticedMemory = 0.05;
/// A quota is felt when this share of its periods was used up.
constexpr double kThrottled = 0.1;

/// "(2 workers x 2 ahead + 1 in the loop's hands) x a batch of 64 MB"
std::string window_text(const Diagnosis& d) {
  const LoaderSettings& s = d.given.settings;
  std::string text;
  if (d.given.host.ranks > 1) text = std::to_string(d.given.host.ranks) + " processes x ";
  const double bytes = d.given.sample.batch_bytes(s.batch);
  return text + "(" + counted(s.workers, "worker") + " x " + std::to_string(s.prefetch) +
         " ahead + 1 in the loop's hands) x a batch of " + human_bytes(Bytes(std::llround(bytes))) +
         " = " + human_bytes(d.now.shared_memory);
}

std::optional<Finding> shared_memory(const Diagnosis& d) {
  const HostLimits& limits = d.given.limits;
  const Bytes size = limits.shared_memory;
  if (d.given.settings.workers == 0 || size.count() <= 0) return std::nullopt;
  const Bytes room =
      limits.shared_memory_free.count() > 0 ? std::min(size, limits.shared_memory_free) : size;
  const double usable = kMayFill * static_cast<double>(room.count());
  const auto needed = static_cast<double>(d.now.shared_memory.count());
  if (needed <= usable) return std::nullopt;
  std::string evidence = window_text(d) + ", but /dev/shm has " + human_bytes(size);
  if (size <= kDockerSharedMemory) evidence += " (Docker's default)";
  else if (room < size) evidence += ", " + human_bytes(room) + " of it free";
  evidence += ": \"Bus error ... insufficient shared memory\"";
  const double gib = std::ceil(needed / kMayFill / static_cast<double>(kGiB.count()));
  std::string cure = "enlarge it (docker run --shm-size=" + decimal(std::max(1.0, gib)) +
                     "g or --ipc=host; mount -o remount,size=" + decimal(std::max(1.0, gib)) +
                     "G /dev/shm)";
  const auto most = static_cast<int>(
      std::floor(usable / needed * d.given.settings.workers * d.given.settings.prefetch));
  if (most >= 2 * d.given.settings.workers) {
    cure += ", or prefetch_factor=" + std::to_string(most / d.given.settings.workers);
  } else if (most >= 2) {
    cure += ", or num_workers=" + std::to_string(most / 2) + " with prefetch_factor=2";
  } else {
    cure += ", or a smaller batch";
  }
  return Finding{"shared_memory_too_small", Severity::kWarning, evidence, cure};
}

std::optional<Finding> open_files(const Diagnosis& d) {
  const std::int64_t limit = d.given.limits.open_files;
  if (d.given.settings.workers == 0 || limit <= 0) return std::nullopt;
  const std::int64_t needed =
      d.now.file_descriptors + kOpenAnyway + kOpenPerWorker * d.given.settings.workers;
  if (needed <= limit) return std::nullopt;
  const std::int64_t most = d.given.limits.open_files_most;
  std::string cure = "torch.multiprocessing.set_sharing_strategy(\"file_system\")";
  if (most >= needed)
    cure += ", or ulimit -n " + std::to_string(std::min(most, 2 * needed)) + " before the start";
  cure += ", or fewer tensors in a batch";
  return Finding{"too_many_open_files", Severity::kWarning,
                 "batches on their way hold " + with_commas(d.now.file_descriptors) +
                     " file descriptors (one for each tensor), about " + with_commas(needed) +
                     " with the process's own, of " + with_commas(limit) +
                     " allowed: \"Too many open files\" or \"received 0 items of ancdata\"",
                 cure};
}

std::optional<Finding> copy_on_read(const Diagnosis& d) {
  const Bytes objects = d.given.sample.copied_on_read;
  if (objects.count() <= 0 || d.given.settings.workers == 0) return std::nullopt;
  const Bytes growth = objects * std::int64_t{d.all_workers()};
  const Bytes memory = d.given.host.memory;
  const double share = memory.count() > 0 ? growth / memory : 0;
  if (memory.count() > 0 && share < kNoticedMemory) return std::nullopt;
  std::string evidence = "the data set holds " + human_bytes(objects) + " of Python objects";
  if (d.given.pipeline != nullptr && d.given.pipeline->memory.objects > 0)
    evidence += " (" + with_commas(d.given.pipeline->memory.objects) + " of them)";
  evidence += "; reading one writes its reference count, so " + counted(d.all_workers(), "worker") +
              " copy up to " + human_bytes(growth) + " in the course of an epoch";
  if (memory.count() > 0)
    evidence += ", " + fine_percent(share) + " of " + human_bytes(memory) + " DRAM";
  return Finding{"memory_grows_by_copy_on_read",
                 share > 0.5 || memory.count() <= 0 ? Severity::kWarning : Severity::kNote,
                 evidence,
                 "keep the list as one NumPy or torch array (strings: one byte array and offsets), "
                 "which has a single reference count"};
}

std::optional<Finding> cpu_quota(const Diagnosis& d) {
  const HostLimits& l = d.given.limits;
  if (!l.quota || (l.affinity > 0 && *l.quota >= l.affinity)) return std::nullopt;
  const double throttled =
      l.periods > 0 ? static_cast<double>(l.throttled) / static_cast<double>(l.periods) : 0;
  std::string evidence = "os.cpu_count() says " + std::to_string(l.processors) + ", the affinity " +
                         std::to_string(l.affinity) + ", but the cgroup (v" +
                         std::to_string(l.cgroup_version) + ", " +
                         (l.cgroup_version == 2 ? "cpu.max" : "cpu.cfs_quota_us") + ") grants " +
                         decimal(*l.quota) + (*l.quota == 1 ? " core" : " cores");
  if (throttled > kThrottled)
    evidence += "; it was used up in " + fine_percent(throttled) + " of its periods so far";
  const bool too_many = d.all_workers() > std::ceil(*l.quota);
  if (too_many) evidence += "; " + counted(d.all_workers(), "worker") + " would be throttled";
  return Finding{
      "cpu_quota_below_cores",
      too_many || throttled > kThrottled ? Severity::kWarning : Severity::kNote, evidence,
      "count cores by the quota, not by os.cpu_count(): at most " +
          counted(
              std::max(1LL, std::llround(std::floor(*l.quota / std::max(1, d.given.host.ranks)))),
              "worker") +
          " a process here, or raise the quota (docker run --cpus, resources.limits.cpu)"};
}

std::optional<Finding> affinity(const Diagnosis& d) {
  const HostLimits& l = d.given.limits;
  if (l.affinity <= 0 || l.processors <= l.affinity) return std::nullopt;
  const bool too_many = d.all_workers() > l.affinity;
  return Finding{
      "affinity_below_cores", too_many ? Severity::kWarning : Severity::kNote,
      "this process may run on " + std::to_string(l.affinity) + " of " +
          counted(l.processors, "core") + ", and so may its workers" +
          (too_many ? "; there are " + std::to_string(d.all_workers()) + " of them" : ""),
      "count len(os.sched_getaffinity(0)) cores; where nobody chose that (taskset, Slurm), a "
      "library did: OMP_PROC_BIND or GOMP_CPU_AFFINITY bind whatever is forked later, so unset "
      "them or call os.sched_setaffinity in worker_init_fn"};
}

std::optional<Finding> beyond_cores(const Diagnosis& d) {
  const double cores = d.given.host.cores;
  const int ranks = std::max(1, d.given.host.ranks);
  if (d.all_workers() <= std::ceil(cores)) return std::nullopt;
  LoaderSettings fewer = d.given.settings;
  fewer.workers = std::max(1, static_cast<int>(cores / ranks));
  if (fewer.workers >= d.given.settings.workers) return std::nullopt;
  const LoaderForecast other = d.with(fewer);
  if (epoch_rate(other) < (1 - kSame) * epoch_rate(d.now)) return std::nullopt;
  return Finding{
      "workers_beyond_cores", Severity::kWarning,
      counted(d.all_workers(), "worker") + " on " + decimal(cores) +
          (cores == 1 ? " core" : " cores") + (ranks > 1 ? " that all processes share" : "") +
          " prepare no more than " + std::to_string(fewer.workers * ranks) + " (" +
          decimal(epoch_rate(d.now)) + " against " + decimal(epoch_rate(other)) +
          " samples/s a process), the first batch comes after " + human_time(d.now.first_batch) +
          " instead of " + human_time(other.first_batch) + " and " +
          human_bytes(d.now.shared_memory + d.now.worker_memory) +
          " of memory are held instead of " +
          human_bytes(other.shared_memory + other.worker_memory),
      "num_workers=" + std::to_string(fewer.workers)};
}

std::optional<Finding> loader_memory(const Diagnosis& d) {
  const Bytes memory = d.given.host.memory;
  if (memory.count() <= 0) return std::nullopt;
  const Bytes need = d.now.shared_memory + d.now.pinned_memory + d.now.worker_memory;
  if (static_cast<double>(need.count()) <= kMayFill * static_cast<double>(memory.count()))
    return std::nullopt;
  return Finding{"host_memory_too_small", Severity::kWarning,
                 "the loader needs " + human_bytes(need) + " (shared batches " +
                     human_bytes(d.now.shared_memory) + ", pinned " +
                     human_bytes(d.now.pinned_memory) + ", workers " +
                     human_bytes(d.now.worker_memory) + ") of " + human_bytes(memory) + " DRAM",
                 "fewer workers, prefetch_factor=2, or a smaller batch"};
}

std::optional<Finding> prefetch_without_gain(const Diagnosis& d) {
  constexpr int kDefault = 2;  // prefetch_factor of torch.utils.data.DataLoader
  if (d.given.settings.workers == 0 || d.given.settings.prefetch <= kDefault) return std::nullopt;
  LoaderSettings plain = d.given.settings;
  plain.prefetch = kDefault;
  const LoaderForecast other = d.with(plain);
  const double gain = d.now.samples_per_s / other.samples_per_s - 1;
  if (gain > kSame) return std::nullopt;
  return Finding{"prefetch_without_gain", Severity::kNote,
                 "prefetch_factor=" + std::to_string(d.given.settings.prefetch) + " holds " +
                     human_bytes(d.now.shared_memory) + " of /dev/shm instead of " +
                     human_bytes(other.shared_memory) + " and changes the rate by " +
                     fine_percent(std::max(0.0, gain)) +
                     ": batches ahead hide uneven samples, they do not make them faster",
                 "prefetch_factor=2"};
}

}  // namespace

const std::vector<Rule>& host_rules() {
  static const std::vector<Rule> kRules{
      shared_memory, open_files,   copy_on_read,  cpu_quota,
      affinity,      beyond_cores, loader_memory, prefetch_without_gain};
  return kRules;
}

}  // namespace stoker::rules
