#include "input/pipeline/one_worker.h"

#include <algorithm>
#include <cmath>

#include "input/loader/loader_constants.h"
#include "input/loader/loader_simulation.h"

namespace stoker {
namespace {

Nanos deviation_of(const std::vector<Nanos>& times, Nanos mean) {
  double sum = 0;
  for (const Nanos time : times) sum += (time - mean).count() * (time - mean).count();
  return times.empty() ? Nanos{} : Nanos(std::sqrt(sum / static_cast<double>(times.size())));
}

/// CPU time of making a batch of `samples`, collating included, as the parts say: of the thread
/// that makes batches, not of the one that sends them.
Nanos make_of(const SampleCost& cost, double samples) {
  const BatchFacts facts = batch_facts_at(cost.batches, samples);
  return samples * cost.mean_cpu() + std::max(Nanos{}, facts.collate_shared - facts.share);
}

Nanos wait_of(const SampleCost& cost, double samples) {
  return samples * cost.mean_wait() + batch_facts_at(cost.batches, samples).collate_wait;
}

/// The loader's own measurement of making a batch is a second one, at another moment of a machine
/// whose speed moves: the mean of both counts. What the training process spends was not measured
/// again. False: the two did not do the same work, so that the parts cannot be compared.
bool average_making(const PipelineProbe::OneWorker& one, SampleCost& cost) {
  constexpr double kSameWork = 2;
  const double ratio = one.make_cpu / make_of(cost, static_cast<double>(one.batch));
  if (ratio < 1 / kSameWork || ratio > kSameWork) return false;
  const double both = (1 + ratio) / 2;
  for (Nanos& time : cost.cpu) time = time * both;
  for (BatchFacts& facts : cost.batches) {
    facts.collate_shared = facts.collate_shared * both;
    facts.share = facts.share * both;
  }
  cost.in_process_ratio /= both;
  return true;
}

/// Samples that run threads of their own take the time that the real loader saw, not their CPU
/// time.
void take_time_of_threads(const PipelineProbe::OneWorker& one, SampleCost& cost) {
  const double ratio = one.make_wall / make_of(cost, static_cast<double>(one.batch));
  for (Nanos& time : cost.cpu) time = time * ratio;
}

/// What the forecast of the measured loader should come to: what it took from batch to batch, with
/// making at the speed of both measurements. Standstills within making belong to it, unless they
/// can be samples that wait: those differ from run to run by their standard error.
Nanos expected_interval(const PipelineProbe::OneWorker& one, const SampleCost& cost) {
  const auto samples = static_cast<double>(one.batch);
  const Nanos wait = wait_of(cost, samples);
  const double count = std::max(1.0, samples * static_cast<double>(one.batches));
  const Nanos error = deviation_of(cost.wait, cost.mean_wait()) * (samples / std::sqrt(count));
  const Nanos stood =
      one.make_wall.count() > 0 ? std::max(one.make_wall, one.make_cpu) - one.make_cpu : wait;
  const Nanos stalls = std::max(Nanos{}, stood - wait - 2 * error);
  const Nanos expected =
      one.interval + (make_of(cost, samples) - one.make_cpu) + (wait + stalls - stood);
  return expected.count() > 0 ? expected : one.interval;
}

/// The start of a worker with what a loader sets up besides: queues, threads, sockets.
void match_start(const PipelineProbe::OneWorker& one, Nanos fork_alone,
                 const LoaderForecast& simulated, SampleCost& cost) {
  if (one.first_batch.count() <= 0 || one.first_make_cpu.count() <= 0) return;
  const auto samples = static_cast<double>(one.batch);
  // Waiting samples make a first batch's wall time a matter of luck.
  const Nanos waits = wait_of(cost, samples) + cost.warm_up_wait;
  if (waits > 0.1 * one.first_make_cpu) return;
  const Nanos receive = simulated.first_batch - make_of(cost, samples) - cost.warm_up - fork_alone -
                        cost.start.sampler;
  const Nanos start = one.first_batch - one.first_make_cpu - std::max(Nanos{}, receive);
  cost.start.fork = std::max(cost.start.fork, start);
}

/// What pickling, the pipe and unpickling took in a real loader, at its batch; other sizes keep
/// their relation to it. Whether memory is faulted in anew for each batch, which decides the time,
/// shows nowhere else.
void match_objects(const PipelineProbe::OneWorker& one, SampleCost& cost) {
  if (one.dump.count() <= 0 || one.receive.count() <= 0 || cost.batches.empty()) return;
  const BatchFacts own = batch_facts_at(cost.batches, static_cast<double>(one.batch));
  const auto factor = [](Nanos real, Nanos alone) {
    return alone.count() > 0 ? real / alone : 0.0;
  };
  // Pickling moves tensors that a collate function left in private memory.
  const double pickle = factor(std::max(Nanos{}, one.dump - own.share), own.pickle);
  const double pipe = factor(one.receive, own.pipe);
  // With tensors beside them, receiving objects is more than unpickling them.
  const double unpickle = own.tensors < 1 ? factor(one.load, own.unpickle) : 0;
  for (BatchFacts& facts : cost.batches) {
    if (pickle > 0) facts.pickle = facts.pickle * pickle;
    if (unpickle > 0) facts.unpickle = facts.unpickle * unpickle;
    const double share = static_cast<double>(facts.pickled.count()) /
                         std::max(1.0, static_cast<double>(own.pickled.count()));
    facts.pipe = pipe > 0 ? facts.pipe * pipe : one.receive * share;
  }
}

/// Whether a worker's feeder thread, which pickles and writes, has more to do than the thread that
/// makes batches.
bool feeds_longer(const PipelineProbe::OneWorker& one, const SampleCost& cost) {
  const auto samples = static_cast<double>(one.batch);
  const BatchFacts facts = batch_facts_at(cost.batches, samples);
  return facts.pickled > kPipe &&
         facts.pickle + facts.pipe > make_of(cost, samples) + facts.share + wait_of(cost, samples);
}

/// What the feeder thread takes at the loader's own batch becomes longer by `lost`, at others in
/// proportion.
void lengthen_feeding(const PipelineProbe::OneWorker& one, Nanos lost, SampleCost& cost) {
  const BatchFacts own = batch_facts_at(cost.batches, static_cast<double>(one.batch));
  const Nanos feeding = own.pickle + own.pipe;
  if (feeding.count() <= 0) return;
  const double factor = std::max(0.0, 1 + lost / feeding);
  for (BatchFacts& facts : cost.batches) {
    facts.pickle = facts.pickle * factor;
    facts.pipe = facts.pipe * factor;
  }
}

/// Receiver and worker wait for each other while a batch is handed over, so one worker does not
/// tell which of them more workers would find busy. Real loaders (docs/models/input.md) lay
/// between: a second worker gained nothing to everything. Half belongs to the receiver, and the
/// band holds both ends.
void share_loss(Nanos expected, const LoaderForecast& simulated, SampleCost& cost) {
  const Nanos half = 0.5 * (expected - simulated.interval);
  cost.main_extra = cost.main_extra + half;
  cost.main_unsure = cost.main_unsure + half;
  const Nanos chain = simulated.worker_utilization * simulated.interval;
  cost.worker_extra = cost.worker_extra + std::max(Nanos{}, expected - chain);
}

}  // namespace

bool runs_threads(const PipelineProbe& probe) {
  constexpr double kMoreThanOne = 1.25;
  const PipelineProbe::OneWorker& one = probe.one_worker;
  if (one.batch <= 0 || one.interval.count() <= 0 || one.make_wall.count() <= 0) return false;
  if (probe.batch.empty()) return false;
  const auto samples = static_cast<double>(one.batch);
  double cpu = 0;
  for (const Nanos time : probe.cpu) cpu += time.count();
  const Nanos mean(probe.cpu.empty() ? 0 : cpu / static_cast<double>(probe.cpu.size()));
  return one.worker_cpu > kMoreThanOne * one.interval &&
         samples * mean > kMoreThanOne * one.make_wall;
}

double match_one_worker(const PipelineProbe& probe, SampleCost& cost) {
  const PipelineProbe::OneWorker& one = probe.one_worker;
  if (one.batch <= 0 || one.interval.count() <= 0 || one.make_cpu.count() <= 0) return 0;
  if (cost.batches.empty()) return 0;
  if (runs_threads(probe)) take_time_of_threads(one, cost);
  const bool same_work = average_making(one, cost);
  match_objects(one, cost);
  const auto simulate = [&] {
    return simulate_loader({.batch = one.batch, .workers = 1, .prefetch = 2, .pin = false}, cost,
                           {.cores = std::max(2.0, probe.cores)},
                           Consumer{.consumption = Consumption::kBlocking});
  };
  const Nanos expected = same_work ? expected_interval(one, cost) : one.interval;
  // What is lost lies where the time goes: in the one receiver, or in one thread of each worker.
  // Where it is more than the limit's own, another thread becomes the limit.
  constexpr int kPasses = 3;
  constexpr double kNear = 0.01;
  for (int pass = 0; pass < kPasses; ++pass) {
    const LoaderForecast simulated = simulate();
    const Nanos beyond = expected - simulated.interval;
    if (pass > 0 && std::abs(beyond / expected) < kNear) break;
    if (simulated.limit == InputLimit::kMainThread && beyond.count() > 0) {
      share_loss(expected, simulated, cost);
    } else if (simulated.limit == InputLimit::kMainThread) {
      cost.main_extra = cost.main_extra + beyond;
    } else if (feeds_longer(one, cost)) {
      lengthen_feeding(one, beyond, cost);
    } else {
      cost.worker_extra = cost.worker_extra + beyond;
    }
  }
  const Nanos fork_alone = cost.start.fork.count() > 0
                               ? cost.start.fork
                               : cost.transport.fork_per_worker + cost.transport.worker_startup;
  const LoaderForecast matched = simulate();
  match_start(one, fork_alone, matched, cost);
  const double ratio = matched.interval / expected;
  return std::max(ratio, 1 / ratio) - 1;
}

}  // namespace stoker
