#include "input/loader/loader_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "input/loader/loader_events.h"
#include "input/loader/loader_memory.h"
#include "input/loader/loader_model.h"
#include "input/probe/page_cache.h"

namespace stoker {
namespace {

/// Batches per rank simulated before and within the steady window, besides multiples of the
/// workers.
constexpr std::int64_t kWarmUp = 4, kWindow = 64;
/// Where batches differ by more than this share, rare slow ones set the pace: the window is longer,
/// and more orders are played.
constexpr double kUneven = 0.25;
constexpr std::int64_t kUnevenWindow = 512;
/// Samples in a fixed order are played through once, if that takes no more batches than this.
constexpr std::int64_t kLongestRound = 4096;
/// A wait below this share of the interval is the step's doing, not the input's.
constexpr double kNoWait = 0.02;
/// A resource used above this share of its capacity is the limit.
constexpr double kSaturated = 0.92;
/// Short epochs are played with this many orders of the samples, and averaged.
constexpr int kOrders = 3, kUnevenOrders = 8;

/// Rates over the steady window of a trace.
struct Steady {
  Seconds interval;
  double cores = 0, workers = 0, disk = 0, main = 0, pin = 0;
};

Steady steady_of(const LoaderTrace& trace, std::size_t from, std::size_t to) {
  const LoaderTrace::Totals &a = trace.totals[from], &b = trace.totals[to];
  const Seconds span = std::max(1e-12_s, trace.yielded[to] - trace.yielded[from]);
  return {span / static_cast<double>(to - from),
          (b.cores - a.cores) / span,
          (b.workers - a.workers) / span,
          (b.disk - a.disk) / span,
          (b.main - a.main) / span,
          (b.pin - a.pin) / span};
}

InputLimit limit_of(const Steady& steady, const LoaderModel& model, Seconds wait) {
  if (wait < kNoWait * steady.interval) return InputLimit::kStep;
  if (steady.disk / model.disk_capacity > kSaturated) return InputLimit::kDisk;
  const double cores =
      model.quota.cores > 0 ? std::min(model.cores, model.quota.cores) : model.cores;
  if (steady.cores / cores > kSaturated && model.workers > 0) return InputLimit::kCores;
  if (model.workers == 0) return InputLimit::kInProcess;
  if (steady.pin > kSaturated) return InputLimit::kPinThread;
  const Seconds blocked = model.run_ahead == 0 ? model.step : model.host_cpu;
  if (steady.main + blocked / steady.interval > kSaturated) return InputLimit::kMainThread;
  const double workers = steady.workers / (static_cast<double>(model.workers) * model.ranks);
  return workers > kSaturated ? InputLimit::kWorkers : InputLimit::kJitter;
}

void fill_memory(const LoaderSettings& settings, const SampleCost& cost, int ranks,
                 LoaderForecast& out) {
  const LoaderMemory memory = loader_memory(settings, cost, ranks);
  out.shared_memory = out.shared_memory_used = memory.shared;
  out.pinned_memory = memory.pinned;
  out.worker_memory = memory.workers;
  out.copied_memory = memory.copied;
  out.file_descriptors = memory.file_descriptors;
}

QueueDepth queue_of(const LoaderTrace& trace, std::size_t from, std::size_t to) {
  std::vector<int> depth(trace.ready.begin() + static_cast<std::ptrdiff_t>(from),
                         trace.ready.begin() + static_cast<std::ptrdiff_t>(to));
  if (depth.empty()) return {};
  std::sort(depth.begin(), depth.end());
  const auto at = [&](double share) {
    return depth[static_cast<std::size_t>(share * static_cast<double>(depth.size() - 1) + 0.5)];
  };
  double sum = 0;
  for (const int d : depth) sum += d;
  return {sum / static_cast<double>(depth.size()), static_cast<double>(at(0.1)),
          static_cast<double>(at(0.5)), static_cast<double>(at(0.9))};
}

int all_ranks(const HostShare& host) { return std::max({1, host.ranks, host.all_ranks}); }

/// Samples of an epoch that reach the training loop of one rank.
std::int64_t delivered_samples(const EpochShape& epoch, const LoaderSettings& settings) {
  return settings.drop_last ? std::min(epoch.samples, epoch.batches * settings.batch)
                            : epoch.samples;
}

LoaderForecast unlimited(const LoaderSettings& settings, const SampleCost& cost,
                         const HostShare& host, const Consumer& consumer) {
  LoaderForecast out;
  const EpochShape epoch = epoch_shape(settings, cost, all_ranks(host));
  out.interval = consumer.step;
  if (consumer.step.count() > 0)
    out.samples_per_s = static_cast<double>(settings.batch) / seconds(consumer.step);
  if (epoch.samples > 0) {
    out.batches = epoch.batches;
    out.epoch_samples = delivered_samples(epoch, settings);
    out.epoch = consumer.step * static_cast<double>(epoch.batches);
  }
  fill_memory(settings, cost, std::max(1, host.ranks), out);
  out.basis = cost.basis;
  return out;
}

/// A whole epoch as it was played.
struct Played {
  Seconds epoch;         ///< until the end of the last step
  double most_held = 0;  ///< samples in shared memory, a rank
};

/// A long epoch of streams that end at different times: the same with all of them shorter in
/// proportion.
Seconds shortened_epoch(LoaderModel model, const EpochShape& epoch) {
  const double part = static_cast<double>(model.batches) / static_cast<double>(epoch.batches);
  model.streams.clear();
  for (const std::int64_t length : epoch.streams) {
    const double batches = part * static_cast<double>(length) / static_cast<double>(model.batch);
    model.streams.push_back(std::llround(batches) * model.batch);
  }
  model.stop_after = 0;
  const LoaderTrace trace = play_loader(model);
  if (trace.step_end.empty()) return {};
  return trace.yielded.front() + (trace.step_end.back() - trace.yielded.front()) / part;
}

bool ends_unevenly(const EpochShape& epoch, std::int64_t batch) {
  if (epoch.streams.empty()) return false;
  const auto [least, most] = std::minmax_element(epoch.streams.begin(), epoch.streams.end());
  return *most - *least > batch;
}

/// Long epochs go on at the steady pace after the simulated part; short ones are played out, with
/// several orders of the samples.
Played play_epoch(LoaderModel model, const EpochShape& epoch, const LoaderTrace& endless,
                  Seconds interval, bool uneven, std::int64_t stop_after) {
  Played out;
  out.most_held = static_cast<double>(endless.peak_samples);
  if (epoch.batches > model.batches) {
    if (stop_after == 0 && (ends_unevenly(epoch, model.batch) || !model.worker_samples.empty())) {
      out.epoch = shortened_epoch(model, epoch);
      return out;
    }
    out.epoch =
        endless.step_end.back() + static_cast<double>(epoch.batches - model.batches) * interval;
    return out;
  }
  model.batches = epoch.batches;
  model.last_batch = epoch.last;
  if (stop_after == 0) model.streams = epoch.streams;
  model.stop_after = stop_after;
  const bool fixed = model.samples.ordered() || !model.worker_samples.empty();
  const int orders = fixed || model.samples.cards() <= 1 ? 1 : uneven ? kUnevenOrders : kOrders;
  out.most_held = 0;
  for (int i = 0; i < orders; ++i) {
    if (uneven && i > 0)
      model.samples = model.samples.shuffled(model.alike, static_cast<std::uint64_t>(i));
    model.first_card = static_cast<std::uint64_t>(i) * model.samples.cards() / orders;
    const LoaderTrace trace = play_loader(model);
    if (!trace.step_end.empty()) out.epoch += trace.step_end.back() / orders;
    out.most_held += static_cast<double>(trace.peak_samples) / orders;
  }
  return out;
}

/// Batches until samples in a fixed order begin again; 0 where there is no such order.
std::int64_t whole_round(const LoaderModel& model) {
  std::size_t cards = model.samples.ordered() ? model.samples.cards() : 0;
  for (const SampleDeck& deck : model.worker_samples)
    cards = std::max(cards, deck.cards() * model.worker_samples.size());
  return std::min(kLongestRound, static_cast<std::int64_t>(cards) / model.batch);
}

/// The part of the epoch that the loop goes through.
EpochShape epoch_to_play(const LoaderSettings& settings, EpochShape epoch) {
  if (settings.stop_after <= 0) return epoch;
  epoch.batches = std::min(epoch.batches, settings.stop_after);
  epoch.last = settings.batch;
  epoch.samples = epoch.batches * settings.batch;
  return epoch;
}

/// Workers that wait for nobody end their streams early, and the slowest goes on alone: no pace is
/// steady, and the whole epoch counts. Streams of unknown length are taken as equal.
void end_streams(LoaderModel& model, const EpochShape& epoch) {
  std::int64_t all = 0;
  for (const std::int64_t length : epoch.streams) all += length;
  const std::vector<std::int64_t> endless = std::exchange(model.streams, {});
  for (std::size_t w = 0; w < endless.size(); ++w) {
    const double share = all > 0 ? static_cast<double>(epoch.streams[w]) / static_cast<double>(all)
                                 : 1 / static_cast<double>(endless.size());
    const auto batches = std::llround(share * static_cast<double>(model.batches));
    model.streams.push_back(endless[w] == 0 ? 0 : batches * model.batch);
  }
  model.stop_after = 0;
}

/// Until batch 0 of an epoch, for batches of median cost.
Nanos first_batch_of(const LoaderModel& endless, const EpochShape& epoch) {
  LoaderModel model = median_batches(endless);
  const std::int64_t window = std::int64_t{model.workers} * model.prefetch + 1;
  if (epoch.batches <= window) {
    model.batches = epoch.batches;
    model.last_batch = epoch.last;
  } else {
    model.batches = window;
  }
  model.stop_after = 1;
  const LoaderTrace trace = play_loader(model);
  return trace.yielded.empty() ? Nanos{} : as_nanos(trace.yielded.front());
}

}  // namespace

std::string_view start_method_name(StartMethod method) {
  switch (method) {
    case StartMethod::kFork:
      return "fork";
    case StartMethod::kForkserver:
      return "forkserver";
    case StartMethod::kSpawn:
      return "spawn";
  }
  return "";
}

std::optional<StartMethod> start_method_named(std::string_view name) {
  for (const StartMethod method :
       {StartMethod::kFork, StartMethod::kForkserver, StartMethod::kSpawn}) {
    if (name == start_method_name(method)) return method;
  }
  return std::nullopt;
}

std::string_view name_of(InputLimit limit) {
  constexpr std::array<std::string_view, 8> kNames{
      "step", "cores", "workers", "main_thread", "pin_thread", "disk", "in_process", "jitter"};
  return kNames.at(static_cast<std::size_t>(limit));
}

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
  LoaderModel model = loader_model(settings, cost, host, consumer);
  const EpochShape epoch = epoch_to_play(settings, epoch_shape(settings, cost, all_ranks(host)));
  const std::int64_t window = std::int64_t{model.workers} * model.prefetch;
  const std::int64_t warm = kWarmUp + 2 * window + model.workers;
  // Workers keep step with each other, so batches come in rounds: whole rounds are measured, and
  // the last window of batches, whose workers find nothing more to do, is left out.
  const std::int64_t round = std::max(1, model.workers);
  const bool uneven = unevenness(model) > kUneven;
  const std::int64_t least = std::max(uneven ? kUnevenWindow : kWindow, whole_round(model));
  const std::int64_t measured = round * ((least + round - 1) / round + 3);
  model.batches = warm + measured + window + 1;
  model.stop_after = model.streams.empty() ? 0 : model.batches;
  model.last_batch = model.batch;
  if (!model.worker_samples.empty() && !model.in_order && settings.stop_after == 0)
    end_streams(model, epoch);
  const LoaderTrace trace = play_loader(model);
  const std::int64_t last =
      std::min<std::int64_t>(warm + measured, static_cast<std::int64_t>(trace.yielded.size()) - 1);
  const std::int64_t first =
      model.stop_after == 0 && !model.streams.empty() ? 0 : std::min(warm, last);
  const Steady steady =
      steady_of(trace, static_cast<std::size_t>(first), static_cast<std::size_t>(last));

