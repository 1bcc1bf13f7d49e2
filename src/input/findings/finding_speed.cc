// Findings about batches that come late: who makes them late, and what helps.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "input/findings/finding_rules.h"
#include "input/loader/loader_streams.h"
#include "input/probe/batched_indexing.h"

namespace stoker::rules {
namespace {

/// A stall below this share of the time from batch to batch is not seen in a log of step times.
constexpr double kSeenStall = 0.05;
/// From this share of a sample's cost on, decoding is what to change first.
constexpr double kMostlyDecoding = 0.4;
/// Files below this size cost a storage more by their number than by their bytes: at 1 MB, 5 ms a
/// seek equal 200 MB/s, what one hard disk reads.
constexpr double kSmallFile = 1e6;
/// Storage used above this share of its capacity queues its readers.
constexpr double kBusyStorage = 0.5;

double gain_of(const LoaderForecast& other, const LoaderForecast& now) {
  return other.samples_per_s / now.samples_per_s - 1;
}

std::optional<Finding> periodic_stalls(const Diagnosis& d) {
  const LoaderSettings& s = d.given.settings;
  const bool prepared_too_slowly = d.now.limit == InputLimit::kCores ||
                                   d.now.limit == InputLimit::kWorkers ||
                                   d.now.limit == InputLimit::kDisk;
  if (!s.in_order || s.workers < 2 || !prepared_too_slowly) return std::nullopt;
  if (d.now.wait.count() < kSeenStall * d.now.interval.count()) return std::nullopt;
  const double workers = s.workers;
  const std::string nth = "one batch in " + std::to_string(s.workers);
  std::string cure = "batches are prepared too slowly, whatever the prefetch: ";
  cure += d.now.limit == InputLimit::kWorkers ? "more workers" : "cheaper samples or more cores";
  return Finding{"stall_every_nth_batch", Severity::kWarning,
                 counted(s.workers, "worker") + " need " + human_time(d.now.interval * workers) +
                     " for a batch each and finish at about the same time, so " + nth +
                     " waits about " + human_time(d.now.wait * workers) +
                     " and those between hardly",
                 cure};
}

std::optional<Finding> slower_than_none(const Diagnosis& d) {
  if (d.given.settings.workers == 0) return std::nullopt;
  LoaderSettings none = d.given.settings;
  none.workers = 0;
  const LoaderForecast alone = d.with(none);
  const double gain = gain_of(alone, d.now);
  if (gain < kWorthSaying) return std::nullopt;
  const int most = static_cast<int>(d.given.host.cores / std::max(1, d.given.host.ranks));
  std::string cure = "num_workers=0";
  for (int workers = d.given.settings.workers + 1; workers <= most; ++workers) {
    LoaderSettings more = d.given.settings;
    more.workers = workers;
    if (d.with(more).samples_per_s < (1 + kWorthSaying) * alone.samples_per_s) continue;
    cure += ", or num_workers=" + std::to_string(workers) + ", which outweigh it";
    break;
  }
  cure += "; larger batches or one packed tensor a batch make the crossing cheaper";
  return Finding{"workers_slower_than_none", Severity::kWarning,
                 counted(d.given.settings.workers, "worker") + " deliver " +
                     rate_text(d.now.samples_per_s) + ", the training process by itself " +
                     rate_text(alone.samples_per_s) + " (" + fine_percent(gain) +
                     " more): making a sample is cheaper than bringing it over from a worker",
                 cure};
}

std::optional<Finding> slow_sample(const Diagnosis& d) {
  const auto& cpu = d.given.sample.cpu;
  if (!d.given.settings.in_order || d.given.settings.workers < 2 || cpu.size() < 2)
    return std::nullopt;
  LoaderSettings free = d.given.settings;
  free.in_order = false;
  const double gain = gain_of(d.with(free), d.now);
  if (gain < kWorthSaying) return std::nullopt;
  Nanos slowest;
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    const Nanos wait = i < d.given.sample.wait.size() ? d.given.sample.wait[i] : Nanos{};
    slowest = std::max(slowest, cpu[i] + wait);
  }
  const Nanos mean = d.given.sample.mean_cpu() + d.given.sample.mean_wait();
  return Finding{"slow_sample_stalls_all", Severity::kWarning,
                 "the slowest of " + with_commas(static_cast<std::int64_t>(cpu.size())) +
                     " measured samples takes " + human_time(slowest) + ", " +
                     decimal(slowest / mean) +
                     " times the mean; batches that are finished wait behind it",
                 "DataLoader(in_order=False) of PyTorch 2.6 on: " + fine_percent(gain) +
                     " more samples/s, the order of batches then varies from run to run; or make "
                     "that sample cheaper"};
}

/// Shards, files or row groups: each is read by one worker.
std::optional<Finding> few_units(const Diagnosis& d) {
  const std::int64_t units = work_units(d.given.sample);
  const int workers = d.given.settings.workers;
  if (units <= 0 || workers == 0 || units > workers) return std::nullopt;
  const bool idle = units < workers;
  if (!idle && !d.prep_bound()) return std::nullopt;
  const std::string parts = counted(units, "part");
  return Finding{
      "too_few_shards", Severity::kWarning,
      "the data lie in " + parts + " (shards, files or row groups), each read by one worker: " +
          (idle ? counted(workers - units, "worker") + " of " + std::to_string(workers) +
                      " have nothing to do"
                : "more workers would have nothing to do"),
      "cut the data into more parts, a multiple of the number of workers; or hand single samples "
      "out (a map-style Dataset with an index into the shards)"};
}

/// Fetching samples one by one and putting them together takes longer than all else.
std::optional<Finding> collate_bound(const Diagnosis& d) {
  if (!d.prep_bound() || !handles_samples_singly(d.given.sample, d.given.settings.batch))
    return std::nullopt;
  const auto samples = static_cast<double>(d.given.settings.batch);
  const BatchFacts facts = batch_facts_at(d.given.sample.batches, samples);
  const LoaderForecast whole = simulate_loader(d.given.settings, indexed_by_batches(d.given.sample),
                                               d.given.host, d.given.consumer);
  return Finding{"collate_bound", Severity::kWarning,
                 "collating a batch of " + std::to_string(d.given.settings.batch) + " takes " +
                     human_time(facts.collate_shared) + ", making its samples " +
                     human_time(samples * (d.given.sample.mean_cpu() + d.given.sample.mean_wait())),
                 "index whole batches: keep the data as one tensor or array and let "
                 "Dataset.__getitems__(indices) "
                 "return data[indices] (with collate_fn=lambda batch: batch), or give a "
                 "BatchSampler as sampler= "
                 "with batch_size=None: about " +
                     rate_text(whole.samples_per_s) + ", " + fine_percent(gain_of(whole, d.now)) +
                     " more; more cores only repeat the same work"};
}

std::optional<Finding> small_files(const Diagnosis& d) {
  const double uncached = 1 - d.now.cached_share;
  const double bytes = d.given.sample.read_bytes;
  const bool network = !d.given.network_storage.empty();
  if (bytes <= 0 || bytes > kSmallFile || uncached < kSeenStall || d.given.sample.sequential)
    return std::nullopt;
  const bool limits = d.now.limit == InputLimit::kDisk;
  if (!limits && d.now.disk_utilization < kBusyStorage) return std::nullopt;
  return Finding{
      "many_small_files", limits ? Severity::kWarning : Severity::kNote,
      "files of " + human_bytes(Bytes(std::llround(bytes))) + " each, read one by one" +
          (network ? " over " + d.given.network_storage : "") + ": the storage is used " +
          fine_percent(d.now.disk_utilization) + ", " + fine_percent(uncached) +
          " of the reads miss the page cache",
      std::string(network ? "copy the data to a local disk, or pack" : "pack") +
          " it into tar shards that are read in sequence; more workers make it worse where the "
          "number of requests is the limit"};
}

std::optional<Finding> cache_too_small(const Diagnosis& d) {
  const SampleCost& sample = d.given.sample;
  if (sample.read_bytes <= 0 || d.now.cached_share >= 1 || d.given.host.memory.count() <= 0)
    return std::nullopt;
  const bool limits = d.now.limit == InputLimit::kDisk;
  return Finding{"data_exceeds_page_cache", limits ? Severity::kWarning : Severity::kNote,
                 human_bytes(sample.dataset_bytes) + " of data and " +
                     human_bytes(d.given.host.memory) + " DRAM: the page cache serves about " +
                     fine_percent(d.now.cached_share) + " of a later epoch's reads in random order",
                 limits ? "more DRAM than data, smaller files, or a faster disk"
                        : "nothing while the storage keeps up; a faster step would need more DRAM "
                          "than data, or smaller files"};
}

std::optional<Finding> pin_thread(const Diagnosis& d) {
  if (!d.given.settings.pin || d.given.settings.workers == 0) return std::nullopt;
  LoaderSettings pageable = d.given.settings;
  pageable.pin = false;
  const double gain = gain_of(d.with(pageable), d.now);
  if (d.now.limit != InputLimit::kPinThread && gain < kWorthSaying) return std::nullopt;
  std::string evidence = "the one pin-memory thread is busy " +
                         fine_percent(d.now.main_utilization) +
                         " of the time: it receives, unpickles (sharing the interpreter's lock "
                         "with the training loop) and copies every batch";
  if (gain >= kWorthSaying)
    evidence += "; without it the loader delivers " + fine_percent(gain) + " more";
  return Finding{"pin_thread_bound", Severity::kWarning, evidence,
                 "hand over bytes instead of floats (normalise on the GPU), fewer and larger "
                 "tensors, no NumPy or Python objects in a batch; or pin_memory=False where the "
                 "copies of the step are short"};
}

std::optional<Finding> receiving(const Diagnosis& d) {
  if (d.now.limit != InputLimit::kMainThread) return std::nullopt;
  return Finding{
      "receiving_bound", Severity::kWarning,
      "the training process is busy " + fine_percent(d.now.main_utilization) +
          " of the time with receiving batches of " +
          human_bytes(Bytes(std::llround(d.given.sample.batch_bytes(d.given.settings.batch)))) +
          ", which no number of workers shortens",
      "hand over bytes instead of floats (normalise on the GPU), fewer and larger "
      "tensors, tensors instead of NumPy arrays or lists; pin_memory=True moves it to "
      "a thread of its own"};
}

/// Share of a sample's cost that decoding takes, by the probe; 0: unknown.
double decoding_share(const LoaderCase& given) {
  if (given.folder != nullptr && given.folder->sample_ms.mean > 0) {
    return given.folder->stage_ms[static_cast<std::size_t>(Stage::kDecode)].mean /
           given.folder->sample_ms.mean;
  }
  double share = 0;
  if (given.pipeline != nullptr) {
    for (const auto& stage : given.pipeline->stages) {
      if (simplified(stage.name).find("decode") != std::string::npos) share += stage.share;
    }
  }
  return share;
}

std::optional<Finding> decode_bound(const Diagnosis& d) {
  const double share = decoding_share(d.given);
  if (!d.prep_bound() || share < kMostlyDecoding) return std::nullopt;
  return Finding{
      "decode_bound", Severity::kWarning,
      "decoding takes " + fine_percent(share) +
          " of a sample's CPU time, and the CPU holds "
          "the loader at " +
          rate_text(d.now.samples_per_s),
      "resize the files once to what the crop needs, decode at a smaller scale (JPEG "
      "draft mode), a faster decoder (torchvision.io, torchcodec), or decode on the GPU"};
}

std::optional<Finding> jitter(const Diagnosis& d) {
  if (d.now.limit != InputLimit::kJitter) return std::nullopt;
  std::string cure;
  for (const int factor : {2, 4}) {
    LoaderSettings deeper = d.given.settings;
    deeper.prefetch = d.given.settings.prefetch * factor;
    const LoaderForecast other = d.with(deeper);
    const double gain = gain_of(other, d.now);
    if (gain < kWorthSaying) continue;
    cure = "prefetch_factor=" + std::to_string(deeper.prefetch) + " (" + fine_percent(gain) +
           " more samples/s, " + human_bytes(other.shared_memory) + " of /dev/shm)";
    break;
  }
  if (cure.empty()) cure = "more even samples: depth does not help here, in_order=False may";
  return Finding{"uneven_batches", Severity::kNote,
                 "the workers are busy " + fine_percent(d.now.worker_utilization) +
                     " of the time only, yet the GPU waits " + human_time(d.now.wait) +
                     " a step: batches come unevenly, and utilisation swings",
                 cure};
}

}  // namespace

const std::vector<Rule>& speed_rules() {
  static const std::vector<Rule> kRules{
      periodic_stalls, slower_than_none, slow_sample, few_units,    collate_bound, small_files,
      cache_too_small, pin_thread,       receiving,   decode_bound, jitter};
  return kRules;
}

}  // namespace stoker::rules
