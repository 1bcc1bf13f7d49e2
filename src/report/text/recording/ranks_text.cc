#include <fmt/format.h>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "report/model/recording_report.h"
#include "report/text/layout.h"
#include "report/text/recording/finding_text.h"

namespace stoker {
namespace {

using layout::wrapped;

std::string seconds_text(double seconds) { return human_time(seconds * kSecond); }

std::string heading(const RanksReport& report) {
  const RanksDiagnosis& d = report.diagnosis;
  std::string text = fmt::format("{}, {}", report.source,
                                 counted(static_cast<std::int64_t>(d.ranks.size()), "rank"));
  if (d.world_size && *d.world_size > static_cast<std::int64_t>(d.ranks.size()))
    text += fmt::format(" of {}", *d.world_size);
  if (d.step_s > 0) text += fmt::format(": a step takes {} (median)", seconds_text(d.step_s));
  return text;
}

/// "computes" of a GPU, "operators" without one.
std::string rank_table(const RanksDiagnosis& d) {
  const std::string each = d.per_step ? " a step" : "";
  std::vector<std::vector<std::string>> rows{
      {"rank", d.per_step ? "step" : "time", d.gpus ? "computes" : "operators", "waits",
       "transfers", "copies", "idles", "last at", "behind" + each, "loses most by"}};
  for (const RankShares& r : d.ranks) {
    rows.push_back({std::to_string(r.rank), seconds_text(r.step_s > 0 ? r.step_s : r.seconds),
                    percent(r.compute), percent(r.waiting), percent(r.transfer), percent(r.copies),
                    percent(r.idle), fmt::format("{} of {}", r.last_at, r.collectives),
                    seconds_text(r.behind_s), own_loss(r)});
  }
  return layout::table(rows, {9}, "  ", {9, 5, 4});
}

std::string kind_table(const RanksDiagnosis& d) {
  if (d.kinds.empty()) return "";
  std::vector<std::vector<std::string>> rows{
      {"collective", "times", "transfer", "waiting", "last most often"}};
  for (const CollectiveTimes& k : d.kinds)
    rows.push_back({printable(k.kind), with_commas(k.count), seconds_text(k.transfer_s),
                    seconds_text(k.waiting_s),
                    fmt::format("rank {} ({})", k.often_last, with_commas(k.of_them))});
  return "\n" + layout::table(rows, {0});
}

}  // namespace

std::string own_loss(const RankShares& rank) {
  for (const JobFinding& f : rank.findings)
    if (f.name != "communication")
      return fmt::format("{} ({})", words_of_finding(f.name), percent(f.lost));
  return "-";
}

std::string ranks_text(const RanksReport& report) {
  const RanksDiagnosis& d = report.diagnosis;
  return wrapped(heading(report), 0) + "\n\n" + wrapped(d.verdict, 0) + "\n\n" + rank_table(d) +
         kind_table(d) + layout::trace_findings_text(d.findings) + layout::notes_text(d.notes);
}

}  // namespace stoker
