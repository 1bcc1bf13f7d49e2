#include <fmt/core.h>

#include <cmath>

#include "base/percent.h"
#include "base/text.h"
#include "report/study/figures.h"
#include "report/study/study_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using study::AxisEffect;
using study::AxisScaling;
using study::Findings;
using study::LevelEffect;
using study::Setting;
using study::StudyView;

constexpr std::size_t kMostPareto = 12, kMostInteractions = 4;

std::string values_text(const StudyView& view, const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < view.axes.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", printable(view.axes[i]),
                        printable(values[i], 40));
  return text;
}

std::string change_text(const AxisEffect& effect, const LevelEffect& level) {
  const auto shown = [&](double value) {
    return effect.ratio ? fmt::format("{:.3g}", std::exp(value)) : fmt::format("{:+.3g}", value);
  };
  std::string text = fmt::format("{} {}{}", printable(level.value, 40), effect.ratio ? "x" : "",
                                 shown(level.change.mean));
  if (level.change.low)
    text += fmt::format(" [{}-{}], {} pairs{}", shown(*level.change.low), shown(*level.change.high),
                        level.change.count, level.change.certain() ? "" : ", no effect shown");
  else text += " (one pair: no interval)";
  return text;
}

std::string best_text(const StudyView& view, const Findings& findings) {
  std::vector<std::vector<std::string>> table;
  for (const study::Best& best : findings.best) {
    table.push_back(
        {printable(best.figure), best.most ? "most" : "least",
         named_figure(best.figure, best.setting.figures[0]),
         values_text(view, best.setting.values) +
             (best.setting.trials > 1 ? fmt::format(" (mean of {})", best.setting.trials) : ""),
         "next " + named_figure(best.figure, best.next)});
  }
  return table.empty() ? "" : "Best\n" + layout::table(table, {0, 1, 3, 4});
}

std::string effects_text(const Findings& findings) {
  std::string text;
  for (const auto& one : findings.metrics) {
    text += fmt::format(
        "\n{}: what each axis does to it (mean over trials that differ in nothing "
        "else, 95 %)\n",
        printable(one.metric));
    for (const AxisEffect& effect : one.effects) {
      std::string levels;
      for (const LevelEffect& level : effect.levels)
        levels += (levels.empty() ? "" : "; ") + change_text(effect, level);
      text += fmt::format("  {} from {}: {}\n", printable(effect.axis), printable(effect.base, 40),
                          levels);
    }
    for (std::size_t i = 0; i < std::min(one.interactions.size(), kMostInteractions); ++i) {
      const auto& found = one.interactions[i];
      std::string pairs;
      for (const auto& [condition, best] : found.best)
        pairs += fmt::format("{}{} at {}", pairs.empty() ? "" : ", ", printable(best, 40),
                             printable(condition, 40));
      text +=
          fmt::format("  the best {} depends on {}: {}; worth up to {}\n", printable(found.axis),
                      printable(found.given), pairs, fine_percent(found.gain));
    }
    if (one.noise)
      text += fmt::format(
          "  noise: repetitions of one setting differ by {} (standard deviation, {} "
          "settings)\n",
          fine_percent(one.noise->relative), one.noise->settings);
  }
  return text;
}

std::string scaling_line(const AxisScaling& s) {
  std::string with;
  for (const auto& [axis, value] : s.others)
    with += fmt::format("{}{}={}", with.empty() ? " with " : " ", printable(axis),
                        printable(value, 40));
  const std::string head = "  " + printable(s.axis) + with + ": ";
  const auto by = s.explained_by();
  if (by == AxisScaling::Law::kBatch)
    return head + fmt::format(
                      "a step takes {} and {} a sample; half of the limit of {} samples/s "
                      "from {} {:.3g} (fit within {})\n",
                      human_time(Nanos(s.batch->fixed_s * 1e9)),
                      human_time(Nanos(s.batch->each_s * 1e9)), layout::number(1 / s.batch->each_s),
                      printable(s.axis), s.batch->half(), fine_percent(s.batch->error));
  if (by == AxisScaling::Law::kCeiling)
    return head + fmt::format(
                      "grows by {} each up to {:.3g}, from where on something else limits "
                      "at {} samples/s; if that were twice as fast, {:.3g} would be needed "
                      "(fit within {})\n",
                      layout::number(s.ceiling->slope), s.ceiling->knee(),
                      layout::number(s.ceiling->limit), 2 * s.ceiling->knee(),
                      fine_percent(s.ceiling->error));
  if (!s.law) return "";
  std::string text = head + fmt::format("{} of the work is done one after the other",
                                        fine_percent(s.law->contention));
  if (std::isfinite(s.law->limit()))
    text +=
        fmt::format(", so at most {:.3g} times the speed of one", s.law->limit() / s.law->first);
  if (std::isfinite(s.law->peak()))
    text += fmt::format(", at {:.3g} {}", s.law->peak(), printable(s.axis));
  return text + fmt::format(" (fit within {})\n", fine_percent(s.law->error));
}

std::string pareto_text(const StudyView& view, const Findings& findings) {
  if (findings.pareto.empty()) return "";
  std::vector<std::vector<std::string>> table{{}};
  for (const std::string& figure : findings.pareto_figures) table[0].push_back(printable(figure));
  table[0].emplace_back("setting");
  for (std::size_t i = 0; i < std::min(findings.pareto.size(), kMostPareto); ++i) {
    const Setting& setting = findings.pareto[i].setting;
    std::vector<std::string> cells;
    for (std::size_t f = 0; f < setting.figures.size(); ++f)
      cells.push_back(named_figure(findings.pareto_figures[f], setting.figures[f]));
    cells.push_back(values_text(view, setting.values));
    table.push_back(std::move(cells));
  }
  std::string text = "\nNo other setting is better in all of these at once\n" +
                     layout::table(table, {findings.pareto_figures.size()});
  if (findings.pareto.size() > kMostPareto)
    text += fmt::format("  and {} more: --json has all\n", findings.pareto.size() - kMostPareto);
  return text;
}

}  // namespace

std::string findings_text(const StudyView& view, const Findings& findings) {
  std::string text = best_text(view, findings) + effects_text(findings);
  std::string lines;
  for (const AxisScaling& scaling : findings.scalings) lines += scaling_line(scaling);
  if (!lines.empty()) text += "\nScaling of samples_per_s\n" + lines;
  text += pareto_text(view, findings);
  for (const std::string& metric : findings.undecided)
    text += fmt::format(
        "\n{0}: whether more is better is not known; say --metric {0}:max or "
        "{0}:min when the study is made\n",
        printable(metric));
  return text.empty() ? "Too few trials have ended to compare settings.\n" : text;
}

}  // namespace stoker
