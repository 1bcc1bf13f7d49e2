#include "input/probe/sample_cost.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// CPU time of reading and splitting a line in Python / in C++: 0.81 us for lines of 62 bytes with
/// `for line in file: line.split()` (Python 3.11, best of nine) beside the probe of the same file.
constexpr double kPythonTextRatio = 4.0;
/// A text loader does more than split lines; what, only a probe of the user's own pipeline knows.
constexpr double kTextError = 0.5;

/// A float image and its 64-bit label.
Bytes picture_bytes(int side) { return Bytes(std::int64_t{3} * side * side * 4 + 8); }

Bytes scaled(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.count()) * factor));
}

Nanos mean_of(const std::vector<Nanos>& times) {
  Nanos sum;
  for (const Nanos time : times) sum += time;
  return times.empty() ? sum : sum / static_cast<double>(times.size());
}

}  // namespace

BatchFacts batch_facts_at(const std::vector<BatchFacts>& facts, double batch) {
  BatchFacts out = facts.front();
  out.batch = static_cast<std::int64_t>(batch);
  const double factor = batch / static_cast<double>(facts[0].batch);
  out.samples *= factor;
  out.bytes = scaled(out.bytes, factor);
  out.pickled = scaled(out.pickled, factor);
  out.collate_shared = out.collate_shared * factor;
  out.collate_private = out.collate_private * factor;
  out.pickle = out.pickle * factor;
  out.unpickle = out.unpickle * factor;
  out.pipe = out.pipe * factor;
  out.collate_wait = out.collate_wait * factor;
  out.share = out.share * factor;
  if (facts.size() == 1 || factor <= 1) return out;
  std::size_t next = 1;
  while (next + 1 < facts.size() && static_cast<double>(facts[next].batch) < batch) ++next;
  const BatchFacts &a = facts[next - 1], &b = facts[next];
  const double along =
      (batch - static_cast<double>(a.batch)) / static_cast<double>(b.batch - a.batch);
  const auto line = [&](double x, double y) { return std::max(0.0, x + along * (y - x)); };
  const auto bytes = [&](Bytes x, Bytes y) {
    return Bytes(
        std::llround(line(static_cast<double>(x.count()), static_cast<double>(y.count()))));
  };
  out.samples = line(a.samples, b.samples);
  out.bytes = bytes(a.bytes, b.bytes);
  out.tensors = line(a.tensors, b.tensors);
  out.pickled = bytes(a.pickled, b.pickled);
  out.collate_shared = Nanos(line(a.collate_shared.count(), b.collate_shared.count()));
  out.collate_private = Nanos(line(a.collate_private.count(), b.collate_private.count()));
  out.pickle = Nanos(line(a.pickle.count(), b.pickle.count()));
  out.unpickle = Nanos(line(a.unpickle.count(), b.unpickle.count()));
  out.pipe = Nanos(line(a.pipe.count(), b.pipe.count()));
  out.collate_wait = Nanos(line(a.collate_wait.count(), b.collate_wait.count()));
  out.share = Nanos(line(a.share.count(), b.share.count()));
  return out;
}

bool collates_longer(const SampleCost& cost, std::int64_t batch) {
  constexpr double kByFar = 3;
  if (cost.batches.empty()) return false;
  const auto samples = static_cast<double>(batch);
  const BatchFacts facts = batch_facts_at(cost.batches, samples);
  return facts.collate_shared + facts.collate_wait >
         kByFar * samples * (cost.mean_cpu() + cost.mean_wait());
}

Nanos SampleCost::mean_cpu() const { return mean_of(cpu); }
Nanos SampleCost::mean_wait() const { return mean_of(wait); }

double SampleCost::batch_bytes(std::int64_t batch) const {
  if (batches.empty()) return static_cast<double>(batch * output.count());
  return static_cast<double>(batch_facts_at(batches, static_cast<double>(batch)).bytes.count());
}

