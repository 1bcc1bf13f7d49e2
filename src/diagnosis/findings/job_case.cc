#include "diagnosis/findings/job_case.h"

#include <cmath>

#include "base/saturating.h"
#include "diagnosis/findings/own_loading.h"
#include "diagnosis/timeline/receive_track.h"
#include "diagnosis/timeline/times.h"

namespace stoker::findings {
namespace {

/// Batches from which a loader's costs are taken for known.
constexpr double kEnoughBatches = 10;
constexpr std::size_t kEnoughCosts = 4;
/// Half-width of what the observed CPU time of a batch may be off by when the settings change: more
/// workers share caches and memory. An assumption, held against runs in docs/accuracy/watching.md.
constexpr double kCostError = 0.15;
/// No more of the disagreement between simulation and run than this goes into a band.
constexpr double kMostDisagreement = 0.5;
/// Batches ahead, a worker: a loop asks for no more, whatever a recording says.
constexpr double kMostPrefetch = 1024;
/// Cores in use from which they count as full.
constexpr double kFull = 0.85;
/// What receiving a batch, and each tensor of it, takes the training process on a core: seconds, as
/// measured for data/coefficients/input.json (per_batch_main_ms, per_tensor_main_ms) on one
/// machine.
constexpr double kReceiveBatch = 0.45e-3, kReceiveTensor = 0.155e-3;

SampleCost cost_of(const RankTimeline& rank) {
  SampleCost cost;
  cost.known = true;
  cost.tensors = 1;
  for (const BatchCost& batch : rank.costs) {
    cost.cpu.emplace_back(batch.cpu * kNanosASecond);
    cost.wait.emplace_back(batch.wait * kNanosASecond);
  }
  // What moving a batch costs is within what was observed of either side.
  cost.transport = {};
  cost.transport.oversubscription = 0.1;  // data/coefficients/input.json, as measured there
  cost.basis = "observed";
  return cost;
}

/// The rank whose loader is best known stands for all.
const RankTimeline* typical(const std::vector<RankTimeline>& ranks) {
  const RankTimeline* best = nullptr;
  for (const RankTimeline& rank : ranks) {
    if (best == nullptr || rank.costs.size() > best->costs.size()) best = &rank;
  }
  return best;
}

double rate_of(const LoaderSettings& settings, const SampleCost& cost, const WatchedLoader& l);

std::optional<WatchedLoader> loader_of(const JobCase& c) {
  const RankTimeline* rank = typical(c.ranks);
  if (rank == nullptr || rank->batches < kEnoughBatches || rank->loop_batches <= 0 ||
      rank->costs.size() < kEnoughCosts || rank->workers_most == 0)
    return std::nullopt;
  WatchedLoader loader;
  loader.settings.batch = 1;
  loader.settings.workers = rank->workers_most;
  loader.settings.pin = false;
  loader.settings.persistent = true;
  const double window = std::round(rank->window / rank->workers_most);
  loader.settings.prefetch = window >= 1 ? static_cast<int>(std::min(window, kMostPrefetch)) : 2;
  loader.cost = cost_of(*rank);
  loader.host.cores = std::max(1.0, c.cores);
  const WatchFacts& facts = c.timeline.facts();
  if (facts.quota > 0) loader.host.quota.cores = facts.quota;
  // Threads of the step beside the loop's own are busy as others are.
  double threads = 0;
  for (const RankTimeline& one : c.ranks)
    threads += one.job.all() > 0 ? one.others_cpu / one.job.all() : 0;
  loader.host.foreign_cores = std::min(loader.host.cores * 0.9, c.contending + threads);
  loader.host.ranks = static_cast<int>(c.ranks.size());
  const JobSeconds& job = rank->job;
  const double waits =
      job[JobState::kWaitsForData] + job[JobState::kStartsWorkers] + job[JobState::kWaitsForCore];
  const double loop = std::max(0.0, job.all() - waits - job[JobState::kThrottled]);
  const double cpu = std::min(loop, job[JobState::kComputes] + job[JobState::kSaves]);
  loader.consumer.step = Nanos(loop / rank->loop_batches * kNanosASecond);
  loader.consumer.host_cpu = Nanos(cpu / rank->loop_batches * kNanosASecond);
  loader.consumer.consumption = Consumption::kBlocking;
  const double watched = job.all() - job[JobState::kStartsWorkers];
  loader.observed = watched > 0 ? rank->loop_batches / watched : 0;
  loader.simulated = rate_of(loader.settings, loader.cost, loader);
  if (loader.simulated <= 0 || loader.observed <= 0) return std::nullopt;
  return loader;
}

/// What others keep of the cores when the job asks for more: the scheduler divides them by who is
/// ready, so that a job which adds workers takes from others too.
HostShare shared_host(const LoaderSettings& settings, const WatchedLoader& l) {
  HostShare host = l.host;
  const double others = l.host.foreign_cores;
  const double loop = l.consumer.step.count() > 0 ? l.consumer.host_cpu / l.consumer.step : 0;
  const double wanted = (settings.workers + loop) * l.host.ranks;
  if (others > 0) host.foreign_cores = std::min(others, host.cores * others / (others + wanted));
  return host;
}

double rate_of(const LoaderSettings& settings, const SampleCost& cost, const WatchedLoader& l) {
  return simulate_loader(settings, cost, shared_host(settings, l), l.consumer).samples_per_s;
}

/// `rate(factor)` is the speed after the change with CPU times multiplied, over that before.
template <class Ratio>
Figure banded(const WatchedLoader& loader, Ratio ratio) {
  Figure gain;
  // A loader can only spare the loop its waiting: no faster than the loop without any.
  const double most = 1 / std::max(1e-9, loader.consumer.step.count() / kNanosASecond *
                                             std::max(loader.observed, loader.simulated));
  const double middle = std::min(ratio(1.0), std::max(1.0, most));
  const double slow = ratio(1 + kCostError), fast = ratio(1 - kCostError);
  const double disagreement =
      std::min(kMostDisagreement, std::abs(std::log(loader.observed / loader.simulated)));
  // Half of it, since the same simulation stands above and below the line.
  const double widen = std::exp(disagreement / 2) * (1 + kLeastError);
  gain.value = middle - 1;
  gain.low = std::min({middle, slow, fast}) / widen - 1;
  gain.high = std::max(middle, std::min(std::max({middle, slow, fast}) * widen,
                                        std::max(1.0, most) * (1 + kLeastError))) -
              1;
  gain.basis = "input simulation with observed costs";
  return gain;
}

std::optional<ToldLoop> told_of(const std::vector<RankTimeline>& ranks) {
  constexpr std::int64_t kEnoughSteps = 5;
  double rate = 0, steps = 0, steps_ns = 0, wait_ns = 0, validation_ns = 0;
  bool waits = true;
  std::int64_t loops = 0;
  for (const RankTimeline& rank : ranks) {
    const Told& t = rank.told;
    if (t.kind == 0 || t.steps < kEnoughSteps || t.ns <= 0) continue;
    ++loops;
    waits = waits && t.kind == static_cast<std::int64_t>(ToldKind::kObservation);
    steps += static_cast<double>(t.steps);
    steps_ns += static_cast<double>(t.ns);
    wait_ns += static_cast<double>(t.wait_ns);
    validation_ns += static_cast<double>(t.validation_ns);
    rate += static_cast<double>(std::max<std::int64_t>(0, t.samples)) * kNanosASecond /
            static_cast<double>(t.ns);
  }
  if (loops == 0) return std::nullopt;
  ToldLoop told;
  told.steps = saturating_whole(steps);
  told.step_s = steps_ns / steps / kNanosASecond;
  told.samples_per_s = rate;
  if (waits) {
    told.waits = std::clamp(wait_ns / steps_ns, 0.0, 1.0);
    told.validation = std::max(0.0, validation_ns) / (steps_ns + std::max(0.0, validation_ns));
  }
  return told;
}

/// Receiving is time on a core and looks like the step; how many tensors come tells what it takes.
void estimate_receiving(JobCase& c) {
  double seconds = 0;
  for (const RankTimeline& rank : c.ranks) {
    // A pin thread receives beside the loop.
    if (rank.pin_thread || rank.reads_a_batch <= 0) continue;
    const double tensors = tensors_of(rank.reads_a_batch);
    c.tensors = std::max(c.tensors, tensors);
    seconds += std::min(rank.loop_batches * (kReceiveBatch + kReceiveTensor * tensors),
                        rank.job[JobState::kComputes]);
  }
  if (c.job.all() > 0) c.receives = seconds / c.job.all();
}

/// The part of what others use that competes with the job, 0 to 1. Where somebody waits for a core
/// most of the time, and the job's threads far less than their fair turn, those who wait are others
/// (nice, idle class, a smaller cpu.weight), and the job would get what they use.
double competing(const JobCase& c, double pressure) {
  // Below it too little is seen of who is served first.
  constexpr double kMostOfTheTime = 0.5;
  if (!c.pressed || pressure < kMostOfTheTime) return 1;
  double cpu = c.workers.cpu, queued = c.workers.queued;
  for (const RankTimeline& rank : c.ranks) cpu += rank.leader.cpu, queued += rank.leader.queued;
  if (cpu + queued <= 0) return 1;
  // At least one thread waits for that share of the time beside one on each core.
  const double fair = pressure / (pressure + c.cores);
  return std::min(1.0, queued / (cpu + queued) / fair);
}

}  // namespace

Figure gain_of(const WatchedLoader& loader, const LoaderSettings& other) {
  return banded(loader, [&](double factor) {
    const SampleCost cost = with_cpu_times(loader.cost, factor);
    const double now = rate_of(loader.settings, cost, loader);
    return now > 0 ? rate_of(other, cost, loader) / now : 1.0;
  });
}

Figure gain_of_costs(const WatchedLoader& loader, double cpu_factor, double wait_factor) {
  return banded(loader, [&](double factor) {
    const SampleCost cost = with_cpu_times(loader.cost, factor);
    SampleCost cheaper = with_cpu_times(cost, cpu_factor);
    for (Nanos& wait : cheaper.wait) wait = wait * wait_factor;
    const double now = rate_of(loader.settings, cost, loader);
    return now > 0 ? rate_of(loader.settings, cheaper, loader) / now : 1.0;
  });
}

JobCase job_case(const JobTimeline& timeline) {
  JobCase c(timeline);
  double waiting = 0, for_one = 0;
  for (const RankTimeline& rank : c.ranks) {
    c.job += rank.job;
    c.workers += rank.workers;
    c.while_waiting += rank.while_waiting;
    c.workers_each = std::max(c.workers_each, rank.workers_most);
    waiting += rank.waiting_with_workers;
    for_one += rank.waits_for_one;
  }
  c.waits_for_one = waiting > 0 ? for_one / waiting : 0;
  c.cores = timeline.facts().cores > 0
                ? timeline.facts().cores
                : static_cast<double>(std::max<std::int64_t>(1, timeline.facts().processors));
  const double seconds = timeline.host_seconds();
  if (seconds > 0) {
    const HostSample &first = timeline.first_host(), &last = timeline.last_host();
    const double all = grown_seconds(first.busy_ns, last.busy_ns);
    c.own = timeline.job_cpu() / seconds;
    c.foreign = std::max(0.0, all / seconds - c.own);
    const double here = static_cast<double>(timeline.facts().processors);
    c.pressed = c.own + c.foreign > kFull * std::max(c.cores, here) || c.own > kFull * c.cores;
    const double pressure = grown_seconds(first.cpu_pressure_ns, last.cpu_pressure_ns) / seconds;
    c.contending = c.foreign * competing(c, pressure);
  }
  double known = 0, busy = 0;
  for (const GpuTimeline& gpu : timeline.gpus())
    known += gpu.seconds, busy += gpu.busy * gpu.seconds;
  if (known > 0) c.gpu_busy = busy / known;
  estimate_receiving(c);
  c.loader = loader_of(c);
  c.told = told_of(c.ranks);
  c.own_loading = own_loading_of(c);
  return c;
}

}  // namespace stoker::findings
