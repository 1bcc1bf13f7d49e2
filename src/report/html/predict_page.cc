#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/html/page_parts.h"
#include "report/model/page_report.h"
#include "report/text/layout.h"
#include "report/text/memory_words.h"
#include "report/text/module_words.h"

namespace stoker {
namespace {

using namespace page;

constexpr std::size_t kMostModules = 40;

Shown bytes_shown(Bytes bytes, const std::string& basis = {}) {
  const auto value = static_cast<double>(bytes.count());
  return {human_bytes(bytes), "", value, value, value, basis};
}

Bytes outside_of(const MemoryForecast& m) {
  Bytes all;
  for (const OutsideMemory& o : m.outside) all += o.bytes;
  return all;
}

/// What lies outside the allocator, then what each role holds, over an iteration.
Json memory_over_a_step(const MemoryForecast& m, const ReportContext& context) {
  const Timeline& timeline = m.outcome.timeline;
  if (timeline.points.size() < 2) return {};
  Area plot;
  plot.bytes = true;
  plot.x.label = "order of execution over one iteration";
  plot.y.label = context.cpu ? "in use" : "in use on the GPU";
  const auto outside = static_cast<double>(outside_of(m).count());
  if (outside > 0) {
    plot.series.push_back({context.cpu ? "the process itself" : "context and libraries",
                           std::vector<double>(timeline.points.size(), outside)});
  }
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    Series series{std::string(name_of(static_cast<BufferRole>(r))), {}};
    bool any = false;
    for (const TimelinePoint& point : timeline.points) {
      series.values.push_back(static_cast<double>(point.by_role[r].count()));
      any = any || point.by_role[r].count() != 0;
    }
    if (any) plot.series.push_back(std::move(series));
  }
  for (const TimelineMark& mark : timeline.marks)
    plot.marks.emplace_back(mark.name, static_cast<double>(mark.first));
  plot.levels.push_back({"usable " + human_bytes(m.usable), static_cast<double>(m.usable.count())});
  plot.levels.push_back(
      {"peak that is held, " + human_bytes(Bytes(std::llround(m.device_peak.value))),
       m.device_peak.value});
  return area(plot);
}

Json parts_at_peak(const Forecast& f, const ReportContext& context) {
  const MemoryForecast& m = f.memory;
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](const std::string& what, Bytes bytes, const std::string& basis) {
    if (bytes.count() == 0) return;
    const double share = static_cast<double>(bytes.count()) / m.device_peak.value;
    rows.push_back({{what, {}},
                    {"", bytes_shown(bytes)},
                    {"", plain(layout::percent(share), share)},
                    {basis, {}}});
  };
  for (std::size_t r = 0; r < kBufferRoles; ++r)
    add(std::string(name_of(static_cast<BufferRole>(r))), m.outcome.live.by_role[r], "simulated");
  add("fragmentation", m.outcome.fragmentation, "reserved less allocated, each at its peak");
  for (const OutsideMemory& o : m.outside) add(o.name, o.bytes, o.basis);
  rows.push_back({{context.cpu ? "resident, all" : "device, all", {}},
                  {"", shown_bytes(m.device_peak)},
                  {"", plain("100 %", 1)},
                  {m.device_peak.basis, {}}});
  return table({{"part", false}, {"bytes"}, {"share"}, {"rests on", false}}, rows);
}

Json activations(const Forecast& f, const Step& step) {
  std::map<std::string, Bytes> by_module;
  for (const ModuleBytes& m : f.memory.outcome.live.activations)
    by_module[module_name(step, m.module)] += m.bytes;
  std::vector<Leaf> leaves;
  for (const auto& [name, bytes] : by_module) leaves.push_back({name, bytes_shown(bytes)});
  return treemap(leaves);
}