SampleCost sample_cost_from_probe(const Probe& probe, const LoaderProfile& profile,
                                  OutputShape output) {
  SampleCost cost;
  cost.known = true;
  const double slowness = core_slowness(profile, probe);
  const bool text = probe.kind == DataKind::kText;
  for (const SampleRecord& sample : probe.samples) {
    cost.cpu.push_back(text ? kPythonTextRatio * sample.total()
                            : loader_cost(profile, sample, slowness));
  }
  cost.output = output.bytes_per_sample.count() > 0 ? output.bytes_per_sample
                                                    : picture_bytes(probe.image_size);
  cost.tensors = output.tensors;
  // Records are read once and stay in memory.
  cost.read_bytes = probe.kind == DataKind::kRecords
                        ? 0
                        : static_cast<double>(probe.dataset.total_bytes.count()) /
                              static_cast<double>(std::max<std::int64_t>(1, probe.dataset.samples));
  if (probe.kind == DataKind::kPictures) cost.read_bytes = probe.dataset.mean_bytes;
  cost.sequential = probe.kind == DataKind::kTarShards || text;
  // A shard is read from front to back by one worker, as WebDataset splits them.
  if (probe.kind == DataKind::kTarShards)
    cost.work_units = std::max(probe.dataset.files, probe.dataset.files_estimate);
  cost.dataset_samples = probe.dataset.samples > 0 ? probe.dataset.samples : probe.dataset.files;
  cost.dataset_bytes = probe.dataset.total_bytes;
  if (probe.parallel.threads > 1) {
    cost.slowdown_per_core = (1 / probe.parallel.efficiency - 1) / (probe.parallel.threads - 1);
  }
  if (probe.read.cold_measured) {
    cost.cold_seek_ms = probe.read.cold_seek_ms;
    cost.cold_bandwidth = probe.read.cold_bandwidth;
    cost.cold_speedup = probe.read.cold_speedup;
  }
  cost.transport = scaled(profile.transport, slowness);
  // Twice the profile's error on images that it has not seen, for a 90 % band; a disturbed probe
  // measured caches that others were using too.
  const double error = std::max(kProbeError, 2 * profile.held_out_mape / 100) +
                       (probe.contention.disturbed ? kDisturbedProbe : 0) + (text ? kTextError : 0);
  cost.band = {error, error};
  cost.basis = "probe of " + probe.dataset.name + " (" + std::to_string(probe.samples.size()) +
               " " + std::string(sample_word(probe.kind)) + "s), " +
               (text ? "reading and splitting lines only" : "loader costs: " + profile.basis);
  return cost;
}

SampleCost sample_cost_given(Nanos cpu, OutputShape output, const LoaderProfile& profile) {
  SampleCost cost;
  cost.known = true;
  cost.cpu = {cpu};
  cost.output = output.bytes_per_sample;
  cost.tensors = output.tensors;
  cost.transport = profile.transport;
  cost.band = {kProbeError, kProbeError};  // the simulation's own
  cost.basis = "CPU time a sample as given";
  return cost;
}

SampleCost with_cpu_times(SampleCost cost, double factor) {
  for (Nanos& time : cost.cpu) time = time * factor;
  for (StreamSet& set : cost.streams) {
    for (StreamCost& stream : set.workers) {
      for (Nanos& time : stream.cpu) time = time * factor;
    }
  }
  return cost;
}

/// What reads that miss the page cache may take beside what is said of them: figures of a kind of
/// storage, of a data sheet or of a probe that had it to itself. Judgement, not measured: a disk or
/// a share that others use too serves a job at 2/3 to 3/2 of such a figure.
constexpr Band kStorageBand{1.0 / 3, 0.5};

namespace {

/// What is the same work for every sample: a machine that is slower at samples is slower at putting
/// them together, sending and receiving them.
void scale_batches(SampleCost& cost, double factor) {
  for (BatchFacts& facts : cost.batches) {
    for (Nanos* time : {&facts.collate_shared, &facts.collate_private, &facts.share, &facts.pickle,
                        &facts.unpickle, &facts.pipe}) {
      *time = *time * factor;
    }
  }
  TransportCoefficients& t = cost.transport;
  for (Nanos* time :
       {&t.per_batch_main, &t.per_tensor_main, &t.per_batch_worker, &t.per_tensor_worker,
        &t.collate_per_sample, &cost.worker_extra, &cost.main_extra}) {
    *time = *time * factor;
  }
  for (double* rate : {&t.per_byte_main_ns, &t.collate_shared_ns, &t.collate_private_ns,
                       &t.sample_fault_ns, &t.pickle_worker_ns, &t.pickle_main_ns}) {
    *rate *= factor;
  }
}

}  // namespace

SampleCost at_band_end(SampleCost cost, double factor) {
  cost = with_cpu_times(std::move(cost), factor);
  if (factor > 1) cost.main_extra += cost.main_unsure;
  if (factor < 1) cost.main_extra -= cost.main_unsure;
  scale_batches(cost, factor);
  const double waiting = factor > 1   ? 1 + cost.wait_band.above
                         : factor < 1 ? 1 - cost.wait_band.below
                                      : 1;
  for (Nanos& time : cost.wait) time = time * waiting;
  for (BatchFacts& facts : cost.batches) facts.collate_wait = facts.collate_wait * waiting;
  const double storage = factor > 1   ? 1 + kStorageBand.above
                         : factor < 1 ? 1 - kStorageBand.below
                                      : 1;
  cost.storage_pace *= storage;
  for (StreamSet& set : cost.streams) {
    for (StreamCost& stream : set.workers) {
      for (Nanos& time : stream.wait) time = time * waiting;
    }
  }
  return cost;
}

SampleCost sample_cost_unknown(OutputShape output) {
  SampleCost cost;
  cost.output = output.bytes_per_sample;
  cost.tensors = output.tensors;
  cost.basis = "no data given: input assumed never to limit";
  return cost;
}

}  // namespace stoker
