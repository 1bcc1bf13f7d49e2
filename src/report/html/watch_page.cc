#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/percent.h"
#include "base/text.h"
#include "report/html/finding_table.h"
#include "report/html/page.h"
#include "report/model/recording_page.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace page;

constexpr std::size_t kMostMoments = 360, kMostRanks = 64;

/// The stretches that stand alone. A last one that was cut short goes with the one before it: what
/// the host counts over an interval of its own is no rate of a moment.
std::size_t whole_stretches(const std::vector<Stretch>& all) {
  const std::size_t count = all.size();
  const bool cut = count > 1 && all[count - 1].seconds < all[count - 2].seconds / 2;
  return cut ? count - 1 : count;
}

/// Neighbouring stretches joined until there are few enough.
std::vector<Stretch> joined(const std::vector<Stretch>& all) {
  const std::size_t whole = whole_stretches(all);
  const std::size_t each = std::max<std::size_t>(1, (whole + kMostMoments - 1) / kMostMoments);
  std::vector<Stretch> out;
  for (std::size_t i = 0; i < whole; i += each) {
    Stretch sum = all[i];
    double busy = std::max(0.0, sum.gpu_busy) * sum.seconds,
           busy_s = sum.gpu_busy < 0 ? 0 : sum.seconds;
    const std::size_t end = i + each < whole ? i + each : all.size();
    for (std::size_t j = i + 1; j < end; ++j) {
      const Stretch& s = all[j];
      sum.seconds += s.seconds;
      sum.job += s.job;
      sum.workers += s.workers;
      sum.batches += s.batches;
      sum.cores_used += s.cores_used;
      sum.cores_foreign += s.cores_foreign;
      sum.memory = s.memory;
      if (s.gpu_busy >= 0) {
        busy += s.gpu_busy * s.seconds;
        busy_s += s.seconds;
      }
    }
    sum.gpu_busy = busy_s > 0 ? busy / busy_s : -1;
    if (sum.seconds > 0) out.push_back(sum);
  }
  return out;
}

std::vector<double> middles(const std::vector<Stretch>& stretches) {
  std::vector<double> at;
  for (const Stretch& s : stretches) at.push_back(s.from + s.seconds / 2);
  return at;
}

Series series(const std::string& label, const std::vector<Stretch>& stretches,
              const std::function<double(const Stretch&)>& value) {
  Series out{label, {}};
  for (const Stretch& s : stretches) out.values.push_back(value(s));
  return out;
}

bool any(const Series& s, double least) {
  return std::any_of(s.values.begin(), s.values.end(), [&](double v) { return v > least; });
}

double part_of(const Stretch& s, JobState state) {
  return s.job.all() > 0 ? s.job[state] / s.job.all() : 0.0;
}

/// States that take half a per cent of some stretch.
std::vector<JobState> states_seen(const std::vector<Stretch>& stretches) {
  constexpr double kWorthSaying = 0.005;
  std::vector<JobState> seen;
  for (std::size_t i = 0; i < kJobStates; ++i) {
    const auto state = static_cast<JobState>(i);
    const bool is_seen = std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& s) {
      return part_of(s, state) >= kWorthSaying;
    });
    if (is_seen) seen.push_back(state);
  }
  return seen;
}

/// States of the training processes over time, in per cent.
Json states(const std::vector<Stretch>& stretches) {
  if (stretches.size() < 2) return {};
  Area plot;
  plot.x.label = "s";
  plot.y.label = "% of the time of the training processes";
  plot.at = middles(stretches);
  for (const JobState state : states_seen(stretches)) {
    plot.series.push_back(series(std::string(words_of(state)), stretches,
                                 [&](const Stretch& s) { return kPerCent * part_of(s, state); }));
  }
  return area(plot);
}

Json workers(const std::vector<Stretch>& stretches) {
  const auto of = [&](const char* label, double WorkerSeconds::*part) {
    return series(label, stretches, [part](const Stretch& s) {
      return s.workers.alive > 0 ? kPerCent * s.workers.*part / s.workers.alive : 0.0;
    });
  };
  Area plot;
  plot.x.label = "s";
  plot.y.label = "% of the workers' time";
  plot.at = middles(stretches);
  if (plot.at.size() < 2) return {};
  for (Series one :
       {of("on a core", &WorkerSeconds::cpu), of("waiting for a core", &WorkerSeconds::queued),
        of("for storage", &WorkerSeconds::storage), of("asleep in samples", &WorkerSeconds::sleeps),
        of("for locks", &WorkerSeconds::locked), of("idle", &WorkerSeconds::idle)}) {
    if (any(one, 0.5)) plot.series.push_back(std::move(one));
  }
  return area(plot);
}

/// One figure over time by itself; null where it was never known.
Json course(const std::string& label, const std::vector<Stretch>& stretches,
            const std::function<double(const Stretch&)>& value, bool bytes = false) {
  Area plot;
  plot.bytes = bytes;
  plot.x.label = "s";
  plot.y.label = label;
  plot.at = middles(stretches);
  if (plot.at.size() < 2) return {};
  Series one = series(label, stretches, value);
  if (!any(one, 0)) return {};
  plot.series.push_back(std::move(one));
  return area(plot);
}

