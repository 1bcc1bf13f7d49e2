#include "diagnosis/next_run/observed_run.h"

#include <fmt/format.h>

#include <cmath>

#include "base/saturating.h"
#include "diagnosis/findings/job_case.h"
#include "diagnosis/timeline/times.h"

namespace stoker {
namespace {

/// Half of a 90 % band of what batches were seen to cost: as of a probe, since the machine is most
/// of it (input/probe/sample_cost.h).
constexpr double kObservedError = kProbeError;

const RankTimeline* busiest(const std::vector<RankTimeline>& ranks) {
  const RankTimeline* best = nullptr;
  for (const RankTimeline& rank : ranks) {
    if (best == nullptr || rank.costs.size() > best->costs.size() ||
        rank.told.steps > best->told.steps)
      best = &rank;
  }
  return best;
}

/// Without workers only the loop knows how long it loads.
void add_in_process(const findings::JobCase& c, const RankTimeline& rank, std::int64_t batch,
                    ObservedRun& run) {
  const double waits = c.told->waits.value_or(0) * c.told->step_s;
  run.sample.cpu = {Nanos(waits * kNanosASecond / static_cast<double>(batch))};
  run.consumer.step = Nanos((c.told->step_s - waits) * kNanosASecond);
  const double cpu = rank.job.all() > 0 ? rank.job[JobState::kComputes] / rank.job.all() : 0;
  run.consumer.host_cpu = std::min(
      run.consumer.step, Nanos(std::max(0.0, cpu * c.told->step_s - waits) * kNanosASecond));
  run.batches_per_s = 1 / c.told->step_s;
}

void add_loader(const findings::WatchedLoader& loader, std::int64_t batch, ObservedRun& run) {
  const auto samples = static_cast<double>(batch);
  for (std::size_t i = 0; i < loader.cost.cpu.size(); ++i) {
    run.sample.cpu.push_back(loader.cost.cpu[i] / samples);
    run.sample.wait.push_back(loader.cost.wait[i] / samples);
  }
  run.settings = loader.settings;
  run.consumer = loader.consumer;
  run.batches_per_s = loader.observed;
}

}  // namespace

Result<ObservedRun> observed_run(const JobTimeline& timeline, std::optional<std::int64_t> batch,
                                 const std::string& where) {
  const findings::JobCase c = findings::job_case(timeline);
  const RankTimeline* rank = busiest(c.ranks);
  const bool in_process = c.workers_each == 0 && c.told && c.told->waits;
  if (rank == nullptr || (!c.loader && !in_process))
    return fail(
        ErrorCode::kBadInput,
        "saw too little of a loader to plan from: a dozen batches of DataLoader workers, or "
        "a loop without workers that tells of its steps (stoker.observe_step)",
        where);
  ObservedRun run;
  const double told = rank->told.steps > 0 ? static_cast<double>(rank->told.samples) /
                                                 static_cast<double>(rank->told.steps)
                                           : 0;
  run.batch_told = told >= 1;
  if (!batch && told < 1)
    return fail(ErrorCode::kUsage,
                where +
                    " does not tell how many samples a batch has; give it, or let the loop tell "
                    "(stoker.observe_step)",
                "--batch");
  const std::int64_t samples = run.batch_told ? saturating_whole(std::round(told)) : *batch;
  run.sample.known = true;
  if (in_process) add_in_process(c, *rank, samples, run);
  else add_loader(*c.loader, samples, run);
  run.settings.batch = samples;
  run.settings.pin = rank->pin_thread;
  run.on_gpu = !timeline.facts().gpus.empty();
  run.settings.persistent = rank->generations.size() < 2;
  run.consumer.consumption = Consumption::kBlocking;
  run.processes = static_cast<int>(c.ranks.size());
  run.sample.tensors = 1;
  run.sample.within_batch = 1;
  run.sample.transport.oversubscription = 0.1;  // data/coefficients/input.json, as measured there
  if (rank->batches > 0)
    run.sample.read_bytes = rank->read_chars / rank->batches / static_cast<double>(samples);
  run.sample.band = {kObservedError, kObservedError};
  run.sample.wait_band = run.sample.band;
  run.sample.basis = fmt::format("costs observed in a run of {:.0f} s", timeline.seconds());
  return run;
}

}  // namespace stoker
