#include <cmath>

#include "base/ranges.h"
#include "report/study/figures.h"
#include "report/study/study_report.h"

namespace stoker {
namespace {

using study::Findings;
using study::StudyView;

/// One line: what kind of finding, on which metric and axis, and its figures.
struct Line {
  std::string finding, metric, axis{}, value{}, beside{}, setting{};
  std::optional<double> figure{}, low{}, high{};
  std::optional<std::int64_t> count{};
};

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? shortest(*value) : "";
}

void add(std::string& text, const Line& line) {
  for (const std::string* cell :
       {&line.finding, &line.metric, &line.axis, &line.value, &line.beside, &line.setting})
    text += csv_cell(*cell) + ",";
  text += number(line.figure) + "," + number(line.low) + "," + number(line.high) + "," +
          (line.count ? std::to_string(*line.count) : "") + "\n";
}

std::string setting_of(const StudyView& view, const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < view.axes.size(); ++i)
    text += (i == 0 ? "" : " ") + view.axes[i] + "=" + values[i];
  return text;
}

void add_effects(std::string& text, const Findings::OfMetric& one) {
  for (const auto& effect : one.effects) {
    const auto shown = [&](const std::optional<double>& change) {
      return change && effect.ratio ? std::optional(std::exp(*change)) : change;
    };
    for (const auto& level : effect.levels) {
      Line line{effect.ratio ? "ratio" : "difference", one.metric, effect.axis, level.value,
                effect.base};
      line.figure = shown(level.change.mean);
      line.low = shown(level.change.low);
      line.high = shown(level.change.high);
      line.count = level.change.count;
      add(text, line);
    }
  }
  for (const auto& found : one.interactions) {
    for (const auto& [given, best] : found.best)
      add(text,
          {"best given", one.metric, found.axis, best, found.given + "=" + given, {}, found.gain});
  }
  if (one.noise) add(text, {"noise", one.metric, {}, {}, {}, {}, one.noise->relative});
}

}  // namespace

std::string findings_csv(const StudyView& view, const Findings& findings,
                         const std::vector<study::Convergence>& convergences) {
  std::string text = "finding,metric,axis,value,beside,setting,figure,low,high,count\n";
  for (const auto& best : findings.best)
    add(text, {best.most ? "most" : "least",
               best.figure,
               {},
               {},
               {},
               setting_of(view, best.setting.values),
               best.setting.figures[0],
               {},
               {},
               best.setting.trials});
  for (const auto& one : findings.metrics) add_effects(text, one);
  for (const auto& point : findings.pareto) {
    for (std::size_t f = 0; f < findings.pareto_figures.size(); ++f)
      add(text, {"pareto",
                 findings.pareto_figures[f],
                 {},
                 {},
                 {},
                 setting_of(view, point.setting.values),
                 point.setting.figures[f]});
  }
  for (const auto& c : convergences) {
    for (const auto& a : c.approaches) {
      const std::string setting = setting_of(view, a.values);
      add(text, {"time to target",
                 c.metric,
                 {},
                 shortest(c.target),
                 {},
                 setting,
                 a.seconds,
                 {},
                 {},
                 a.reached});
      add(text, {"step to target",
                 c.metric,
                 {},
                 shortest(c.target),
                 {},
                 setting,
                 a.step,
                 {},
                 {},
                 a.reached});
      for (std::size_t t = 0; t < c.times.size(); ++t)
        add(text, {"after seconds", c.metric, {}, shortest(c.times[t]), {}, setting, a.at[t]});
    }
  }
  return text;
}

}  // namespace stoker
