#include <algorithm>
#include <numeric>

#include "input/pipeline_probe.h"

namespace stoker {
namespace {

/// Half-width of the band: nine of ten real epochs were forecast within it from a probe of pictures
/// (docs/input-model.md); a disturbed probe measured caches that others were using too.
constexpr double kError = 0.125, kDisturbedError = 0.05;

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

/// Sets the cost beside a real DataLoader of one worker. Its own measurement of making a batch is a
/// second one, at another moment of a machine whose speed moves: the mean of both counts. What the
/// loader took beyond making batches, and the simulation does not, is what a busy worker loses to
/// its other threads; both sides of that were measured in the same run.
void match_one_worker(const PipelineProbe& probe, SampleCost& cost) {
  const PipelineProbe::OneWorker& one = probe.one_worker;
  if (one.batch <= 0 || one.interval.count() <= 0 || one.make_cpu.count() <= 0) return;
  if (cost.batches.empty()) return;
  const auto samples = static_cast<double>(one.batch);
  const auto make = [&] {
    return samples * cost.mean_cpu() + batch_facts_at(cost.batches, samples).collate_shared;
  };
  constexpr double kSameWork = 2;  // beyond this factor the two did not make the same batches
  const double ratio = one.make_cpu / make();
  if (ratio > 1 / kSameWork && ratio < kSameWork) {
    const double both = (1 + ratio) / 2;
    for (Nanos& time : cost.cpu) time = time * both;
    for (BatchFacts& facts : cost.batches) {
      facts.collate_shared = facts.collate_shared * both;
      facts.collate_private = facts.collate_private * both;
    }
  }
  const LoaderForecast simulated =
      simulate_loader({.batch = one.batch, .workers = 1, .prefetch = 2, .pin = false}, cost,
                      {.cores = std::max(2.0, probe.cores)},
                      Consumer{.consumption = Consumption::kBlocking});
  cost.worker_extra = (one.interval - one.make_cpu) - (simulated.interval - make());
}

}  // namespace

SampleCost sample_cost_from_pipeline(const PipelineProbe& probe, const LoaderProfile& profile) {
  SampleCost cost;
  cost.known = true;
  cost.cpu = probe.cpu;
  if (std::any_of(probe.wait.begin(), probe.wait.end(), [](Nanos t) { return t.count() > 0; }))
    cost.wait = probe.wait;
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
  if (probe.memory.copied_on_read) cost.copied_on_read = probe.memory.object_bytes;
  if (probe.crowded_efficiency)
    cost.transport.oversubscription = 1 / *probe.crowded_efficiency - 1;
  match_one_worker(probe, cost);
  const double error = kError + (probe.foreign.disturbed ? kDisturbedError : 0);
  cost.band = {error, error};
  cost.basis = "probe of " + probe.name + " (" + std::to_string(probe.cpu.size()) + " samples)";
  if (const std::string lacks = missing_from(probe); !lacks.empty())
    cost.basis += "; not in it: " + lacks;
  if (probe.transport.empty()) cost.basis += "; transport: " + profile.basis;
  return cost;
}

}  // namespace stoker
