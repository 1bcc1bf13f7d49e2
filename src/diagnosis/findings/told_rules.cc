#include <fmt/format.h>

#include "base/percent.h"
#include "diagnosis/findings/job_case.h"

/// What shows best where the loop tells of its steps itself.
namespace stoker::findings {
namespace {

struct Receiving {
  double share = 0;
  std::string evidence;
};

/// What of next() is neither blocked nor queued for a core is the loop's own work: receiving,
/// rebuilding and pinning batches.
Receiving told_receiving(const JobCase& c, double waits) {
  const double blocked = c.share(JobState::kWaitsForData) + c.share(JobState::kStartsWorkers) +
                         c.share(JobState::kThrottled);
  // Within the rest the loop waited for a core as often as it did elsewhere.
  const double computes = c.share(JobState::kComputes);
  const double awake = computes + c.share(JobState::kWaitsForCore);
  const double receives = awake > 0 ? (waits - blocked) * computes / awake : 0;
  if (receives > computes) return {};
  return {receives,
          fmt::format("The loop is in the loader's next() for {} of its time, and blocked there "
                      "for {} only; {:.3g} ms of each step are its own work of receiving the "
                      "batch.",
                      percent(waits), percent(blocked), 1e3 * c.told->step_s * receives)};
}

/// A loop that tells nothing: how many tensors come is seen, what one takes is not.
Receiving seen_receiving(const JobCase& c) {
  return {c.receives,
          fmt::format("Workers hand over each batch as {:.0f} tensors, by how often the process "
                      "reads for one; where a tensor takes what it took on another machine, "
                      "receiving them takes {} of the loop's time.",
                      c.tensors, percent(c.receives))};
}

void add_receiving(const JobCase& c, const Receiving& r, std::vector<JobFinding>& out) {
  if (c.workers_each == 0 || r.share < kClearShare) return;
  JobFinding f;
  f.name = "transport_bound";
  f.lost = r.share;
  f.evidence = r.evidence;
  f.cure =
      "let workers hand over one tensor instead of many, tensors instead of lists and arrays "
      "(collate_fn); pin_memory=True moves receiving into a thread.";
  f.gain =
      Figure{1 / (1 - r.share / 2) - 1, 1 / (1 + kRunToRun) - 1,
             (1 + kRunToRun) / (1 - std::min(0.9, r.share)) - 1, "the time that receiving takes"};
  f.confidence = c.told ? Confidence::kMedium : Confidence::kLow;
  out.push_back(std::move(f));
}

void add_validation(const JobCase& c, std::vector<JobFinding>& out) {
  const double share = c.told->validation.value_or(0);
  if (share < kClearShare) return;
  JobFinding f;
  f.name = "validation_stalls";
  f.lost = share;
  f.evidence =
      fmt::format("Validation passes take {} of the time between training steps.", percent(share));
  f.cure =
      "validate less often or on a part of the data; a larger batch under torch.inference_mode().";
  // Half as often leaves half of it.
  f.gain = Figure{1 / (1 - share / 2) - 1, 0, 1 / (1 - std::min(0.95, share)) - 1,
                  "half as many validation passes; at most none"};
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

}  // namespace

void told_rules(const JobCase& c, std::vector<JobFinding>& out) {
  if (!c.told || !c.told->waits) {
    Receiving seen = seen_receiving(c);
    seen.share = c.at_most_idle(seen.share);
    return add_receiving(c, seen, out);
  }
  const double waits = c.at_most_idle(*c.told->waits);
  add_receiving(c, told_receiving(c, waits), out);
  add_validation(c, out);
}

}  // namespace stoker::findings
