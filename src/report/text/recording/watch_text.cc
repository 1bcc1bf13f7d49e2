#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "diagnosis/timeline/times.h"
#include "report/model/watch_report.h"
#include "report/text/layout.h"
#include "report/text/recording/finding_text.h"
#include "report/text/screen.h"

namespace stoker {
namespace {

using layout::finding_text;
using layout::wrapped;

std::string share(double part, double whole) { return percent(whole > 0 ? part / whole : 0); }

/// States by time, those below half a per cent left out.
std::vector<std::pair<JobState, double>> by_time(const JobSeconds& job) {
  constexpr double kWorthSaying = 0.005;
  std::vector<std::pair<JobState, double>> states;
  for (std::size_t i = 0; i < kJobStates; ++i) {
    const double part = job.all() > 0 ? job.in[i] / job.all() : 0;
    if (part >= kWorthSaying) states.emplace_back(static_cast<JobState>(i), part);
  }
  std::ranges::stable_sort(states, [](auto& a, auto& b) { return a.second > b.second; });
  return states;
}

std::string states_text(const JobSeconds& job) {
  std::string text;
  for (const auto& [state, part] : by_time(job)) {
    text += text.empty() ? "" : ", ";
    text += fmt::format("{} {:.0f} %", words_of(state), kPerCent * part);
  }
  return text.empty() ? "nothing seen yet" : text;
}

std::string workers_text(const WorkerSeconds& w) {
  const double alive = std::max(1e-9, w.alive);
  std::string text = fmt::format("on a core {}", share(w.cpu, alive));
  const auto add = [&](const char* words, double seconds) {
    if (seconds / alive >= 0.01) text += fmt::format(", {} {}", words, share(seconds, alive));
  };
  add("waiting for a core", w.queued);
  add("for storage", w.storage);
  add("asleep in samples", w.sleeps);
  add("for locks", w.locked);
  add("idle", w.idle);
  return text;
}

std::string beside(const char* name, const Figure& forecast, double seen, const char* unit) {
  const char* place = seen < forecast.low    ? "below the band"
                      : seen > forecast.high ? "above the band"
                                             : "within the band";
  return fmt::format("    {:<24}{} {} [{} to {}], seen {}: {}\n", name,
                     layout::number(forecast.value), unit, layout::number(forecast.low),
                     layout::number(forecast.high), layout::number(seen), place);
}

std::string against_text(const AgainstForecast& a) {
  return fmt::format("  forecast of {} on {}, batch {} ({}):\n", a.what, a.machine, a.batch,
                     a.basis) +
         beside("step without waiting", a.step_ms, a.seen_step_ms, "ms") +
         beside("speed", a.samples_per_s, a.seen_samples_per_s, "samples/s");
}

std::string told_text(const ToldLoop& told, double seen) {
  std::string text = fmt::format("as the loop tells itself: {} of {}",
                                 counted(static_cast<std::int64_t>(told.steps), "step"),
                                 human_time(told.step_s * kSecond));
  if (told.waits)
    text += fmt::format(", {:.0f} % of them in the loader's next() (seen from outside: {:.0f} %)",
                        kPerCent * *told.waits, kPerCent * seen);
  if (told.validation && *told.validation >= 0.005)
    text += fmt::format("; validation {:.0f} % of the time", kPerCent * *told.validation);
  if (told.samples_per_s > 0)
    text += fmt::format("; {} samples/s", layout::number(told.samples_per_s));
  return text;
}

/// What shows of the steps of a loop that nothing else tells of.
std::string rhythm_text(const Rhythm& r) {
  return fmt::format(
      "its main thread does the same every {} [{} to {}], in {} of the time: one training step as "
      "a rule, or several",
      human_time(r.period * kSecond), human_time(r.low * kSecond), human_time(r.high * kSecond),
      percent(r.share));
}

void add_rank(const RankTimeline& rank, bool many, std::string& text) {
  if (many) {
    const std::string name =
        rank.rank >= 0 ? fmt::format("rank {}", rank.rank) : fmt::format("process {}", rank.pid);
    text += "  " + wrapped(name + ": " + states_text(rank.job), 4) + "\n";
  }
  if (rank.rhythm && rank.batches == 0 && rank.told.kind == 0)
    text += (many ? "    " : "  ") + wrapped(rhythm_text(*rank.rhythm), many ? 6 : 4) + "\n";
  if (rank.workers_most > 0) {
    const std::string starts = rank.generations.size() > 1
                                   ? fmt::format(" (started {} times)", rank.generations.size())
                                   : std::string();
    const std::string indent = many ? "    " : "  ";
    text += indent +
            wrapped(fmt::format("workers {}{}: {}", rank.workers_most, starts,
                                workers_text(rank.workers)),
                    indent.size() + 2) +
            "\n";
  }
}

}  // namespace

WatchLine last_of(const JobTimeline& timeline, double seconds) {
  WatchLine line;
  line.cores = timeline.facts().cores;
  const auto& all = timeline.stretches();
  if (all.empty()) return line;
  line.stretch.from = all.back().from + all.back().seconds;
  line.stretch.gpu_busy = line.stretch.ready = -1;
  double known_gpu = 0, known_ready = 0;
  for (std::size_t i = all.size(); i-- > 0 && line.stretch.seconds < seconds - 0.5;) {
    const Stretch& s = all[i];
    line.stretch.from = s.from;
    line.stretch.seconds += s.seconds;
    line.stretch.job += s.job;
    line.stretch.workers += s.workers;
    line.stretch.batches += s.batches;
    line.stretch.cores_used += s.cores_used;
    line.stretch.cores_foreign += s.cores_foreign;
    if (line.stretch.memory <= 0) line.stretch.memory = s.memory;
    const auto mean = [&](double& sum, double& known, double value) {
      if (value < 0) return;
      sum = (std::max(0.0, sum) * known + value * s.seconds) / (known + s.seconds);
      known += s.seconds;
    };
    mean(line.stretch.gpu_busy, known_gpu, s.gpu_busy);
    mean(line.stretch.ready, known_ready, s.ready);
  }
  for (const RankTimeline& rank : timeline.ranks()) line.workers += rank.workers_now;
  line.processes = static_cast<int>(timeline.last().processes.size());
  return line;
}

std::string watch_line_text(const WatchLine& line) {
  const Stretch& s = line.stretch;
  std::string text =
      fmt::format("{:>8}  {}", human_time((s.from + s.seconds) * kSecond), states_text(s.job));
  if (line.workers > 0)
    text += fmt::format(" | {} {} busy", counted(line.workers, "worker"),
                        share(s.workers.making(), s.workers.alive));
  if (s.batches > 0 && s.seconds > 0)
    text += fmt::format(" | {} batches/s", layout::number(s.batches / s.seconds));
  if (s.gpu_busy >= 0) text += fmt::format(" | GPU {:.0f} %", kPerCent * s.gpu_busy);
  if (s.seconds > 0) {
    text += fmt::format(" | cores {:.1f} of {:g}", s.cores_used / s.seconds, line.cores);
    const double foreign = s.cores_foreign / s.seconds;
    if (foreign >= 0.05) text += fmt::format(", others {:.1f}", foreign);
  }
  // One line for a program that reads it; a terminal's are as wide as the terminal.
  constexpr std::size_t kOneLine = 1'000'000, kIndent = 10;
  const std::size_t begin = std::min(text.size(), text.find_first_not_of(' '));
  return text.substr(0, begin) + wrapped(text.substr(begin), kIndent, kOneLine) + "\n";
}

std::string watch_text(const WatchReport& r) {
  const JobDiagnosis& d = r.diagnosis;
  const std::vector<RankTimeline> ranks = r.timeline->ranks();
  std::string text =
      wrapped(fmt::format("{}, watched for {}", r.source, human_time(d.seconds * kSecond)), 0) +
      "\n\n";
  text += wrapped(d.verdict, 0) + "\n\n";
  std::string loop = "the loop: " + states_text(d.job);
  if (d.batches_per_s > 0) loop += fmt::format("; {} batches/s", layout::number(d.batches_per_s));
  text += "  " + wrapped(loop, 2) + "\n";
  if (d.told) text += "  " + wrapped(told_text(*d.told, d.waits_seen), 2) + "\n";
  for (const RankTimeline& rank : ranks) add_rank(rank, ranks.size() > 1, text);
  const double host = r.timeline->host_seconds();
  if (host > 0) {
    const double all =
        grown_seconds(r.timeline->first_host().busy_ns, r.timeline->last_host().busy_ns);
    // Two sums that are one but for rounding leave nothing.
    constexpr double kNobody = 0.005;
    const double others = (all - r.timeline->job_cpu()) / host;
    text += "  " +
            wrapped(fmt::format("cores: {:.2g} of {:g} by the job, {:.2g} by others",
                                r.timeline->job_cpu() / host, r.timeline->facts().cores,
                                others < kNobody ? 0.0 : others),
                    4) +
            "\n";
  }
  if (r.against) text += against_text(*r.against);
  if (!d.findings.empty()) text += "\n";
  const std::size_t shown = std::min(r.most_findings, d.findings.size());
  for (std::size_t i = 0; i < shown; ++i) text += finding_text(d.findings[i], i + 1);
  if (shown < d.findings.size())
    text += fmt::format(" {} more with --all-findings\n", d.findings.size() - shown);
  std::string end;
  for (const std::string& note : d.notes) end += wrapped("Note: " + note, 6) + "\n";
  for (const std::string& words : r.hidden) end += wrapped("Not seen: " + words, 10) + "\n";
  if (!r.recording.empty())
    end += "Recorded in " + r.recording + "; stoker explain " + r.recording + " says this again\n";
  return end.empty() ? text : text + "\n" + end;
}

}  // namespace stoker