/// In the order, and so in the colours, of the states over time.
Json states_in_all(const JobDiagnosis& d, const std::vector<Stretch>& stretches) {
  std::vector<Bar> parts;
  for (const JobState state : states_seen(stretches)) {
    const double part = d.job.all() > 0 ? d.job[state] / d.job.all() : 0;
    parts.push_back({std::string(words_of(state)), shown_percent(part), ""});
  }
  return stack(parts, "the time of the training processes");
}

Json ranks_table(const std::vector<RankTimeline>& ranks) {
  std::vector<std::vector<Cell>> rows;
  for (const RankTimeline& r : ranks) {
    if (rows.size() >= kMostRanks) break;
    const double all = std::max(1e-9, r.job.all());
    const auto of = [&](JobState state) { return Cell{"", shown_percent(r.job[state] / all)}; };
    const double alive = std::max(1e-9, r.workers.alive);
    rows.push_back(
        {{r.rank >= 0 ? fmt::format("rank {}", r.rank) : fmt::format("process {}", r.pid), {}},
         of(JobState::kComputes),
         of(JobState::kWaitsForData),
         of(JobState::kWaitsForDevice),
         of(JobState::kWaitsForCore),
         {"", plain(std::to_string(r.workers_most), r.workers_most)},
         r.workers_most > 0 ? Cell{"", shown_percent(r.workers.making() / alive)} : Cell{"-", {}},
         r.batches > 0 ? Cell{"", plain(layout::number(r.batches), r.batches)} : Cell{"-", {}}});
  }
  if (rows.empty()) return {};
  return table({{"process", false},
                {"computes"},
                {"waits for data"},
                {"waits for device"},
                {"waits for a core"},
                {"workers"},
                {"workers busy"},
                {"batches"}},
               rows);
}

Json gpus_table(const std::vector<GpuTimeline>& gpus) {
  std::vector<std::vector<Cell>> rows;
  for (const GpuTimeline& g : gpus) {
    const auto known = [](double seconds, double value) {
      return seconds > 0 ? Cell{"", shown_percent(value)} : Cell{"-", {}};
    };
    rows.push_back({{fmt::format("{} {}", g.index, g.name), {}},
                    known(g.seconds, g.busy),
                    known(g.power_seconds, g.power),
                    known(g.clock_seconds, g.clock),
                    {"", plain(human_bytes(Bytes(std::llround(g.job_memory))), g.job_memory)},
                    known(g.seconds, g.shared)});
  }
  if (rows.empty()) return {};
  return table({{"GPU", false},
                {"busy"},
                {"power, of its limit"},
                {"clock, of the highest"},
                {"memory of the job"},
                {"shared with others"}},
               rows);
}

}  // namespace

std::string watch_page(const WatchReport& r) {
  const JobDiagnosis& d = r.diagnosis;
  const std::vector<RankTimeline> ranks = r.timeline->ranks();
  const std::vector<Stretch> stretches = joined(r.timeline->stretches());
  const double cores = r.timeline->facts().cores;
  Page page("watch", r.source, "watched for " + human_time(d.seconds * kSecond));
  page.headline(d.healthy            ? Verdict::kGood
                : d.findings.empty() ? Verdict::kNone
                                     : Verdict::kRisky,
                d.verdict, {});
  page.tile("Used by the loop", shown_percent(d.useful), "computes, saves, or uses a device");
  page.tile("Waits for data", shown_percent(d.waits));
  if (d.batches_per_s > 0)
    page.tile("Batches/s", plain(layout::number(d.batches_per_s), d.batches_per_s));
  if (const double host = r.timeline->host_seconds(); host > 0) {
    const double used = r.timeline->job_cpu() / host;
    page.tile("Cores of the job", plain(fmt::format("{:.2g}", used), used),
              fmt::format("of {:g}", cores));
  }
  page.section("What costs time",
               "By the time that each takes. What a cure brings is simulated from what was "
               "observed, with its 90 % band.",
               {finding_table(d.findings)});
  page.section("Who waited, over time", "States of the training processes.",
               {states_in_all(d, stretches), states(stretches)});
  page.section("The loader's workers, over time", "", {workers(stretches)});
  page.section(
      "The machine, over time", "",
      {course("batches/s", stretches, [](const Stretch& s) { return s.batches / s.seconds; }),
       course("GPU busy, %", stretches,
              [](const Stretch& s) { return kPerCent * std::max(0.0, s.gpu_busy); }),
       course(fmt::format("cores used by the job, of {:g}", cores), stretches,
              [](const Stretch& s) { return s.cores_used / s.seconds; }),
       course("cores used by others", stretches,
              [](const Stretch& s) { return s.cores_foreign / s.seconds; }),
       course(
           "memory of all processes", stretches, [](const Stretch& s) { return s.memory; }, true)});
  page.section("Training processes", "", {ranks_table(ranks)});
  page.section("GPUs", "", {gpus_table(r.timeline->gpus())});
  page.footer("Limits", d.notes);
  page.footer("Not seen", r.hidden);
  page.text(watch_text(r));
  return page.html(r.tool_version);
}

}  // namespace stoker
