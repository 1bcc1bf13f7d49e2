#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/findings/job_diagnosis.h"
#include "input/loader/loader_simulation.h"

/// Internal to src/diagnosis: what the rules share.
namespace stoker::findings {

/// The loader of a watched job as the input simulation takes it: one "sample" is one batch, whose
/// costs were observed.
struct WatchedLoader {
  LoaderSettings settings;
  SampleCost cost;
  HostShare host;
  Consumer consumer;
  double observed = 0;   ///< batches a second of one rank
  double simulated = 0;  ///< likewise, of these settings
};

// Thresholds of the rules are judgement: nothing was fitted to them.

/// A cause below this share of the time is not worth a finding.
inline constexpr double kLeastShare = 0.05;
/// Where a share rests on what was sampled rather than counted, or others add to it, twice that.
inline constexpr double kClearShare = 0.1;

/// What the speed of a long run differs from the next of the same job, relative: judgement. Two
/// runs of seconds each of the jobs in tests/jobs, on a machine that others used too, differed by 4
/// % in the median and by 14 % in nine of ten (docs/accuracy/watching.md).
inline constexpr double kRunToRun = 0.05;

/// What a speed after a change was off by at least, either way, where cures were tried on real jobs
/// (docs/accuracy/watching.md): relative.
inline constexpr double kLeastError = 0.2;

/// A run with the sums that several rules ask for. Shares are of the loop's time.
struct JobCase {
  explicit JobCase(const JobTimeline& watched) : timeline(watched), ranks(watched.ranks()) {}

  const JobTimeline& timeline;
  std::vector<RankTimeline> ranks;
  JobSeconds job;                 ///< of all ranks
  WorkerSeconds workers;          ///< of all ranks
  WorkerSeconds while_waiting{};  ///< of workers, weighted by their loop's waiting
  double waits_for_one = 0;       ///< share of the waiting with at most one of several at work
  int workers_each = 0;           ///< workers of a rank, at most
  double cores = 1;
  double foreign = 0;  ///< cores that others used, mean
  /// Cores that others used and that the job would not get if it asked for more: those of lower
  /// priority give way.
  double contending = 0;
  double own = 0;        ///< cores that the job used, mean
  double gpu_busy = -1;  ///< share, mean of the job's GPUs; -1: no GPU, or not told
  /// Share of the time in which the loop receives batches on a core, from how many tensors come;
  /// an estimate, and `tensors` of one batch.
  double receives = 0, tensors = 0;
  bool pressed = false;  ///< job and others together used nearly all cores
  std::optional<WatchedLoader> loader{};
  std::optional<ToldLoop> told{};
  std::optional<OwnLoading> own_loading{};  ///< of a job without workers

  [[nodiscard]] double share(JobState state) const {
    return job.all() > 0 ? job[state] / job.all() : 0;
  }
  [[nodiscard]] int all_workers() const {
    return workers_each * static_cast<int>(std::max<std::size_t>(1, ranks.size()));
  }
  /// What the GPU stands idle, where that is known: waiting that leaves it busy loses nothing.
  [[nodiscard]] double at_most_idle(double lost) const {
    return gpu_busy < 0 ? lost : std::min(lost, 1 - gpu_busy);
  }
  /// The part of other jobs in what wants a core beside the loop itself.
  [[nodiscard]] double foreign_part() const {
    const double loop = job.all() > 0 ? share(JobState::kComputes) : 0;
    const double rest = std::max(0.0, own - loop * static_cast<double>(ranks.size()));
    return contending + rest > 0 ? contending / (contending + rest) : 0;
  }
};

[[nodiscard]] JobCase job_case(const JobTimeline& timeline);

/// Batches a second with other settings over those with the present ones, minus one, with a band:
/// costs observed in a run are off by what the machine did to them, and the simulation by what it
/// fails to tell of the present.
[[nodiscard]] Figure gain_of(const WatchedLoader& loader, const LoaderSettings& other);
[[nodiscard]] Figure gain_of_costs(const WatchedLoader& loader, double cpu_factor,
                                   double wait_factor);

using Rule = void (*)(const JobCase&, std::vector<JobFinding>&);
void loader_rules(const JobCase& c, std::vector<JobFinding>& out);
void core_rules(const JobCase& c, std::vector<JobFinding>& out);
void loop_rules(const JobCase& c, std::vector<JobFinding>& out);
void own_loading_rules(const JobCase& c, std::vector<JobFinding>& out);
void told_rules(const JobCase& c, std::vector<JobFinding>& out);
void memory_rules(const JobCase& c, std::vector<JobFinding>& out);
void gpu_rules(const JobCase& c, std::vector<JobFinding>& out);

}  // namespace stoker::findings
