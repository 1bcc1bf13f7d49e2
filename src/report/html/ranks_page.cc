#include <fmt/format.h>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "report/html/finding_table.h"
#include "report/html/page.h"
#include "report/model/recording_page.h"

namespace stoker {
namespace {

using namespace page;

Json shares_of(const RanksDiagnosis& d) {
  Area plot;
  plot.x.label = "rank";
  plot.y.label = "share of its time";
  Series computes{d.gpus ? "computes" : "within operators", {}}, waits{"waits for the slowest", {}},
      transfers{"transfers", {}}, copies{"copies", {}}, idles{"idles", {}};
  for (const RankShares& r : d.ranks) {
    plot.at.push_back(static_cast<double>(r.rank));
    computes.values.push_back(r.compute);
    waits.values.push_back(r.waiting);
    transfers.values.push_back(r.transfer + r.other_communication);
    copies.values.push_back(r.copies);
    idles.values.push_back(r.idle);
  }
  plot.series = {computes, waits, transfers, copies, idles};
  return d.ranks.size() > 1 && d.gpus ? area(plot) : Json();
}

Json rank_table(const RanksDiagnosis& d) {
  std::vector<std::vector<Cell>> rows;
  for (const RankShares& r : d.ranks)
    rows.push_back({{"", shown_count(r.rank)},
                    {"", shown_time(r.step_s > 0 ? r.step_s : r.seconds)},
                    {"", shown_percent(r.compute)},
                    {"", shown_percent(r.waiting)},
                    {"", shown_percent(r.transfer)},
                    {"", shown_percent(r.copies)},
                    {"", shown_percent(r.idle)},
                    {"", plain(fmt::format("{} of {}", r.last_at, r.collectives),
                               static_cast<double>(r.last_at))},
                    {"", shown_time(r.behind_s)},
                    {own_loss(r), {}},
                    {r.file, {}}});
  return table({{"rank"},
                {d.per_step ? "step" : "time"},
                {d.gpus ? "computes" : "within operators"},
                {"waits"},
                {"transfers"},
                {"copies"},
                {"idles"},
                {"last at"},
                {d.per_step ? "behind a step" : "behind"},
                {"loses most by", false},
                {"file", false}},
               rows);
}

Json behind_of(const RanksDiagnosis& d) {
  std::vector<Bar> ranks;
  for (const RankShares& r : d.ranks)
    ranks.push_back(
        {fmt::format("rank {}", r.rank), shown_time(r.behind_s),
         fmt::format("last at {} of {}", r.last_at, counted(r.collectives, "collective"))});
  return d.matched > 0 ? bars(ranks, "behind the median of the other ranks, s") : Json();
}

Json kind_table(const RanksDiagnosis& d) {
  std::vector<std::vector<Cell>> rows;
  for (const CollectiveTimes& k : d.kinds)
    rows.push_back({{k.kind, {}},
                    {"", shown_count(k.count)},
                    {"", shown_time(k.transfer_s)},
                    {"", shown_time(k.waiting_s)},
                    {fmt::format("rank {} ({})", k.often_last, with_commas(k.of_them)), {}}});
  if (rows.empty()) return {};
  return table({{"collective", false},
                {"times"},
                {"transfer, each"},
                {"waiting, each"},
                {"last most often", false}},
               rows);
}

Json more_of(const RanksDiagnosis& d) {
  if (!d.straggler) return {};
  std::vector<Bar> causes;
  for (const Straggler::Cause& cause : d.straggler->causes)
    causes.push_back({std::string(words_of_rank_work(cause.work)), shown_time(cause.more_s), ""});
  return causes.empty() ? Json() : bars(causes, "more than the others' median, s");
}

}  // namespace

std::string ranks_page(const RanksReport& report) {
  const RanksDiagnosis& d = report.diagnosis;
  Page page("explain", report.source,
            "profiles of " + counted(static_cast<std::int64_t>(d.ranks.size()), "rank"));
  page.headline(d.findings.empty() ? Verdict::kGood : Verdict::kRisky, d.verdict, {});
  if (d.step_s > 0) page.tile("A step", shown_time(d.step_s), "median of the ranks");
  page.tile(d.gpus ? "The GPUs compute" : "Within operators", shown_percent(d.compute));
  page.tile("Wait for the slowest", shown_percent(d.waiting));
  page.tile("Transfer", shown_percent(d.transfer));
  if (d.straggler)
    page.tile("Slowest", plain(fmt::format("rank {}", d.straggler->rank), 0),
              human_time(d.straggler->behind_s * kSecond) + " behind");
  page.section("What costs time", "By the time that each takes, the mean over ranks.",
               {trace_finding_table(d.findings)});
  page.section("Where each rank's time went", "Waiting and transfers have nothing computed beside.",
               {shares_of(d), rank_table(d)});
  page.section("Who comes late", "To collectives, which begin when the last rank has come.",
               {behind_of(d)});
  if (d.straggler)
    page.section(fmt::format("What rank {} does meanwhile", d.straggler->rank),
                 "Before the collectives that it comes to last.", {more_of(d)});
  page.section("Collectives", "", {kind_table(d)});
  page.footer("Limits", d.notes);
  page.text(ranks_text(report));
  return page.html(report.tool_version);
}

}  // namespace stoker
