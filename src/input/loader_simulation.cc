#include "input/loader_simulation.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "input/loader_events.h"
#include "input/page_cache.h"

namespace stoker {
namespace {

/// An epoch of unknown length is taken as endless for throughput.
constexpr std::int64_t kEndless = std::int64_t{1} << 40;
/// Batches per rank simulated before and within the steady window, besides multiples of the
/// workers.
constexpr std::int64_t kWarmUp = 4, kWindow = 64;
/// A wait below this share of the interval is the step's doing, not the input's.
constexpr double kNoWait = 0.02;
/// A resource used above this share of its capacity is the limit.
constexpr double kSaturated = 0.92;
/// Where neither the host's figures nor the probe say it: so many readers at once each get the
/// speed of one alone. An assumption, on the low side for solid-state storage.
constexpr double kUnknownDiskReaders = 4;

/// glibc keeps freed memory for the next samples once it has seen a freed block as large as a
/// batch, but only up to this size (malloc's DEFAULT_MMAP_THRESHOLD_MAX on 64 bits). A worker's
/// batches live in shared memory, so it never sees one.
constexpr double kHeapKept = 32.0 * 1024 * 1024;

double in_seconds(Nanos t) { return seconds(t); }

std::int64_t pow2_at_least(std::int64_t bytes) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1))));
}

struct Epoch {
  std::int64_t samples = 0;  ///< of one rank; 0: unknown
  std::int64_t batches = kEndless;
  std::int64_t last = 0;  ///< samples of the last batch
};

Epoch epoch_of(const LoaderSettings& settings, const SampleCost& cost, int ranks) {
  Epoch epoch;
  const std::int64_t all =
      settings.dataset_samples > 0 ? settings.dataset_samples : cost.dataset_samples;
  if (all <= 0) return epoch;
  epoch.samples = (all + ranks - 1) / ranks;  // DistributedSampler pads to equal shares
  const std::int64_t whole = epoch.samples / settings.batch, rest = epoch.samples % settings.batch;
  epoch.last = rest > 0 && !settings.drop_last ? rest : settings.batch;
  epoch.batches = whole + (rest > 0 && !settings.drop_last ? 1 : 0);
  return epoch;
}

/// Storage time of one sample for a lone reader, and how many readers it serves at that speed.
struct Disk {
  double per_sample = 0, readers = 1;
};

Disk disk_of(const SampleCost& cost, const HostShare& host, double cached) {
  Disk disk;
  if (cost.read_bytes <= 0 || cached >= 1) return disk;
  double saturated = 0;  // seconds a read when many are in flight
  if (host.disk_iops > 0) saturated = 1 / host.disk_iops;
  if (host.disk_bandwidth > 0)
    saturated = std::max(saturated, cost.read_bytes / host.disk_bandwidth);
  double alone = 1e-3 * cost.cold_seek_ms;
  if (cost.cold_bandwidth > 0) alone += cost.read_bytes / cost.cold_bandwidth;
  if (alone == 0) alone = saturated;
  disk.per_sample = std::max(alone, saturated) * (1 - cached);
  disk.readers = saturated > 0           ? std::max(1.0, alone / saturated)
                 : cost.cold_speedup > 0 ? std::max(1.0, cost.cold_speedup)
                                         : kUnknownDiskReaders;
  return disk;
}

