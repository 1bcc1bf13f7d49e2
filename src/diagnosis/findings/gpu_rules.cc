#include <fmt/format.h>

#include "base/percent.h"
#include "base/saturating.h"
#include "base/text.h"
#include "diagnosis/findings/job_case.h"

namespace stoker::findings {
namespace {

/// A GPU busy less than this share of the time has room.
constexpr double kBusy = 0.9;
/// A loop that spends more than this on a core is held by its own instructions.
constexpr double kOnCore = 0.6;
/// A busy GPU below this part of its power limit runs kernels that leave most of it idle.
constexpr double kLowPower = 0.35;

/// Mean of the GPUs' shares of their power limit; -1: not told.
double power_of(const JobCase& c) {
  double power = 0, seconds = 0;
  for (const GpuTimeline& g : c.timeline.gpus())
    power += g.power * g.power_seconds, seconds += g.power_seconds;
  return seconds > 0 ? power / seconds : -1;
}

/// Throughput if the GPU were busy all the time, at most; nothing at least, since what else holds
/// the loop shows only then.
Figure up_to_full(double lost) {
  const double most = 1 / (1 - std::min(lost, 0.95)) - 1;
  return {most / 2, 0, most, "the GPU's idle time"};
}

/// The GPU holds memory for a job that does nothing.
bool add_forgotten(const JobCase& c, std::vector<JobFinding>& out) {
  constexpr double kNothing = 0.01, kAsleep = 0.05;
  const bool held = std::ranges::any_of(
      c.timeline.gpus(), [](const GpuTimeline& g) { return g.job_seen && g.job_memory > 0; });
  double batches = 0;
  for (const RankTimeline& rank : c.ranks) batches += rank.batches;
  if (!held || c.gpu_busy > kNothing || c.share(JobState::kComputes) > kAsleep || batches > 0)
    return false;
  JobFinding f;
  f.name = "gpu_forgotten";
  f.lost = 1;
  f.evidence = fmt::format("The job holds {} GPU{} and used neither them nor a core for {}.",
                           c.timeline.gpus().size(), c.timeline.gpus().size() == 1 ? "" : "s",
                           human_time(c.timeline.seconds() * kSecond));
  f.cure =
      "end it, or see what it waits for (`py-spy dump --pid PID`): the GPU-hours are paid for.";
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
  return true;
}

/// The main thread is busy giving out work, and the GPU waits for it.
void add_host_bound(const JobCase& c, std::vector<JobFinding>& out) {
  const double power = power_of(c);
  const double computes = c.share(JobState::kComputes);
  const bool idle = c.gpu_busy < kBusy;
  const bool weak = power >= 0 && power < kLowPower;
  if (computes < kOnCore || !(idle || weak)) return;
  JobFinding f;
  f.name = "host_bound_launching";
  f.lost = idle ? (1 - c.gpu_busy) *
                      std::min(1.0, computes / (computes + c.share(JobState::kWaitsForData)))
                : 0.3 * (1 - power / kLowPower);
  f.evidence = fmt::format("The loop's thread is on a core {} of the time, and the GPU busy {}",
                           percent(computes), percent(c.gpu_busy));
  if (power >= 0) f.evidence += fmt::format(" at {} of its power limit", percent(power));
  f.evidence +=
      ": it waits for the CPU, which starts (launches) its kernels one by one more slowly than it "
      "runs them.";
  f.cure =
      "fewer and larger kernels (the pieces of work that a GPU is given): "
      "torch.compile(mode=\"reduce-overhead\"), CUDA graphs, a larger "
      "batch_size, foreach or fused optimizers.";
  f.setting = "torch.compile(mode=\"reduce-overhead\")";
  f.gain = up_to_full(f.lost);
  f.confidence = idle ? Confidence::kHigh : Confidence::kLow;
  out.push_back(std::move(f));
}

/// The loop waits for the device, and the device for the loop, in turn.
void add_synchronisations(const JobCase& c, std::vector<JobFinding>& out) {
  const double waits = c.share(JobState::kWaitsForDevice);
  if (waits < kClearShare || c.gpu_busy >= kBusy || c.share(JobState::kComputes) >= kOnCore) return;
  JobFinding f;
  f.name = "synchronisations";
  f.lost = std::max(
      0.0, 1 - c.gpu_busy - c.share(JobState::kWaitsForData) - c.share(JobState::kStartsWorkers));
  f.evidence = fmt::format(
      "The loop waits for the GPU {} of its time, and yet the GPU is busy only {}: each waits for "
      "the other in turn.",
      percent(waits), percent(c.gpu_busy));
  f.cure =
      "read values from the GPU rarely: .item(), .cpu(), print(loss) and torch.cuda.synchronize() "
      "every 50 steps; copies with non_blocking=True from pinned memory.";
  f.gain = up_to_full(f.lost);
  f.confidence = Confidence::kMedium;
  out.push_back(std::move(f));
}

void add_slowed_gpu(const JobCase& c, std::vector<JobFinding>& out) {
  for (const GpuTimeline& g : c.timeline.gpus()) {
    const double held = std::max(g.hot, g.capped);
    constexpr double kOften = 0.2, kSlower = 0.9, kInUse = 0.5;
    if (held < kOften || g.clock_seconds <= 0 || g.clock > kSlower || g.busy < kInUse) continue;
    JobFinding f;
    const bool heat = g.hot >= kOften;
    f.name = heat ? "gpu_throttled_by_heat" : "gpu_throttled_by_power";
    f.lost = held * (1 - g.clock);
    f.evidence =
        fmt::format("GPU {} was held back {} of the time and ran at {} of its highest clock.",
                    g.index, percent(held), percent(g.clock));
    f.cure = heat ? "cooling, or another node: nvidia-smi -q -d PERFORMANCE names the reason."
                  : "the power limit is what this card may use (nvidia-smi -q -d POWER); raise it "
                    "where it was lowered.";
    f.confidence = heat ? Confidence::kHigh : Confidence::kMedium;
    out.push_back(std::move(f));
    return;
  }
}

void add_shared(const JobCase& c, std::vector<JobFinding>& out) {
  for (const GpuTimeline& g : c.timeline.gpus()) {
    constexpr double kOften = 0.2;
    if (g.shared < kOften) continue;
    JobFinding f;
    f.name = "gpu_shared";
    f.evidence =
        fmt::format("GPU {} also holds processes that are not the job's, with {} of memory.",
                    g.index, human_bytes(Bytes(saturating_whole(g.foreign_memory))));
    f.cure =
        "a GPU of its own (CUDA_VISIBLE_DEVICES); nvidia-smi shows whose they are. What they "
        "take of its time is not told.";
    f.setting = "CUDA_VISIBLE_DEVICES";
    f.confidence = Confidence::kMedium;
    out.push_back(std::move(f));
    return;
  }
}

}  // namespace

void gpu_rules(const JobCase& c, std::vector<JobFinding>& out) {
  if (c.gpu_busy < 0) return;
  if (add_forgotten(c, out)) return;
  add_host_bound(c, out);
  add_synchronisations(c, out);
  add_slowed_gpu(c, out);
  add_shared(c, out);
}

}  // namespace stoker::findings
