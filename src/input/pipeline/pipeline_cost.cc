#include <algorithm>
#include <cmath>
#include <numeric>

#include "input/loader/batch_draws.h"
#include "input/loader/loader_constants.h"
#include "input/pipeline/pipeline_probe.h"

namespace stoker {
namespace {

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

Nanos deviation_of(const std::vector<Nanos>& times, Nanos mean) {
  double sum = 0;
  for (const Nanos time : times) sum += (time - mean).count() * (time - mean).count();
  return times.empty() ? Nanos{} : Nanos(std::sqrt(sum / static_cast<double>(times.size())));
}

/// CPU time of making a batch of `samples`, collating included, as the parts say.
Nanos make_of(const SampleCost& cost, double samples) {
  return samples * cost.mean_cpu() + batch_facts_at(cost.batches, samples).collate_shared;
}

/// The loader's own measurement of making a batch is a second one, at another moment of a machine
/// whose speed moves: the mean of both counts. What the training process spends was not measured
/// again.
void average_making(const PipelineProbe::OneWorker& one, SampleCost& cost) {
  constexpr double kSameWork = 2;  // beyond this factor the two did not make the same batches
  const double ratio = one.make_cpu / make_of(cost, static_cast<double>(one.batch));
  if (ratio < 1 / kSameWork || ratio > kSameWork) return;
  const double both = (1 + ratio) / 2;
  for (Nanos& time : cost.cpu) time = time * both;
  for (BatchFacts& facts : cost.batches) facts.collate_shared = facts.collate_shared * both;
  cost.in_process_ratio /= both;
}

/// What the real loader took from batch to batch beyond making it, and the simulation does not
/// take, is what a busy worker loses to its other threads. Standstills within making belong to it,
/// unless they can be samples that wait: those differ from run to run by their standard error.
Nanos lost_by_worker(const PipelineProbe::OneWorker& one, const SampleCost& cost,
                     const LoaderForecast& simulated) {
  const auto samples = static_cast<double>(one.batch);
  const Nanos wait = samples * cost.mean_wait();
  const double count = std::max(1.0, samples * static_cast<double>(one.batches));
  const Nanos error = deviation_of(cost.wait, cost.mean_wait()) * (samples / std::sqrt(count));
  const Nanos stood =
      one.make_wall.count() > 0 ? std::max(one.make_wall, one.make_cpu) - one.make_cpu : wait;
  const Nanos stalls = std::max(Nanos{}, stood - wait - 2 * error);
  const Nanos beyond = one.interval - one.make_cpu - stood;
  return beyond + stalls - (simulated.interval - make_of(cost, samples) - wait);
}

/// The start of a worker with what a loader sets up besides: queues, threads, sockets.
void match_start(const PipelineProbe::OneWorker& one, Nanos fork_alone,
                 const LoaderForecast& simulated, SampleCost& cost) {
  if (one.first_batch.count() <= 0 || one.first_make_cpu.count() <= 0) return;
  const auto samples = static_cast<double>(one.batch);
  // Waiting samples make a first batch's wall time a matter of luck.
  if (samples * cost.mean_wait() > 0.1 * one.first_make_cpu) return;
  const Nanos receive = simulated.first_batch - make_of(cost, samples) - cost.warm_up - fork_alone;
  const Nanos start = one.first_batch - one.first_make_cpu - std::max(Nanos{}, receive);
  cost.start.fork = std::max(cost.start.fork, start);
}

/// Sets the cost beside a real DataLoader of one worker.
void match_one_worker(const PipelineProbe& probe, SampleCost& cost) {
  const PipelineProbe::OneWorker& one = probe.one_worker;
  if (one.batch <= 0 || one.interval.count() <= 0 || one.make_cpu.count() <= 0) return;
  if (cost.batches.empty()) return;
  average_making(one, cost);
  const auto simulate = [&] {
    return simulate_loader({.batch = one.batch, .workers = 1, .prefetch = 2, .pin = false}, cost,
                           {.cores = std::max(2.0, probe.cores)},
                           Consumer{.consumption = Consumption::kBlocking});
  };
  cost.worker_extra = lost_by_worker(one, cost, simulate());
  const Nanos fork_alone = cost.start.fork.count() > 0
                               ? cost.start.fork
                               : cost.transport.fork_per_worker + cost.transport.worker_startup;
  match_start(one, fork_alone, simulate(), cost);
}

}  // namespace

SampleCost sample_cost_from_pipeline(const PipelineProbe& probe, const LoaderProfile& profile) {
  SampleCost cost;
  cost.known = true;
  std::vector<SampleWork> samples;
  for (std::size_t i = 0; i < probe.cpu.size(); ++i)
    samples.push_back({seconds(probe.cpu[i]), i < probe.wait.size() ? seconds(probe.wait[i]) : 0});
  bool waits = false;
  for (const SampleWork& sample : representative(std::move(samples))) {
    cost.cpu.push_back(sample.cpu * kSecond);
    cost.wait.push_back(sample.wait * kSecond);
    waits = waits || sample.wait > 0;
  }
  if (!waits) cost.wait.clear();
  cost.in_process_ratio = probe.in_process_ratio;
  cost.within_batch = probe.within_batch_correlation;
  cost.batches = probe.batch;
  cost.iterable = probe.iterable;
  cost.dataset_samples = probe.samples;
  cost.read_bytes = mean_of(probe.file_bytes);
  cost.dataset_bytes =
      Bytes(static_cast<std::int64_t>(cost.read_bytes * static_cast<double>(probe.samples)));
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
  cost.start = {probe.start.fork, probe.start.spawn, probe.start.forkserver, probe.start.pickled};
  cost.warm_up = probe.start.warm_up;
  if (probe.gil_wait) cost.lock_wait = *probe.gil_wait;
  // The whole start of a worker holds the call that forks it; the slope between loaders of several
  // workers, which the probe takes for that call, may have met a busy moment.
  if (probe.start.fork.count() > 0)
    cost.transport.fork_per_worker = std::min(cost.transport.fork_per_worker, probe.start.fork);
  if (probe.memory.copied_on_read) cost.copied_on_read = probe.memory.object_bytes;
  if (cost.start.fork.count() > 0) cost.start.fork += kFirstBatchSetUp;
  if (probe.crowded_efficiency) cost.transport.oversubscription = 1 / *probe.crowded_efficiency - 1;
  match_one_worker(probe, cost);
  const double error = kProbeError + (probe.contention.disturbed ? kDisturbedProbe : 0);
  cost.band = {error, error};
  cost.basis = "probe of " + probe.name + " (" + std::to_string(probe.cpu.size()) + " samples)";
  if (const std::string lacks = missing_from(probe); !lacks.empty())
    cost.basis += "; not in it: " + lacks;
  if (probe.transport.empty()) cost.basis += "; transport: " + profile.basis;
  return cost;
}

}  // namespace stoker
