#include <fmt/format.h>

#include <cmath>

#include "base/counted.h"
#include "base/percent.h"
#include "diagnosis/findings/job_case.h"
#include "diagnosis/timeline/times.h"

namespace stoker::findings {
namespace {

/// A job that uses more than this part of its cores is held by how many there are.
constexpr double kMostCores = 0.8;
/// So much of a core beside whole ones is noise of counting.
constexpr double kPartOfACore = 0.5;
/// Workers that wait for a core for more than this share of their batches are in each other's way.
constexpr double kCrowdedWorkers = 0.25;
/// Threads of libraries in workers that use more than this part of what their workers do.
constexpr double kBusyHelpers = 0.5;
/// Threads beside the loop wait for a core for more than this share, and use more than that part of
/// the loop's own time: they slow it down.
constexpr double kCrowdedThreads = 0.2, kBusyThreads = 0.3;

/// Share of the time in the run queue, of those who make samples.
double queued_share(const WorkerSeconds& w) {
  const double making = w.making();
  return making > 0 ? w.queued / making : 0;
}

void add_quota(const JobCase& c, std::vector<JobFinding>& out) {
  const HostSample& first = c.timeline.first_host();
  const HostSample& last = c.timeline.last_host();
  const double periods = grown(first.periods, last.periods);
  const double throttled = grown(first.throttled_periods, last.throttled_periods);
  if (periods <= 0 || throttled / periods < kLeastShare) return;
  JobFinding f;
  f.name = "cpu_quota";
  const double waiting = c.share(JobState::kWaitsForData) * queued_share(c.while_waiting);
  f.lost = c.share(JobState::kThrottled) + waiting;
  // A quota that is used up while the loop waits for data holds its workers back, whether or not
  // the kernel counts that as waiting for a core.
  if (c.own > kMostCores * c.cores)
    f.lost = std::max(f.lost, c.share(JobState::kWaitsForData) * throttled / periods);
  f.evidence = fmt::format(
      "The CPU limit of the container or job ({:g} cores, the quota of its control group) was used "
      "up in {} of the periods that the kernel divides time into; the job used {:.2g} cores, of {} "
      "that it can see.",
      c.timeline.facts().quota, percent(throttled / periods), c.own, c.timeline.facts().processors);
  f.cure =
      "raise the CPU limit (Kubernetes resources.limits.cpu, docker --cpus), or ask for no "
      "more workers and threads than it grants.";
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

void add_foreign(const JobCase& c, std::vector<JobFinding>& out) {
  if (c.contending < kClearShare || !c.pressed) return;
  JobFinding f;
  f.name = "other_jobs_on_the_cores";
  const double part = c.foreign_part();
  // A batch that nobody makes is on its way: both sides need a core to hand it over.
  const double idle = c.while_waiting.alive > 0 ? c.while_waiting.idle / c.while_waiting.alive : 0;
  f.lost = c.share(JobState::kWaitsForCore) * part +
           c.share(JobState::kWaitsForData) * std::max(queued_share(c.while_waiting), idle) * part;
  f.evidence = fmt::format(
      "Other processes used {:.1f} of {} cores; the loop waited for a core {} of its time, its "
      "workers {} of theirs.",
      c.foreign, c.timeline.facts().processors, percent(c.share(JobState::kWaitsForCore)),
      percent(queued_share(c.workers)));
  f.cure = "a machine, or cores, of its own (exclusive nodes, cpusets); see who it is with top.";
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

/// The loop waits for a core because its own workers fill them: what they do is too much for the
/// cores that there are.
void add_full_cores(const JobCase& c, double lost, std::vector<JobFinding>& out) {
  const auto known = std::ranges::find(out, "preparation_bound", &JobFinding::name);
  if (known != out.end()) {
    known->lost += lost;
    return;
  }
  JobFinding f;
  f.name = "preparation_bound";
  f.lost = lost;
  f.evidence = fmt::format(
      "The loop waits for a core {} of its time, because its workers fill them: {:.1f} of {:g} "
      "usable cores are busy with this job.",
      percent(c.share(JobState::kWaitsForCore)), c.own, c.cores);
  f.cure =
      "samples that take less computing: smaller files, a faster decoder, fewer transforms or "
      "whole batches at once, or some of them on the GPU; or more cores.";
  if (c.loader) {
    f.gain = gain_of_costs(*c.loader, 0.5, 1);
    f.cure += " The gain is that of halving a sample's CPU time.";
  }
  f.confidence = Confidence::kMedium;
  out.push_back(std::move(f));
}

/// More workers than cores, where fewer would do as well or better.
void add_too_many(const JobCase& c, std::vector<JobFinding>& out) {
  if (c.all_workers() <= c.cores + kPartOfACore) return;
  const double queued = queued_share(c.workers) * (1 - c.foreign_part());
  if (queued < kCrowdedWorkers) return;
  JobFinding f;
  f.name = "too_many_workers";
  const double own = c.share(JobState::kWaitsForCore) * (1 - c.foreign_part());
  const int enough = std::max(
      1, static_cast<int>(
             std::floor(c.cores / static_cast<double>(std::max<std::size_t>(1, c.ranks.size())))));
  f.lost = own;
  f.evidence = fmt::format(
      "{} share {:g} cores: they wait for one {} of the time that batches take them, and the loop "
      "itself {} of its time.",
      counted(c.all_workers(), "worker"), c.cores, percent(queued_share(c.workers)),
      percent(c.share(JobState::kWaitsForCore)));
  f.cure = fmt::format("num_workers={} instead of {}.", enough, c.workers_each);
  f.setting = fmt::format("num_workers={}", enough);
  if (c.loader) {
    LoaderSettings fewer = c.loader->settings;
    fewer.workers = enough;
    f.gain = gain_of(*c.loader, fewer);
    // Where fewer would be clearly slower, the many are not the matter.
    constexpr double kClearlySlower = -0.04;
    if (f.gain->value < kClearlySlower) return add_full_cores(c, own, out);
  }
  f.confidence = Confidence::kMedium;
  out.push_back(std::move(f));
}

/// Threads of libraries beside those that are meant to run: in workers, or more than cores.
void add_oversubscribed(const JobCase& c, std::vector<JobFinding>& out) {
  double leader = 0, others = 0, queued = 0, busy = 0;
  for (const RankTimeline& rank : c.ranks) {
    leader += rank.leader.cpu;
    others += rank.others_cpu;
    queued += rank.others_queued;
    busy += rank.busy_threads;
  }
  const double threads = busy / static_cast<double>(std::max<std::size_t>(1, c.ranks.size()));
  const bool crowd = c.workers.cpu > 0 && c.workers.helpers_cpu > kBusyHelpers * c.workers.cpu &&
                     c.workers.helpers_cpu > 1;
  const double wait = others + queued > 0 ? queued / (others + queued) : 0;
  const bool own_threads = busy + static_cast<double>(c.ranks.size()) > c.cores + kPartOfACore &&
                           wait > kCrowdedThreads && others > leader * kBusyThreads;
  if (!crowd && !own_threads) return;
  JobFinding f;
  f.name = "threads_oversubscribed";
  const double part = 1 - c.foreign_part();
  f.lost = (c.share(JobState::kWaitsForCore) + c.share(JobState::kComputes) * wait) * part;
  if (crowd && !own_threads) {
    f.lost = c.share(JobState::kWaitsForCore) * part +
             c.share(JobState::kWaitsForData) * queued_share(c.while_waiting) * part;
    f.evidence = fmt::format(
        "Threads that libraries started in the workers take {} as much CPU time as the workers' "
        "own threads; workers wait for a core {} of the time.",
        percent(c.workers.helpers_cpu / c.workers.cpu), percent(queued_share(c.workers)));
    f.cure = "one thread a worker: OMP_NUM_THREADS=1, cv2.setNumThreads(0) in worker_init_fn.";
    f.setting = "OMP_NUM_THREADS=1";
  } else {
    f.evidence = fmt::format(
        "{:.0f} threads compute beside the main one on {:g} cores, and wait for a core {} of their "
        "time.",
        threads, c.cores, percent(wait));
    const int fit = std::max(1, static_cast<int>(c.cores / static_cast<double>(c.ranks.size())));
    f.cure = fmt::format("torch.set_num_threads({}) or OMP_NUM_THREADS={}.", fit, fit);
    f.setting = fmt::format("OMP_NUM_THREADS={}", fit);
  }
  f.confidence = Confidence::kMedium;
  out.push_back(std::move(f));
}

}  // namespace

void core_rules(const JobCase& c, std::vector<JobFinding>& out) {
  add_quota(c, out);
  add_foreign(c, out);
  add_too_many(c, out);
  add_oversubscribed(c, out);
}

}  // namespace stoker::findings
