#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
#include "base/text.h"
#include "report/html/finding_table.h"
#include "report/html/page.h"
#include "report/model/recording_page.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace page;

/// Points of the memory's course that are drawn.
constexpr std::size_t kDrawnPoints = 1000;

Json memory_course_of(const ProfileMemory& profile) {
  const KinetoMemory& memory = profile.memory;
  const bool totals = profile.summary.allocated_peak.has_value();
  Area plot;
  plot.bytes = true;
  plot.x.label = "memory event";
  plot.y.label = totals ? "allocated" : "above the beginning of the trace";
  Series allocated{plot.y.label, {}}, reserved{"reserved", {}};
  const std::size_t stretch = memory.events.size() / kDrawnPoints + 1;
  double at = 0, most = 0, held = 0;
  for (std::size_t i = 0; i < memory.events.size(); ++i) {
    const KinetoMemoryEvent& event = memory.events[i];
    at = totals && event.total_allocated ? static_cast<double>(*event.total_allocated)
                                         : at + static_cast<double>(event.bytes);
    most = i % stretch == 0 ? at : std::max(most, at);
    if (event.total_reserved) held = static_cast<double>(*event.total_reserved);
    if ((i + 1) % stretch != 0 && i + 1 != memory.events.size()) continue;
    plot.at.push_back(static_cast<double>(i + 1));
    allocated.values.push_back(std::max(0.0, most));
    reserved.values.push_back(held);
  }
  plot.series = {allocated};
  if (held > 0) plot.overlay = {reserved};
  return plot.at.size() > 1 ? page::area(plot) : Json();
}

void add_memory(const ProfileMemory& profile, Page& page) {
  const KinetoSummary& summary = profile.summary;
  if (summary.allocated_peak && summary.reserved_peak) {
    page.tile("Allocated at most", shown_size(*summary.allocated_peak));
    page.tile("Reserved at most", shown_size(*summary.reserved_peak));
  }
  page.tile("Rises by", shown_size(summary.rise), "above the beginning");
  page.tile("Allocations", shown_count(summary.allocations));
  page.tile("Frees", shown_count(summary.frees));
  page.section("Memory over the trace", "Of each stretch of events the highest.",
               {memory_course_of(profile)});
  page.footer("Simulator", {fmt::format("hands out blocks of the traced size for {} of {} "
                                        "allocations",
                                        with_commas(profile.comparison.same_size),
                                        with_commas(profile.comparison.allocations))});
  page.footer("Missing", {"who held it: a profile's memory events carry no stacks; take a snapshot "
                          "with torch.cuda.memory._dump_snapshot"});
}

Json causes_of(const TraceDiagnosis& d) {
  std::vector<Bar> parts;
  const auto add = [&](std::string words, double share) {
    if (share > 0) parts.push_back({std::move(words), shown_percent(share), ""});
  };
  add(d.device ? "computes" : "within operators", d.compute);
  add("communicates alone", d.communication);
  add("copies alone", d.copies);
  for (std::size_t i = 0; i < kIdleCauses; ++i)
    add(std::string(words_of(static_cast<IdleCause>(i))), d.idle_by[i]);
  return stack(
      parts, d.device ? "the time of the GPU, idle by what it waited for" : "the time of the loop");
}

Json largest_of(const TraceDiagnosis& d) {
  std::vector<std::vector<Cell>> rows;
  for (const TraceShare& s : d.largest)
    rows.push_back({{s.name, {}}, {"", shown_exact_percent(s.share)}, {"", shown_count(s.count)}});
  if (rows.empty()) return {};
  return table({{d.device ? "kernel or copy" : "operator", false}, {"of the time"}, {"times"}},
               rows);
}

Json owners_of(const std::vector<TraceOwner>& owners, bool modules) {
  std::vector<std::vector<Cell>> rows;
  for (const TraceOwner& o : owners) {
    rows.push_back({{o.name, {}},
                    {"", shown_exact_percent(o.share)},
                    {"", shown_exact_percent(o.backward)},
                    {"", shown_count(o.count)}});
    if (modules) rows.back().push_back({"", shown_count(o.modules)});
  }
  if (rows.empty()) return {};
  std::vector<Column> columns{{modules ? "module" : "operator", false},
                              {"of the time"},
                              {"of it backward"},
                              {"kernels and copies"}};
  if (modules) columns.push_back({"modules"});
  return table(columns, rows);
}

void add_time(const TraceDiagnosis& d, Page& page) {
  page.headline(d.findings.empty() ? Verdict::kGood : Verdict::kRisky, d.verdict, {});
  page.tile(d.device ? "The GPU computes" : "Within operators", shown_percent(d.compute));
  if (d.device) page.tile("Idles", shown_percent(d.idle));
  if (d.step_s > 0) page.tile("A step", shown_time(d.step_s), "median of " + with_commas(d.steps));
  page.section("What costs time", "By the time that each takes.",
               {trace_finding_table(d.findings)});
  page.section("Where the time went", "", {causes_of(d)});
  page.section("What takes most", "", {largest_of(d)});
  page.section("Operators by the GPU's time",
               "The innermost operator around the launch of each kernel.",
               {owners_of(d.operators, false)});
  page.section("Modules by the GPU's time",
               "By class of the innermost module; the backward pass counts with its forward.",
               {owners_of(d.modules, true)});
  page.footer("Limits", d.notes);
}

}  // namespace

std::string profile_page(const ProfileReport& report) {
  const bool time = report.time.has_value();
  Page page("explain", report.file,
            time ? "profile of " + human_time(report.time->seconds * kSecond)
                 : fmt::format("memory events of GPU {} in a profile",
                               report.memory ? report.memory->memory.device : 0));
  if (time) add_time(*report.time, page);
  if (report.memory) {
    const KinetoSummary& s = report.memory->summary;
    if (!time)
      page.headline(Verdict::kNone,
                    s.allocated_peak && s.reserved_peak
                        ? fmt::format("At most {} allocated, {} reserved",
                                      human_bytes(*s.allocated_peak), human_bytes(*s.reserved_peak))
                        : "What is allocated in all is not in the trace, only how it changes",
                    {});
    add_memory(*report.memory, page);
  }
  page.text(profile_text(report));
  return page.html(report.tool_version);
}

}  // namespace stoker
