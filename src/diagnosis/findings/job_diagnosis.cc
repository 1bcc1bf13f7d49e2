#include "diagnosis/findings/job_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/findings/job_case.h"

namespace stoker {
namespace {

/// Time below this share is not worth a finding: a healthy loop's own ups and downs.
constexpr double kWorthSaying = 0.05;
/// ... and below this one where its occasions were counted, not its time divided by looks.
constexpr double kCountedWorthSaying = 0.02;

double least_of(const JobFinding& f) {
  const bool counted = f.name == "workers_restarted" || f.name == "checkpoint_stalls";
  return counted ? kCountedWorthSaying : kWorthSaying;
}

bool is_risk(const JobFinding& f) {
  return f.name == "memory_grows" || f.name == "shared_memory_nearly_full" ||
         f.name == "open_files_nearly_used_up" || f.name == "gpu_shared";
}

std::string gain_words(const Figure& gain) {
  return fmt::format("{:+.0f} % [{:.0f} to {:.0f}]", 100 * gain.value, 100 * gain.low,
                     100 * gain.high);
}

std::string words_of_name(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string verdict_of(const JobDiagnosis& d, const findings::JobCase& c) {
  if (d.job.all() <= 0) return "No training process was seen.";
  if (d.seconds < kLeastSeconds)
    return fmt::format("Watched for {:.1f} s only, which is too short to say anything.", d.seconds);
  if (d.findings.empty() && !d.healthy)
    return fmt::format(
        "Nothing was found, but where the loop slept was not seen for {:.0f} % of the time: that "
        "is no clean bill.",
        100 * c.share(JobState::kElsewhere));
  if (d.findings.empty()) {
    const std::string limit =
        c.gpu_busy < 0 ? "the step itself"
                       : fmt::format("the GPU, busy {:.0f} % of the time,", 100 * c.gpu_busy);
    return fmt::format("Healthy: the loop waits for data {:.0f} % of the time; {} is the limit.",
                       100 * d.waits, limit);
  }
  const JobFinding& first = d.findings.front();
  std::string text = words_of_name(first.name);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  if (!is_risk(first)) text += fmt::format(": {:.0f} % of the time", 100 * first.lost);
  if (d.waits >= kWorthSaying)
    text = fmt::format("The loop waits for data {:.0f} % of the time. {}", 100 * d.waits, text);
  if (!first.setting.empty()) {
    text += "; " + first.setting;
    if (first.gain) text += " brings " + gain_words(*first.gain);
  }
  return text + ".";
}

void add_notes(const findings::JobCase& c, JobDiagnosis& d) {
  if (c.foreign >= findings::kClearShare && c.pressed)
    d.notes.push_back(
        c.contending < c.foreign / 2
            ? fmt::format("other processes used {:.1f} cores meanwhile and gave way to the job: "
                          "what they used counts as free",
                          c.foreign)
            : fmt::format(
                  "other processes used {:.1f} cores meanwhile: costs were observed beside them",
                  c.foreign));
  if (d.job[JobState::kElsewhere] > findings::kClearShare * d.job.all())
    d.notes.emplace_back(
        "where the loop slept could not be seen for a part of the time, so causes "
        "may be missing");
  const bool python =
      std::ranges::any_of(c.timeline.processes(), [](const ProcessFacts& p) { return p.python; });
  if (!python && !c.timeline.processes().empty())
    d.notes.emplace_back("no process of the job is Python: workers and batches are not known");
  if (c.loader) {
    const double ratio = c.loader->observed / c.loader->simulated;
    constexpr double kAboveSeen = 1.25, kBelowSeen = 0.8;
    if (ratio > kAboveSeen || ratio < kBelowSeen)
      d.notes.push_back(fmt::format(
          "the input simulation gives {:.3g} batches/s for the present settings where {:.3g} were "
          "seen: gains are less certain than usual",
          c.loader->simulated, c.loader->observed));
  }
}

}  // namespace

std::string_view name_of(Confidence confidence) {
  switch (confidence) {
    case Confidence::kHigh:
      return "high";
    case Confidence::kMedium:
      return "medium";
    default:
      return "low";
  }
}

JobDiagnosis diagnose_job(const JobTimeline& timeline) {
  const findings::JobCase c = findings::job_case(timeline);
  JobDiagnosis d;
  d.seconds = timeline.seconds();
  d.job = c.job;
  for (const RankTimeline& rank : c.ranks) {
    if (rank.job.all() > 0) d.batches_per_s += rank.batches / rank.job.all();
  }
  d.waits_seen = c.share(JobState::kWaitsForData) + c.share(JobState::kStartsWorkers) + c.receives;
  d.told = c.told;
  d.waits = c.told && c.told->waits ? *c.told->waits : d.waits_seen;
  d.useful = d.job.all() > 0 ? c.share(JobState::kComputes) + c.share(JobState::kSleeps) +
                                   c.share(JobState::kWaitsForDevice)
                             : 1;
  if (d.seconds >= kLeastSeconds && d.job.all() > 0) {
    findings::loader_rules(c, d.findings);
    findings::core_rules(c, d.findings);
    findings::loop_rules(c, d.findings);
    findings::told_rules(c, d.findings);
    findings::memory_rules(c, d.findings);
    findings::gpu_rules(c, d.findings);
    std::erase_if(d.findings,
                  [](const JobFinding& f) { return f.lost < least_of(f) && !is_risk(f); });
    std::ranges::stable_sort(d.findings, std::greater<>(), &JobFinding::lost);
  }
  // Stopped, or hidden from this user: what a loop waits for may be in there.
  constexpr double kSeenEnough = 0.5;
  d.healthy = d.findings.empty() && d.seconds >= kLeastSeconds && d.job.all() > 0 &&
              c.share(JobState::kElsewhere) < kSeenEnough;
  d.verdict = verdict_of(d, c);
  add_notes(c, d);
  return d;
}

}  // namespace stoker