LoaderModel model_of(const LoaderSettings& settings, const SampleCost& cost, const HostShare& host,
                     const Consumer& consumer) {
  const TransportCoefficients& t = cost.transport;
  const auto bytes = static_cast<double>(cost.output.count());
  const double speed = std::max(1e-3, host.relative_core_speed);
  const auto cpu = [&](Nanos time) { return in_seconds(time) / speed; };
  LoaderModel model;
  model.batch = settings.batch;
  model.workers = settings.workers;
  model.prefetch = std::max(1, settings.prefetch);
  model.ranks = std::max(1, host.ranks);
  model.pin = settings.pin && settings.workers > 0;
  model.in_order = settings.in_order;
  model.forks = true;
  model.run_ahead = consumer.consumption == Consumption::kBlocking ? 0 : 1;
  model.cores = std::max(1e-3, host.cores);
  model.slowdown_per_core = cost.slowdown_per_core;
  model.oversubscription = t.oversubscription;
  const Disk disk = disk_of(cost, host, cached_share(cost.dataset_bytes, host.memory));
  model.disk_per_sample = disk.per_sample;
  model.disk_capacity = disk.readers;
  for (const Nanos time : cost.cpu) model.sample.push_back(cpu(time));
  const double tensors = cost.tensors;
  if (settings.workers > 0) {
    model.collate_sample = cpu(t.collate_per_sample) +
                           1e-9 * (t.collate_shared_ns + t.sample_fault_ns) * bytes / speed;
    model.worker_batch = cpu(t.per_batch_worker) + tensors * cpu(t.per_tensor_worker);
    model.receive_batch = cpu(t.per_batch_main) + tensors * cpu(t.per_tensor_main);
    model.receive_sample = 1e-9 * t.per_byte_main_ns * bytes / speed;
    if (settings.pin) {
      model.receive_sample += bytes / host.pin_bandwidth;
      model.take_batch = cpu(t.per_batch_main);
    }
  } else {
    const double faults =
        static_cast<double>(settings.batch) * bytes > kHeapKept ? t.sample_fault_ns : 0;
    model.collate_sample =
        cpu(t.collate_per_sample) + 1e-9 * (t.collate_private_ns + faults) * bytes / speed;
    if (settings.pin) model.receive_sample = bytes / host.pin_bandwidth;
  }
  model.fork = cpu(t.fork_per_worker);
  model.startup = cpu(t.worker_startup);
  model.reset = cpu(t.epoch_reset);
  model.step = in_seconds(consumer.step);
  model.host_cpu = in_seconds(consumer.host_cpu) / speed;
  model.seed = settings.seed;
  return model;
}

/// Rates over the steady window of a trace.
struct Steady {
  double interval = 0, cores = 0, workers = 0, disk = 0, main = 0, pin = 0;
};

Steady steady_of(const LoaderTrace& trace, std::size_t from, std::size_t to) {
  const LoaderTrace::Totals &a = trace.totals[from], &b = trace.totals[to];
  const double span = std::max(1e-12, trace.yielded[to] - trace.yielded[from]);
  return {span / static_cast<double>(to - from),
          (b.cores - a.cores) / span,
          (b.workers - a.workers) / span,
          (b.disk - a.disk) / span,
          (b.main - a.main) / span,
          (b.pin - a.pin) / span};
}

InputLimit limit_of(const Steady& steady, const LoaderModel& model, double wait) {
  if (wait < kNoWait * steady.interval) return InputLimit::kStep;
  if (steady.disk / model.disk_capacity > kSaturated) return InputLimit::kDisk;
  if (steady.cores / model.cores > kSaturated && model.workers > 0) return InputLimit::kCores;
  if (model.workers == 0) return InputLimit::kInProcess;
  if (steady.pin > kSaturated) return InputLimit::kPinThread;
  const double blocked = model.run_ahead == 0 ? model.step : model.host_cpu;
  if (steady.main + blocked / steady.interval > kSaturated) return InputLimit::kMainThread;
  const double workers = steady.workers / (static_cast<double>(model.workers) * model.ranks);
  return workers > kSaturated ? InputLimit::kWorkers : InputLimit::kJitter;
}

void fill_memory(const LoaderSettings& settings, const SampleCost& cost, int ranks,
                 LoaderForecast& out) {
  const std::int64_t batch = settings.batch * cost.output.count();
  const std::int64_t window = std::int64_t{settings.workers} * std::max(1, settings.prefetch);
  out.shared_memory = Bytes(window * batch * ranks);
  // Blocks of PyTorch's pinned allocator are powers of two, one more batch is in the loop's hands.
  if (settings.pin) out.pinned_memory = Bytes(pow2_at_least(batch) * (window + 1) * ranks);
  out.worker_memory = Bytes(cost.transport.worker_private.count() * settings.workers * ranks);
  out.file_descriptors = window * cost.tensors;
}

LoaderForecast unlimited(const LoaderSettings& settings, const SampleCost& cost,
                         const HostShare& host, const Consumer& consumer) {
  LoaderForecast out;
  const Epoch epoch = epoch_of(settings, cost, std::max(1, host.ranks));
  out.interval = consumer.step;
  if (consumer.step.count() > 0)
    out.samples_per_s = static_cast<double>(settings.batch) / seconds(consumer.step);
  if (epoch.samples > 0) {
    out.batches = epoch.batches;
    out.epoch = consumer.step * static_cast<double>(epoch.batches);
  }
  fill_memory(settings, cost, std::max(1, host.ranks), out);
  out.basis = cost.basis;
  return out;
}

