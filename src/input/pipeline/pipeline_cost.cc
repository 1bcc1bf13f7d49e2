#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "input/loader/batch_draws.h"
#include "input/loader/loader_constants.h"
#include "input/pipeline/one_worker.h"
#include "input/pipeline/pipeline_probe.h"

namespace stoker {
namespace {

/// Timers and wake-ups move a wait by so much from run to run.
constexpr double kLeastWaitError = 0.03;

/// One stretch of a fixed order says little of the rest: an assumption.
constexpr double kElsewhere = 0.5;

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

/// What the probe lacks, for people; empty when nothing.
std::string missing_from(const PipelineProbe& probe) {
  std::vector<std::string> lacks;
  if (probe.transport.empty()) lacks.emplace_back("transport");
  if (probe.batch.empty()) lacks.emplace_back("batches (taken as empty)");
  if (probe.parallel.threads <= 1) lacks.emplace_back("parallel efficiency (taken as 1)");
  std::string text;
  for (const std::string& word : lacks) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Samples in the order in which the loader asks for them.
void take_order(const PipelineProbe& probe, SampleCost& cost) {
  bool waits = false;
  for (const PipelineProbe::Stretch& stretch : probe.order) {
    cost.stretches.push_back(static_cast<std::int64_t>(stretch.cpu.size()));
    cost.cpu.insert(cost.cpu.end(), stretch.cpu.begin(), stretch.cpu.end());
    cost.wait.insert(cost.wait.end(), stretch.wait.begin(), stretch.wait.end());
    for (const Nanos wait : stretch.wait) waits = waits || wait.count() > 0;
  }
  if (!waits) cost.wait.clear();
  cost.whole_epoch = probe.whole_epoch;
}

/// Samples in no order that matters.
void take_shuffled(const PipelineProbe& probe, SampleCost& cost) {
  std::vector<SampleWork> samples;
  for (std::size_t i = 0; i < probe.cpu.size(); ++i)
    samples.push_back(
        {as_seconds(probe.cpu[i]), i < probe.wait.size() ? as_seconds(probe.wait[i]) : 0_s});
  bool waits = false;
  for (const SampleWork& sample : representative(std::move(samples))) {
    cost.cpu.push_back(as_nanos(sample.cpu));
    cost.wait.push_back(as_nanos(sample.wait));
    waits = waits || sample.wait > 0_s;
  }
  if (!waits) cost.wait.clear();
}

/// Samples of an epoch; of streams that were read to their ends without a length that the data set
/// told, what these held together.
std::int64_t samples_of_epoch(const PipelineProbe& probe) {
  if (probe.samples > 0) return probe.samples;
  for (const StreamSet& set : probe.streams) {
    std::int64_t all = 0;
    for (const StreamCost& stream : set.workers) {
      if (stream.samples < 0) return 0;
      all += stream.samples;
    }
    return set.same ? all / static_cast<std::int64_t>(set.workers.size()) : all;
  }
  return 0;
}

std::vector<double> times_of(const std::vector<Nanos>& cpu, const std::vector<Nanos>& wait) {
  std::vector<double> times;
  for (std::size_t i = 0; i < cpu.size(); ++i)
    times.push_back(seconds(cpu[i]) + (i < wait.size() ? seconds(wait[i]) : 0));
  return times;
}

/// Half of a 90 % band of the mean of values of which `left` (a share) were not seen, relative.
/// Student's t instead of the normal distribution's 1.645, about.
double error_of_mean(const std::vector<double>& values, double left) {
  const auto n = static_cast<double>(values.size());
  if (n < 2) return 1;
  const double mean = mean_of(values);
  if (!(mean > 0)) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  constexpr double kNormal = 1.645, kStudent = 1.2;
  return kNormal * (1 + kStudent / (n - 1)) * std::sqrt(squares / (n - 1)) / mean *
         std::sqrt(left / n);
}

/// How far samples at random places lie from the stretches that were measured in order: as a factor
/// less 1, whichever is larger.
double elsewhere(const PipelineProbe& probe) {
  if (probe.whole_epoch || probe.random.count() <= 0) return 0;
  double sum = 0, count = 0;
  for (const PipelineProbe::Stretch& stretch : probe.order) {
    for (const double time : times_of(stretch.cpu, stretch.wait)) sum += time, ++count;
  }
  if (count == 0 || sum <= 0) return 0;
  const double ratio = count * seconds(probe.random) / sum;
  const double error = 2 * (probe.random_error / probe.random);
  return std::max(0.0, std::max(ratio, 1 / ratio) * (1 + error) - 1);
}

/// What other samples than the measured ones would have shown. Neighbours may be alike, so in a
/// fixed order stretches count, not samples.
double sampling_error(const PipelineProbe& probe) {
  if (probe.whole_epoch) return 0;
  const auto measured = static_cast<double>(probe.cpu.size());
  const auto all = static_cast<double>(probe.samples);
  const double left = all > 0 ? std::max(0.0, 1 - measured / all) : 1;
  const double samples = left > 0 ? error_of_mean(times_of(probe.cpu, probe.wait), left) : 0;
  std::vector<double> means;
  for (const PipelineProbe::Stretch& stretch : probe.order)
    means.push_back(mean_of(times_of(stretch.cpu, stretch.wait)));
  if (means.size() == 1) return std::max({samples, kElsewhere * left, elsewhere(probe)});
  if (means.empty()) return samples;
  return std::max({samples, error_of_mean(means, left), elsewhere(probe)});
}

/// From +x, a band whose ends are 1 + x and 1 / (1 + x).
Band factor_band(double above) { return {above / (1 + above), above}; }

/// Objects go through a pipe whose cost the probe found no time for: what it took where it was
/// measured (two workers, batches of 8 MB on two cores: 3.3 to 4.4 ns a byte, unpickling included),
/// with a band as wide as machines differ.
bool guess_pipe(const PipelineProbe& probe, SampleCost& cost) {
  constexpr double kMainNs = 2.5, kWorkerNs = 1.5;
  const bool known =
      std::any_of(probe.transport.begin(), probe.transport.end(),
                  [](const auto& row) { return row.first == "pickle_main_ns_per_byte"; });
  const bool objects = std::any_of(
      probe.batch.begin(), probe.batch.end(),
      [](const BatchFacts& facts) { return facts.pickled > kPipe && facts.pipe.count() <= 0; });
  if (known || !objects) return false;
  cost.transport.pickle_main_ns = std::max(kMainNs, cost.transport.pickle_main_ns);
  cost.transport.pickle_worker_ns = std::max(kWorkerNs, cost.transport.pickle_worker_ns);
  return true;
}

bool fills_pipe(const PipelineProbe& probe) {
  return std::any_of(probe.batch.begin(), probe.batch.end(),
                     [](const BatchFacts& facts) { return facts.pickled > kPipe; });
}

/// A factor of two, for what was not measured: whether memory is faulted in anew for each batch of
/// objects, only a real loader shows; what workers leave each other of the cores, none of one.
void widen(SampleCost& cost, const char* why) {
  constexpr double kUnseen = 1.0;
  cost.band.above = std::max(cost.band.above, kUnseen);
  cost.band.below = std::max(cost.band.below, kUnseen / (1 + kUnseen));
  cost.basis += why;
}

/// A batch that takes less than some wake-ups of threads goes as fast as those: which core the
/// other end of a pipe runs on decides. Set by loaders of texts and of small records on two cores
/// (docs/models/input.md): 0.25 to 1.05 ms from batch to batch in different runs of one loader.
double wake_ups(const PipelineProbe::OneWorker& one) {
  constexpr Nanos kWakeUps{0.5e6};
  return one.interval.count() > 0 ? std::min(1.0, kWakeUps / one.interval) : 0;
}

/// What measuring again would show, what other samples would, and what the machine does to CPU
/// times.
void fill_bands(const PipelineProbe& probe, double unmatched, SampleCost& cost) {
  const double known = kProbeError + (probe.contention.disturbed ? kDisturbedProbe : 0);
  const double sampling = sampling_error(probe);
  const double repeats =
      std::max({probe.repeat_spread.value_or(0), probe.one_worker.interval_spread,
                probe.seed_spread, wake_ups(probe.one_worker)});
  const double cpu = std::max({std::hypot(known, sampling), repeats, unmatched});
  cost.band = factor_band(std::max(cpu, known));
  cost.band.below = std::max(cost.band.below, known);
  cost.wait_band = factor_band(std::max(std::hypot(kLeastWaitError, sampling), repeats));
}

/// What the real loader of one worker left open.
void say_why_wide(const PipelineProbe& probe, double unmatched, SampleCost& cost) {
  constexpr double kWorthSaying = 0.1;
  if (wake_ups(probe.one_worker) > kProbeError)
    cost.basis += "; batches are so short that waking threads decides";
  if (cost.main_unsure > kWorthSaying * probe.one_worker.interval)
    cost.basis += "; whether workers or their receiver lose the time was not seen";
  if (unmatched > kWorthSaying) cost.basis += "; its own loader's rate is not what its parts say";
}

/// Starts by another way than fork. Judgement, after the table of docs/models/input.md: a measured
/// start repeats within a quarter; pieces that were measured one by one add up less well; parts of
/// the data set that speak for the whole, or pieces that nobody measured, within a factor of two.
Band start_band(const PipelineProbe& probe) {
  const PipelineProbe::Start& start = probe.start;
  const bool spawn = probe.loader && probe.loader->start_method == StartMethod::kSpawn;
  if ((spawn ? start.spawn : start.forkserver).count() > 0) return factor_band(0.33);
  return factor_band(start.pickled_whole && start.interpreter.count() > 0 ? 0.5 : 1.0);
}

/// Whether the server of forkserver runs the main script, which imports PyTorch: CPython since
/// 3.13.8 and 3.14.1 (python/cpython pull request 135295, of issue 126631).
bool server_runs_main(const std::string& python) {
  int major = 0, minor = 0, patch = 0;
  if (std::sscanf(python.c_str(), "%d.%d.%d", &major, &minor, &patch) < 2 || major != 3)
    return false;
  return minor > 14 || (minor == 14 && patch >= 1) || (minor == 13 && patch >= 8);
}

void take_start(const PipelineProbe& probe, SampleCost::Start& start) {
  start = {probe.start.fork,        probe.start.spawn,  probe.start.forkserver,
           probe.start.pickled,     probe.start.pickle, probe.start.unpickle,
           probe.start.interpreter, start_band(probe),  probe.start.server};
  start.wait = probe.start.wait;
  start.sampler = probe.start.sampler;
  const bool served = probe.loader && probe.loader->start_method == StartMethod::kForkserver;
  if (served && start.server.count() > 0) {
    start.served = start.interpreter;  // measured behind its server
  } else if (start.forkserver.count() <= 0 && server_runs_main(probe.python)) {
    start.server = start.interpreter.count() > 0 ? start.interpreter : kUnknownSpawn;
    start.served = kServedStart;
  }
}

}  // namespace

SampleCost sample_cost_from_pipeline(const PipelineProbe& probe, const LoaderProfile& profile) {
  SampleCost cost;
  cost.known = true;
  if (probe.order.empty()) {
    take_shuffled(probe, cost);
  } else {
    take_order(probe, cost);
  }
  cost.streams = probe.streams;
  cost.work_units = probe.work_units;
  cost.in_process_ratio = probe.in_process_ratio;
  cost.within_batch = probe.within_batch_correlation;
  cost.batches = probe.batch;
  cost.iterable = probe.iterable;
  cost.dataset_samples = samples_of_epoch(probe);
  cost.read_bytes = mean_of(probe.file_bytes);
  cost.dataset_bytes =
      Bytes(std::llround(cost.read_bytes * static_cast<double>(cost.dataset_samples)));
  if (!probe.batch.empty()) {
    const BatchFacts& first = probe.batch.front();
    cost.output = Bytes(static_cast<std::int64_t>(static_cast<double>(first.bytes.count()) /
                                                  std::max(1.0, first.samples)));
    cost.tensors = static_cast<int>(first.tensors + 0.5);
  } else {
    cost.tensors = 1;
  }
  if (probe.parallel.threads > 1) {
    cost.slowdown_per_core = (1 / probe.parallel.efficiency - 1) / (probe.parallel.threads - 1);
  }
  cost.transport = profile.transport;
  for (const auto& [key, value] : probe.transport) (void)set_transport(cost.transport, key, value);
  // The probe measured its samples as a worker makes them, memory faulted in again included.
  cost.transport.sample_fault_ns = 0;
  if (probe.memory.worker_private.count() > 0)
    cost.transport.worker_private = probe.memory.worker_private;
  take_start(probe, cost.start);
  cost.warm_up = probe.start.warm_up;
  cost.warm_up_wait = probe.start.warm_up_wait;
  if (probe.gil_wait) cost.lock_wait = *probe.gil_wait;
  // The whole start of a worker holds the call that forks it; the slope between loaders of several
  // workers, which the probe takes for that call, may have met a busy moment.
  if (probe.start.fork.count() > 0)
    cost.transport.fork_per_worker = std::min(cost.transport.fork_per_worker, probe.start.fork);
  if (probe.memory.copied_on_read) cost.copied_on_read = probe.memory.object_bytes;
  if (cost.start.fork.count() > 0) cost.start.fork += kFirstBatchSetUp;
  if (probe.crowded_efficiency) cost.transport.oversubscription = 1 / *probe.crowded_efficiency - 1;
  const bool guessed = guess_pipe(probe, cost);
  const double unmatched = match_one_worker(probe, cost);
  fill_bands(probe, unmatched, cost);
  cost.basis = "probe of " + probe.name + " (" + std::to_string(probe.cpu.size()) + " samples)";
  if (const std::string lacks = missing_from(probe); !lacks.empty())
    cost.basis += "; not in it: " + lacks;
  if (probe.transport.empty()) cost.basis += "; transport: " + profile.basis;
  if (probe.one_worker.dump.count() <= 0 && (guessed || fills_pipe(probe))) {
    widen(cost, "; what objects take through the pipe was not seen in a real loader");
  }
  say_why_wide(probe, unmatched, cost);
  if (runs_threads(probe)) {
    widen(cost, "; samples run threads of their own, for which workers compete");
  }
  return cost;
}

}  // namespace stoker