Json modules_table(const Forecast& f, const Step& step) {
  const int parts = telling_parts(step, f.memory.outcome.live.by_module);
  std::map<std::string, std::pair<double, double>> modules;  // milliseconds, bytes
  double total = 0;
  for (const auto& [module, time] : f.module_time) {
    modules[shortened(step, module, parts)].first += milliseconds(time);
    total += milliseconds(time);
  }
  for (const ModuleBytes& m : f.memory.outcome.live.by_module)
    modules[shortened(step, m.module, parts)].second += static_cast<double>(m.bytes.count());
  std::vector<std::pair<std::string, std::pair<double, double>>> sorted(modules.begin(),
                                                                        modules.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  if (sorted.size() > kMostModules) sorted.resize(kMostModules);
  std::vector<std::vector<Cell>> rows;
  for (const auto& [name, sums] : sorted) {
    const double share = total > 0 ? sums.first / total : 0;
    rows.push_back({{name, {}},
                    {"", plain(layout::number(sums.first), sums.first)},
                    {"", plain(layout::percent(share), share)},
                    {"", bytes_shown(Bytes(std::llround(sums.second)))}});
  }
  if (rows.empty()) return {};
  return table({{"module", false}, {"ms a step"}, {"share"}, {"memory at the peak"}}, rows);
}

Json roofline_plot(const Roofline& roofline, const std::string& basis) {
  constexpr double kTera = 1e-12;
  Scatter plot;
  plot.x = {"FLOP a byte moved", true};
  plot.y = {"TFLOP/s", true};
  for (const RooflinePoint& p : roofline.points) {
    const double rate = p.flops.count() / seconds(p.time) * kTera;
    const double intensity = p.flops.count() / static_cast<double>(p.bytes.count());
    Point point;
    point.label = p.label;
    point.group = std::string(name_of(p.kernel_class));
    point.x = plain(layout::two_digits(intensity) + " FLOP/byte", intensity);
    point.y = {layout::two_digits(rate) + " TFLOP/s", "", rate, rate, rate, basis};
    point.note = fmt::format("{}, {} a step, {}", name_of(p.phase), human_time(p.time),
                             human_bytes(p.bytes));
    plot.points.push_back(std::move(point));
  }
  // Units that the device runs at one rate share a roof.
  std::map<double, std::string, std::greater<>> roofs;
  for (const auto& [unit, peak] : roofline.peaks) {
    std::string& names = roofs[peak];
    names += (names.empty() ? "" : ", ") + std::string(name_of(unit));
  }
  for (const auto& [peak, names] : roofs) {
    plot.roofs.push_back({fmt::format("{}: {} TFLOP/s", names, layout::number(peak * kTera)),
                          peak * kTera, roofline.bandwidth * kTera});
  }
  return scatter(plot);
}

Json changes(const Prediction& prediction) {
  if (!prediction.advice) return {};
  std::vector<std::vector<Cell>> rows;
  for (const Remedy& r : prediction.advice->remedies.list) {
    rows.push_back({{r.what + (r.estimate ? " (estimate)" : ""), {}},
                    {r.settings, {}},
                    {"", bytes_shown(r.device_peak)},
                    {"", bytes_shown(r.saving)},
                    r.time_change ? Cell{"", plain(fmt::format("{:+.0f} %", 100 * *r.time_change),
                                                   *r.time_change)}
                                  : Cell{"-", {}},
                    {fits_words(r), {}}});
  }
  if (rows.empty()) return {};
  return table(
      {{"what", false}, {"flags", false}, {"device"}, {"saves"}, {"time"}, {"fits", false}}, rows);
}

std::string verdict_line(const Forecast& f) {
  const MemoryForecast& m = f.memory;
  return fmt::format("{}: {} of {}", name_of(m.verdict), layout::gib(m.device_peak),
                     human_bytes(m.usable));
}

}  // namespace

std::string predict_page(const Prediction& prediction, const PredictPicture& picture,
                         const ReportContext& context) {
  const Forecast& f = prediction.forecast;
  const MemoryForecast& m = f.memory;
  Page page("predict", context.model, context.model_line);
  std::vector<std::string> lines;
  if (!m.fits && !m.out_of_memory.empty()) lines.push_back(m.out_of_memory);
  if (m.fits) lines.push_back("Limited by " + f.limiter.what);
  if (prediction.limits && prediction.limits->low > 0)
    lines.push_back(fmt::format("Batch up to {} is safe.", prediction.limits->low));
  page.headline(verdict_of(m.verdict), verdict_line(f), lines);
  if (m.fits) add_tiles(page, f, context);
  page.section("Memory over a step",
               "Allocated bytes by what they are for, in order of execution; equal steps are not "
               "equal times.",
               {memory_over_a_step(m, context)});
  page.section("At the peak", "What is held when most is: " + m.peak_words + ".",
               {parts_at_peak(f, context)});
  if (context.step != nullptr)
    page.section("Activations by module", "What autograd keeps for the backward, at the peak.",
                 {activations(f, *context.step)});
  if (m.fits) {
    page.section("Where a step's time goes", "", step_blocks(f));
    page.section("Operators against the device's roof",
                 "The operators that take longest: what each computes a byte that it moves, and "
                 "the rate that it is forecast to "
                 "reach. What lies on the slope is limited by memory, what lies under the flat by "
                 "arithmetic.",
                 {roofline_plot(picture.roofline, f.time.basis)});
    if (context.step != nullptr)
      page.section("Time and memory by module", "", {modules_table(f, *context.step)});
  }
  page.section("What to change", "Each alone, by simulation.", {changes(prediction)});
  page.section("The loader, batch by batch",
               "The first batches of a first epoch as they are simulated.",
               {loader_block(picture.loader)});
  add_footer(page, context, f.diagnostics);
  page.text(forecast_text(prediction, context));
  return page.html(context.tool_version);
}

}  // namespace stoker