/// Time from the start of an epoch to the end of its last step. Long epochs go on at the steady
/// pace after the simulated part.
double epoch_time(LoaderModel model, const Epoch& epoch, const LoaderTrace& endless,
                  double interval) {
  if (epoch.batches > model.batches) {
    return endless.step_end.back() + static_cast<double>(epoch.batches - model.batches) * interval;
  }
  model.batches = epoch.batches;
  model.last_batch = epoch.last;
  const LoaderTrace trace = play_loader(model);
  return trace.step_end.empty() ? 0 : trace.step_end.back();
}

}  // namespace

std::string_view input_limit_text(InputLimit limit) {
  switch (limit) {
    case InputLimit::kStep:
      return "the step";
    case InputLimit::kCores:
      return "CPU cores (decoding and transforms)";
    case InputLimit::kWorkers:
      return "too few workers";
    case InputLimit::kMainThread:
      return "receiving batches in the training process";
    case InputLimit::kPinThread:
      return "the pin-memory thread";
    case InputLimit::kDisk:
      return "reading from storage";
    case InputLimit::kInProcess:
      return "loading in the training process (0 workers)";
    case InputLimit::kJitter:
      return "uneven samples (deeper prefetch)";
  }
  return "";
}

LoaderForecast simulate_loader(const LoaderSettings& given, const SampleCost& cost,
                               const HostShare& host, const Consumer& consumer) {
  LoaderSettings settings = given;
  settings.batch = std::max<std::int64_t>(1, settings.batch);
  settings.workers = std::clamp(settings.workers, 0, 1024);
  if (!cost.known) return unlimited(settings, cost, host, consumer);
  LoaderModel model = model_of(settings, cost, host, consumer);
  const Epoch epoch = epoch_of(settings, cost, model.ranks);
  const std::int64_t window = std::int64_t{model.workers} * model.prefetch;
  const std::int64_t warm = kWarmUp + 2 * window + model.workers;
  // Workers keep step with each other, so batches come in rounds: whole rounds are measured, and
  // the last window of batches, whose workers find nothing more to do, is left out.
  const std::int64_t round = std::max(1, model.workers);
  const std::int64_t measured = round * ((kWindow + round - 1) / round + 3);
  model.batches = warm + measured + window + 1;
  model.last_batch = model.batch;
  const LoaderTrace trace = play_loader(model);
  const Steady steady =
      steady_of(trace, static_cast<std::size_t>(warm), static_cast<std::size_t>(warm + measured));

  LoaderForecast out;
  out.interval = steady.interval * kSecond;
  out.samples_per_s = static_cast<double>(model.batch) / steady.interval;
  const double wait = std::max(0.0, steady.interval - std::max(model.step, model.host_cpu));
  out.wait = wait * kSecond;
  out.first_batch = trace.yielded.front() * kSecond;
  out.epoch_start = out.first_batch;
  if (settings.persistent && model.workers > 0) {
    LoaderModel later = model;
    later.forks = false;
    later.batches = std::min<std::int64_t>(later.batches, window + 1);
    out.epoch_start = play_loader(later).yielded.front() * kSecond;
  }
  if (epoch.samples > 0 && epoch.batches > 0) {
    out.batches = epoch.batches;
    out.epoch = epoch_time(model, epoch, trace, steady.interval) * kSecond - out.first_batch +
                out.epoch_start;
    if (!settings.persistent) {
      out.epoch += static_cast<double>(model.workers) * cost.transport.shutdown_per_worker;
    }
  }
  const double all_workers = static_cast<double>(model.workers) * model.ranks;
  out.worker_utilization = all_workers > 0 ? std::min(1.0, steady.workers / all_workers) : 0;
  out.cores_used = steady.cores;
  out.main_utilization = std::min(1.0, std::max(steady.main, steady.pin));
  out.disk_utilization = std::min(1.0, steady.disk / model.disk_capacity);
  out.cached_share = cost.read_bytes > 0 ? cached_share(cost.dataset_bytes, host.memory) : 1;
  fill_memory(settings, cost, model.ranks, out);
  out.limit = limit_of(steady, model, wait);
  out.basis = cost.basis;
  return out;
}

}  // namespace stoker
