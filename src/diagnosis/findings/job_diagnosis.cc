#include "diagnosis/findings/job_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "diagnosis/findings/job_case.h"
#include "diagnosis/findings/own_loading.h"

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

struct Title {
  std::string_view name, words;
};
/// Findings whose names alone say too little to somebody who reads them for the first time.
constexpr Title kTitles[] = {
    {"preparation_bound", "Making samples takes too long"},
    {"reading_bound", "Reading data takes too long"},
    {"slow_samples", "A few slow samples hold up all others"},
    {"window_too_small", "Too few batches are made ahead"},
    {"transport_bound", "Handing batches over takes too long"},
    {"threads_oversubscribed", "More threads than cores"},
    {"cpu_quota", "The CPU limit is used up"},
    {"workers_restarted", "Workers are started anew for each epoch"},
    {"checkpoint_stalls", "The loop stands still while it saves"},
    {"validation_stalls", "Validation passes"},
    {"validation_or_logging_stalls", "The loop does something else than training steps"},
    {"loads_in_main_process", "The loop loads its data itself"},
    {"main_process_waits_for_storage", "The loop itself waits for storage"},
    {"waits_for_threads", "The loop waits for other threads"},
    {"waits_for_other_processes", "The loop waits for other processes"},
    {"host_bound_launching", "The GPU waits for the CPU to launch its kernels"},
    {"synchronisations", "The loop and the GPU wait for each other in turn"},
    {"gpu_throttled_by_heat", "The GPU is held back by heat"},
    {"gpu_throttled_by_power", "The GPU is held back by its power limit"},
    {"gpu_forgotten", "A GPU is held and not used"},
    {"gpu_shared", "Somebody else is on the GPU"},
};

std::string title_of(const std::string& name) {
  const auto* known = std::ranges::find(kTitles, name, &Title::name);
  if (known != std::end(kTitles)) return std::string(known->words);
  std::string words = name;
  std::ranges::replace(words, '_', ' ');
  words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
  return words;
}

std::string verdict_of(const JobDiagnosis& d, const findings::JobCase& c) {
  if (d.job.all() <= 0) return "No training process was seen.";
  if (d.seconds < kLeastSeconds)
    return fmt::format("Watched for {:.1f} s only, which is too short to say anything.", d.seconds);
  if (d.findings.empty() && findings::hides_loading(c))
    return fmt::format(
        "Nothing was found, but there are no workers: loading may take up to {:.0f} % of the time, "
        "and is not told apart from the step here.",
        100 * c.own_loading->high);
  if (d.findings.empty() && !d.healthy)
    return fmt::format(
        "Nothing was found, but what the loop slept for was not seen for {:.0f} % of the time: it "
        "may still lose time.",
        100 * c.share(JobState::kElsewhere));
  if (d.findings.empty()) {
    const std::string limit =
        c.gpu_busy < 0 ? "the step itself"
                       : fmt::format("the GPU, busy {:.0f} % of the time,", 100 * c.gpu_busy);
    return fmt::format("Healthy: the loop waits for data {:.0f} % of the time; {} is the limit.",
                       100 * d.waits, limit);
  }
  const JobFinding& first = d.findings.front();
  std::string text = title_of(first.name);
  if (!is_risk(first)) text += fmt::format(": {:.0f} % of the time", 100 * first.lost);
  // Without workers that is the same.
  if (d.waits >= kWorthSaying && c.workers_each > 0)
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
                          "those cores count as free",
                          c.foreign)
            : fmt::format(
                  "other processes used {:.1f} cores meanwhile: what batches cost was seen beside "
                  "them, and may be less without",
                  c.foreign));
  if (d.job[JobState::kElsewhere] > findings::kClearShare * d.job.all())
    d.notes.emplace_back(
        "what the loop slept for could not be seen for a part of the time, so causes may be "
        "missing");
  const bool python =
      std::ranges::any_of(c.timeline.processes(), [](const ProcessFacts& p) { return p.python; });
  if (!python && !c.timeline.processes().empty())
    d.notes.emplace_back("no process of the job is Python: workers and batches are not known");
  if (findings::hides_loading(c))
    d.notes.push_back(
        fmt::format("there are no workers, and how much of the time is loading cannot be told from "
                    "outside here: {:.0f} to {:.0f} %; stoker.observe_step tells",
                    100 * c.own_loading->low, 100 * c.own_loading->high));
  if (c.loader) {
    const double ratio = c.loader->observed / c.loader->simulated;
    constexpr double kAboveSeen = 1.25, kBelowSeen = 0.8;
    if (ratio > kAboveSeen || ratio < kBelowSeen)
      d.notes.push_back(fmt::format(
          "the simulation that gains come from gives {:.3g} batches/s for the present settings "
          "where {:.3g} were seen: gains are less certain than usual",
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
    if (rank.job.all() > 0) d.batches_per_s += rank.loop_batches / rank.job.all();
  }
  d.waits_seen = c.share(JobState::kWaitsForData) + c.share(JobState::kStartsWorkers) + c.receives;
  d.told = c.told;
  d.own_loading = c.own_loading;
  if (c.own_loading && c.own_loading->value) d.waits_seen = *c.own_loading->value;
  d.waits = c.told && c.told->waits ? *c.told->waits : d.waits_seen;
  d.useful = d.job.all() > 0 ? c.share(JobState::kComputes) + c.share(JobState::kSleeps) +
                                   c.share(JobState::kWaitsForDevice)
                             : 1;
  if (d.seconds >= kLeastSeconds && d.job.all() > 0) {
    findings::loader_rules(c, d.findings);
    findings::core_rules(c, d.findings);
    findings::loop_rules(c, d.findings);
    findings::own_loading_rules(c, d.findings);
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
              c.share(JobState::kElsewhere) < kSeenEnough && !findings::hides_loading(c);
  d.verdict = verdict_of(d, c);
  add_notes(c, d);
  return d;
}

}  // namespace stoker
