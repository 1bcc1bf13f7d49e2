#include "input/loader/loader_model.h"

#include <algorithm>
#include <cmath>

#include "input/loader/loader_constants.h"
#include "input/loader/loader_streams.h"
#include "input/probe/page_cache.h"

namespace stoker {
namespace {

/// Where neither the host's figures nor the probe say it: so many readers at once each get the
/// speed of one alone. An assumption, on the low side for solid-state storage.
constexpr double kUnknownDiskReaders = 4;

/// glibc keeps freed memory for the next samples once it has seen a freed block as large as a
/// batch, but only up to this size (malloc's DEFAULT_MMAP_THRESHOLD_MAX on 64 bits). A worker's
/// batches live in shared memory, so it never sees one.
constexpr double kHeapKept = 32.0 * 1024 * 1024;

/// How long a thread waits at most for the interpreter's lock (sys.getswitchinterval()): while
/// samples are made in pure Python it waits so long each time.
constexpr Seconds kSwitchInterval = 5e-3_s;

/// Storage time of one sample for a lone reader, and how many readers it serves at that speed.
struct Disk {
  Seconds per_sample;
  double readers = 1;
};

Disk disk_of(const SampleCost& cost, const HostShare& host, double cached) {
  Disk disk;
  if (cost.read_bytes <= 0 || cached >= 1) return disk;
  Seconds saturated;  // a read when many are in flight
  if (host.disk_iops > 0 && !cost.sequential) saturated = Seconds(1 / host.disk_iops);
  if (host.disk_bandwidth > 0)
    saturated = std::max(saturated, Seconds(cost.read_bytes / host.disk_bandwidth));
  Seconds alone(1e-3 * cost.cold_seek_ms);
  if (cost.cold_bandwidth > 0) alone += Seconds(cost.read_bytes / cost.cold_bandwidth);
  if (alone == 0_s) alone = saturated;
  disk.per_sample = std::max(alone, saturated) * (1 - cached) * cost.storage_pace;
  disk.readers = saturated > 0_s         ? std::max(1.0, alone / saturated)
                 : cost.cold_speedup > 0 ? std::max(1.0, cost.cold_speedup)
                                         : kUnknownDiskReaders;
  return disk;
}

/// One batch in bytes and CPU time of collating, from measured batches or from coefficients.
struct BatchSize {
  double bytes = 0, tensors = 0, pickled = 0;
  Seconds collate;
  Seconds pickle, unpickle;  ///< CPU time on either side, beside the pipe
  Seconds pipe;              ///< in the pipe; 0: not measured
  Seconds collate_wait;
};

BatchSize batch_size_of(const SampleCost& cost, std::int64_t batch, bool in_worker) {
  const TransportCoefficients& t = cost.transport;
  const auto samples = static_cast<double>(batch);
  if (!cost.batches.empty()) {
    const BatchFacts facts = batch_facts_at(cost.batches, samples);
    return {static_cast<double>(facts.bytes.count()),
            facts.tensors,
            static_cast<double>(facts.pickled.count()),
            as_seconds(in_worker ? facts.collate_shared : facts.collate_private),
            as_seconds(facts.pickle),
            as_seconds(facts.unpickle),
            as_seconds(facts.pipe),
            as_seconds(facts.collate_wait)};
  }
  const double bytes = samples * static_cast<double>(cost.output.count());
  const double faults = in_worker || bytes > kHeapKept ? t.sample_fault_ns : 0;
  const double per_byte = (in_worker ? t.collate_shared_ns : t.collate_private_ns) + faults;
  BatchSize size;
  size.bytes = bytes;
  size.tensors = static_cast<double>(cost.tensors);
  size.collate = samples * as_seconds(t.collate_per_sample) + Seconds(1e-9 * per_byte * bytes);
  return size;
}

/// What a batch's objects take on their way, CPU time: of the feeder thread, and of either end
/// of the pipe.
struct Objects {
  Seconds pickle, pipe;
};

/// A probe that measured the pipe at this size knows more than the coefficients of other objects,
/// which hold pickling of their own.
Objects objects_of(const BatchSize& size, const TransportCoefficients& t) {
  if (size.pipe > 0_s) return {size.pickle, size.pipe};
  return {size.pickle + Seconds(1e-9 * t.pickle_worker_ns * size.pickled),
          Seconds(1e-9 * t.pickle_main_ns * size.pickled)};
}

void fill_batches(const LoaderSettings& settings, const SampleCost& cost, const HostShare& host,
                  double speed, LoaderModel& model) {
  const TransportCoefficients& t = cost.transport;
  const bool in_worker = settings.workers > 0;
  const BatchSize size = batch_size_of(cost, settings.batch, in_worker);
  const auto samples = static_cast<double>(settings.batch);
  const auto cpu = [&](Nanos time) { return as_seconds(time) / speed; };
  model.collate.per_sample = size.collate / speed / samples;
  model.collate_wait.per_sample = size.collate_wait / samples;
  if (settings.pin) model.pin_copy.per_sample = Seconds(size.bytes / host.pin_bandwidth / samples);
  if (!in_worker) return;
  model.collate.fixed =
      std::max(0_s, cpu(t.per_batch_worker) + size.tensors * cpu(t.per_tensor_worker) +
                        cpu(cost.worker_extra));
  const Objects objects = objects_of(size, t);
  const bool fill_pipe = size.pickled > static_cast<double>(kPipe.count());
  PerBatch& pickled_by = fill_pipe ? model.pickle : model.collate;
  PerBatch& moved_by = fill_pipe ? model.pipe : model.receive;
  pickled_by.per_sample += objects.pickle / speed / samples;
  moved_by.per_sample += objects.pipe / speed / samples;
  model.receive.fixed = std::max(
      0_s, cpu(t.per_batch_main) + size.tensors * cpu(t.per_tensor_main) + cpu(cost.main_extra));
  model.receive.per_sample +=
      (Seconds(1e-9 * t.per_byte_main_ns * size.bytes) + size.unpickle) / speed / samples;
  model.take = cpu(t.per_batch_main);
  model.lock_wait = as_seconds(cost.lock_wait);
  model.lock_share = std::min(1.0, model.lock_wait / kSwitchInterval);
  model.send_turns = kSendTurns;
  model.handover_turns =
      static_cast<int>(std::lround(size.tensors * static_cast<double>(kHandoverTurns)));
}

/// What the data set's own part of a start takes where no whole start was measured: pickling it,
/// the pipe, unpickling it.
Nanos sent_to_worker(const SampleCost::Start& start) {
  const auto bytes = static_cast<double>(start.pickled.count());
  const Nanos pipe(kPipeNs * bytes);
  if (start.pickle.count() <= 0) return pipe + Nanos(kPickledBothNs * bytes);
  const Nanos unpickle = start.unpickle.count() > 0 ? start.unpickle : start.pickle;
  return start.pickle + pipe + unpickle;
}

void fill_start(const LoaderSettings& settings, const SampleCost& cost, double speed,
                LoaderModel& model) {
  const TransportCoefficients& t = cost.transport;
  const auto cpu = [&](Nanos time) { return as_seconds(time) / speed; };
  model.reset = cpu(t.epoch_reset);
  model.warm_up = cpu(cost.warm_up);
  model.warm_up_wait = as_seconds(cost.warm_up_wait);
  model.sampler = cpu(cost.start.sampler);
  model.startup_wait = as_seconds(cost.start.wait);
  model.fork = cpu(t.fork_per_worker);
  const bool forks = settings.start_method == StartMethod::kFork;
  Nanos whole = forks                                          ? cost.start.fork
                : settings.start_method == StartMethod::kSpawn ? cost.start.spawn
                                                               : cost.start.forkserver;
  if (!forks) {
    model.fork = cpu(kSpawnCall);
    const Nanos interpreter =
        cost.start.interpreter.count() > 0 ? cost.start.interpreter : kUnknownSpawn;
    const bool served = settings.start_method == StartMethod::kForkserver;
    if (served) model.server = cpu(cost.start.server);
    if (whole.count() <= 0) {
      const bool forked = served && cost.start.served.count() > 0;
      whole = (forked ? cost.start.served : interpreter) + sent_to_worker(cost.start);
    }
    if (cost.start.pickled > kPipe) model.start = LoaderModel::Start::kSerial;
  }
  model.startup = whole.count() > 0
                      ? std::max(0_s, cpu(whole - std::min(whole, cost.start.wait)) - model.fork)
                      : cpu(t.worker_startup);
}

void fill_step(const Consumer& consumer, double batch_bytes, double speed, LoaderModel& model) {
  model.run_ahead = consumer.consumption == Consumption::kBlocking ? 0 : 1;
  model.step = as_seconds(consumer.step);
  model.host_cpu = as_seconds(consumer.host_cpu) / speed;
  model.step_fixed = std::clamp(consumer.fixed, 0.0, 1.0);
  const DeviceCopy& copy = consumer.copy;
  if (copy.bandwidth <= 0) return;
  const Seconds time(batch_bytes / copy.bandwidth);
  model.step = copy.way == CopyWay::kOverlapped ? std::max(model.step, time) : model.step + time;
  // The driver copies pageable memory into a pinned buffer of its own with the calling thread.
  if (!is_pinned(copy.way)) model.host_cpu += time;
}

/// Stretches of neighbours end where worker 0's turn would come again, so that each begins with its
/// turn as it was measured: which worker meets which batch is what matters.
SampleDeck deck_in_order(const std::vector<Seconds>& cpu, const std::vector<Seconds>& wait,
                         const SampleCost& cost, const LoaderSettings& settings) {
  if (cost.whole_epoch) return SampleDeck::in_order(cpu, wait);
  const std::int64_t round = settings.batch * std::max(1, settings.workers);
  std::vector<Seconds> kept_cpu, kept_wait;
  std::int64_t at = 0;
  for (const std::int64_t length : cost.stretches) {
    const std::int64_t kept = length < round ? length : length / round * round;
    for (std::int64_t i = at; i < at + kept; ++i) {
      kept_cpu.push_back(cpu[static_cast<std::size_t>(i)]);
      if (!wait.empty()) kept_wait.push_back(wait[static_cast<std::size_t>(i)]);
    }
    at += length;
  }
  return SampleDeck::in_order(kept_cpu, kept_wait);
}

}  // namespace

EpochShape epoch_shape(const LoaderSettings& settings, const SampleCost& cost, int ranks) {
  EpochShape epoch;
  const std::int64_t all =
      settings.dataset_samples > 0 ? settings.dataset_samples : cost.dataset_samples;
  if (all <= 0) return epoch;
  epoch.samples = (all + ranks - 1) / ranks;  // DistributedSampler pads to equal shares
  const auto batches_of = [&](std::int64_t samples) {
    return samples / settings.batch + (samples % settings.batch > 0 && !settings.drop_last ? 1 : 0);
  };
  const std::int64_t rest = epoch.samples % settings.batch;
  epoch.last = rest > 0 && !settings.drop_last ? rest : settings.batch;
  epoch.batches = batches_of(epoch.samples);
  if (!reads_streams(cost, settings.workers)) return epoch;
  epoch.streams = stream_lengths(cost, settings.workers, epoch.samples);
  epoch.batches = epoch.samples = 0;
  for (const std::int64_t length : epoch.streams) {
    epoch.batches += batches_of(length);
    epoch.samples += length;
  }
  return epoch;
}

/// Batches ahead that are simulated; a deeper window is never less full than the consumer needs,
/// and its memory is computed from the settings (loader_memory.h).
constexpr int kDeepest = 4096;

LoaderModel loader_model(const LoaderSettings& settings, const SampleCost& cost,
                         const HostShare& host, const Consumer& consumer) {
  const double speed = std::max(1e-3, host.relative_core_speed);
  LoaderModel model;
  model.batch = model.last_batch = settings.batch;
  model.workers = settings.workers;
  model.prefetch =
      std::clamp(settings.prefetch, 1, std::max(2, kDeepest / std::max(1, settings.workers)));
  model.ranks = std::max(1, host.ranks);
  model.pin = settings.pin && settings.workers > 0;
  model.in_order = settings.in_order;
  model.drop_last = settings.drop_last;
  model.cores = std::max(1e-3, host.cores - host.foreign_cores);
  model.quota = host.quota;
  model.slowdown_per_core = cost.slowdown_per_core;
  model.oversubscription = cost.transport.oversubscription;
  const Disk disk = disk_of(cost, host, cached_share(cost.dataset_bytes, host.memory));
  model.disk_per_sample = disk.per_sample;
  model.disk_capacity = disk.readers;
  const double where = (settings.workers > 0 ? 1 : cost.in_process_ratio) / speed;
  std::vector<Seconds> cpu, wait;
  cpu.reserve(cost.cpu.size());
  for (const Nanos time : cost.cpu) cpu.push_back(where * as_seconds(time));
  for (const Nanos time : cost.wait) wait.push_back(as_seconds(time));
  if (!cost.stretches.empty()) {
    model.samples = deck_in_order(cpu, wait, cost, settings);
  } else {
    model.samples = SampleDeck(cpu, wait, cost.within_batch, settings.batch, settings.seed);
    if (cost.within_batch > 0) model.alike = settings.batch;
  }
  fill_streams(settings, cost, where, model);
  fill_batches(settings, cost, host, speed, model);
  fill_start(settings, cost, speed, model);
  fill_step(consumer, cost.batch_bytes(settings.batch), speed, model);
  return model;
}

double unevenness(const LoaderModel& model) {
  constexpr int kBatches = 64;
  if (!model.worker_samples.empty()) return 1;
  if (model.samples.cards() <= 1) return 0;
  Dealer dealer(model.samples, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < kBatches; ++i) {
    const SampleWork work = dealer.deal(model.batch);
    const double time = (work.cpu + work.wait).count();
    sum += time / kBatches;
    squares += time * time / kBatches;
  }
  return sum > 0 ? std::sqrt(std::max(0.0, squares / (sum * sum) - 1)) : 0;
}

LoaderModel median_batches(LoaderModel model) {
  constexpr std::size_t kBatches = 33;
  if (model.samples.cards() <= 1) return model;
  // In a fixed order the first batch is known.
  if (model.samples.ordered() || !model.worker_samples.empty()) return model;
  Dealer dealer(model.samples, 0);
  std::vector<SampleWork> batches;
  for (std::size_t i = 0; i < kBatches; ++i) batches.push_back(dealer.deal(model.batch));
  const auto middle = batches.begin() + kBatches / 2;
  std::nth_element(
      batches.begin(), middle, batches.end(),
      [](const SampleWork& a, const SampleWork& b) { return a.cpu + a.wait < b.cpu + b.wait; });
  const auto n = static_cast<double>(model.batch);
  model.samples = SampleDeck({middle->cpu / n}, {middle->wait / n});
  return model;
}

}  // namespace stoker