  LoaderForecast out;
  auto used = static_cast<double>(trace.peak_samples);
  out.interval = as_nanos(steady.interval);
  out.samples_per_s = static_cast<double>(model.batch) / steady.interval.count();
  const Seconds wait = std::max(0_s, steady.interval - std::max(model.step, model.host_cpu));
  out.wait = as_nanos(wait);
  out.first_batch = first_batch_of(model, epoch);
  out.epoch_start = out.first_batch;
  const bool forks = settings.start_method == StartMethod::kFork || model.workers == 0;
  if (model.server > 0_s) {  // it lives on
    LoaderModel later = model;
    later.server = {};
    out.epoch_start = first_batch_of(later, epoch);
  }
  if (settings.persistent || model.workers == 0 || !forks) {
    LoaderModel later = model;
    later.start = LoaderModel::Start::kRunning;
    const Nanos running = first_batch_of(later, epoch);
    if (settings.persistent || model.workers == 0) out.epoch_start = running;
    if (!forks) {
      out.started = std::max(Nanos{}, out.first_batch - running);
      out.started_band = cost.start.band;
    }
  }
  out.queue =
      queue_of(trace, static_cast<std::size_t>(warm), static_cast<std::size_t>(warm + measured));
  fill_memory(settings, cost, model.ranks, out);
  if (epoch.samples > 0 && epoch.batches > 0) {
    out.batches = epoch.batches;
    out.epoch_samples = delivered_samples(epoch, settings);
    const Played played =
        play_epoch(model, epoch, trace, steady.interval, uneven, settings.stop_after);
    out.epoch = as_nanos(played.epoch) - out.first_batch + out.epoch_start;
    if (!settings.persistent && model.workers > 0)
      out.shutdown = static_cast<double>(model.workers) * cost.transport.shutdown_per_worker;
    out.epoch += out.shutdown;
    used = played.most_held;
  }
  out.shared_memory_used = Bytes(std::llround(used * cost.batch_bytes(model.batch) /
                                              static_cast<double>(model.batch) * model.ranks));
  const double all_workers = static_cast<double>(model.workers) * model.ranks;
  out.worker_utilization = all_workers > 0 ? std::min(1.0, steady.workers / all_workers) : 0;
  out.cores_used = steady.cores;
  out.main_utilization = std::min(1.0, std::max(steady.main, steady.pin));
  out.disk_utilization = std::min(1.0, steady.disk / model.disk_capacity);
  out.cached_share = cost.read_bytes > 0 ? cached_share(cost.dataset_bytes, host.memory) : 1;
  out.limit = limit_of(steady, model, wait);
  out.basis = cost.basis;
  return out;
}

}  // namespace stoker
