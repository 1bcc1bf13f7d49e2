#include "report/study/study_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/text.h"
#include "report/html/study_parts.h"
#include "report/study/figures.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace page;
using study::AxisEffect;
using study::Findings;
using study::StudyView;

constexpr std::size_t kMostPairs = 40, kMostPoints = 150, kMostSettings = 200;
constexpr std::size_t kMostTiles = 4;

/// The best setting by the first of the study's own metrics that has one.
const study::Best* asked_for(const StudyPicture& p) {
  for (const study::Metric& metric : p.view.study.metrics) {
    for (const study::Best& best : p.findings.best) {
      if (best.figure == metric.name && best.setting.figures[0]) return &best;
    }
  }
  return nullptr;
}

/// "Most accuracy: 0.689 with lr=0.01 batch=16".
std::string words(const study::Best& best, const StudyPicture& p) {
  return fmt::format("{} {}: {} with {}", best.most ? "Most" : "Least", best.figure,
                     trial_figure(best.figure, *best.setting.figures[0]).text,
                     setting_words(p.view.axes, best.setting.values));
}

void add_tiles(Page& page, const StudyPicture& p) {
  std::size_t shown = 0;
  for (const study::Best& best : p.findings.best) {
    if (shown++ == kMostTiles) break;
    if (!best.setting.figures[0]) continue;
    page.tile((best.most ? "Most " : "Least ") + best.figure,
              trial_figure(best.figure, *best.setting.figures[0]),
              setting_words(p.view.axes, best.setting.values));
  }
  for (const auto& [state, count] : p.view.counts) {
    std::string name(name_of(state));
    std::ranges::replace(name, '_', ' ');
    if (count > 0) page.tile("Trials " + name, shown_count(count));
  }
}

Json best_table(const StudyView& view, const Findings& findings) {
  std::vector<std::vector<Cell>> rows;
  for (const study::Best& best : findings.best) {
    rows.push_back({{best.figure, {}},
                    {best.most ? "most" : "least", {}},
                    figure_cell(best.figure, best.setting.figures[0]),
                    figure_cell(best.figure, best.next),
                    {setting_words(view.axes, best.setting.values), {}},
                    {"", shown_count(best.setting.trials)}});
  }
  if (rows.empty()) return {};
  return table(
      {{"figure", false}, {"goal", false}, {"best"}, {"runner-up"}, {"setting", false}, {"trials"}},
      rows);
}

/// All settings by the first two figures, those that none beats in all figures joined.
Json pareto_plot(const StudyView& view, const Findings& findings) {
  const auto& figures = findings.pareto_figures;
  if (figures.size() < 2 || findings.pareto.empty()) return {};
  Scatter plot;
  plot.x.label = figures[0];
  plot.y.label = figures[1];
  for (const study::Setting& s : study::settings_of(view, figures)) {
    if (!s.figures[0] || !s.figures[1] || plot.points.size() >= kMostPoints) continue;
    Point point;
    point.label = setting_words(view.axes, s.values);
    point.x = trial_figure(figures[0], *s.figures[0]);
    point.y = trial_figure(figures[1], *s.figures[1]);
    point.front = std::any_of(findings.pareto.begin(), findings.pareto.end(),
                              [&](const auto& o) { return o.setting.values == s.values; });
    for (std::size_t i = 2; i < figures.size(); ++i)
      point.note +=
          (i == 2 ? "" : ", ") + figures[i] + " " + named_figure(figures[i], s.figures[i]);
    plot.points.push_back(std::move(point));
  }
  return scatter(plot);
}

Shown change_shown(const AxisEffect& effect, const study::LevelEffect& level) {
  const auto value = [&](double v) { return effect.ratio ? std::exp(v) : v; };
  const auto text = [&](double v) {
    return effect.ratio ? fmt::format("x{:.3g}", value(v)) : fmt::format("{:+.3g}", v);
  };
  const auto& c = level.change;
  Shown out = plain(text(c.mean), value(c.mean));
  out.basis = fmt::format("{} pairs of trials that differ in nothing else", c.count);
  if (!c.low) return out;
  out.band = text(*c.low) + " to " + text(*c.high);
  out.band_is = "95 % interval of the mean";
  out.low = value(*c.low);
  out.high = value(*c.high);
  return out;
}

/// What each axis does to a metric.
Json effects_plot(const Findings::OfMetric& one) {
  std::vector<Pair> rows;
  bool ratio = true;
  for (const AxisEffect& effect : one.effects) {
    ratio = effect.ratio;
    for (const study::LevelEffect& level : effect.levels) {
      rows.push_back({fmt::format("{} {} -> {}", effect.axis, effect.base, level.value),
                      change_shown(effect, level),
                      {}});
    }
  }
  PairWords words;
  words.band = "mean change, with its 95 % interval";
  words.value = "change";
  words.base = ratio ? 1 : 0;
  Json block = pairs(rows, {ratio ? "times the value at the first" : "difference", ratio}, words);
  if (!block.is_null()) block["title"] = one.metric;
  return block;
}

Json interactions(const Findings& findings) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& one : findings.metrics) {
    for (const study::Interaction& found : one.interactions) {
      std::string best;
      for (const auto& [given, value] : found.best)
        best += (best.empty() ? "" : ", ") + value + " at " + given;
      rows.push_back({{one.metric, {}},
                      {found.axis, {}},
                      {found.given, {}},
                      {best, {}},
                      {"", shown_exact_percent(found.gain)}});
    }
  }
  if (rows.empty()) return {};
  return table({{"metric", false},
                {"best", false},
                {"depends on", false},
                {"best for each", false},
                {"worth up to"}},
               rows);
}

std::vector<std::string> noise(const Findings& findings) {
  std::vector<std::string> list;
  for (const auto& one : findings.metrics) {
    if (one.noise)
      list.push_back(
          fmt::format("{}: repetitions of one setting differ by {:.1f} % (standard deviation, {})",
                      one.metric, 100 * one.noise->relative,
                      counted(static_cast<std::int64_t>(one.noise->settings), "setting")));
  }
  return list;
}

/// Measured throughput by number, with the law that was fitted.
Json scaling_plot(const study::AxisScaling& s) {
  Lines plot;
  plot.x.label = s.axis;
  plot.y.label = "samples/s";
  Line measured{"measured", {}, {}};
  measured.dots = true;
  double least = 0, most = 0;
  for (const auto& [n, x] : s.points) {
    measured.x.push_back(n);
    measured.y.push_back(x);
    least = least == 0 ? n : std::min(least, n);
    most = std::max(most, n);
  }
  std::string law;
  std::function<double(double)> at;
  if (s.batch) {
    law = "fixed time a step and time a sample";
    at = [&](double n) { return s.batch->at(n); };
  } else if (s.ceiling && (!s.law || s.ceiling->error <= s.law->error)) {
    law = "in proportion up to a limit";
    at = [&](double n) { return std::min(s.ceiling->slope * n, s.ceiling->limit); };
  } else if (s.law) {
    law = "universal scalability law";
    at = [&](double n) { return s.law->at(n); };
  }
  if (at) {
    constexpr int kSteps = 40;
    Line fitted{law, {}, {}};
    for (int i = 0; i <= kSteps; ++i) {
      const double n = least + (most - least) * i / kSteps;
      fitted.x.push_back(n);
      fitted.y.push_back(at(n));
    }
    plot.lines.push_back(std::move(fitted));
  }
  plot.lines.push_back(std::move(measured));
  Json block = lines(plot);
  if (block.is_null()) return block;
  std::string others;
  for (const auto& [axis, value] : s.others) others += " " + axis + "=" + value;
  block["title"] = s.axis + (others.empty() ? "" : ", with" + others);
  return block;
}

Json convergence_table(const StudyView& view, const study::Convergence& c) {
  std::vector<Column> columns;
  for (const std::string& axis : view.axes) columns.push_back({axis});
  columns.insert(columns.end(), {{"reached"}, {"epoch or step"}, {"time to it"}});
  for (const double time : c.times) columns.push_back({"after " + seconds_text(time)});
  columns.insert(columns.end(), {{"best"}, {"last"}});
  std::vector<std::vector<Cell>> rows;
  for (const study::Approach& a : c.approaches) {
    if (rows.size() >= kMostSettings) break;
    std::vector<Cell> cells;
    for (const std::string& value : a.values) cells.push_back(axis_cell(value));
    cells.push_back(
        {"", plain(fmt::format("{} of {}", a.reached, a.trials), static_cast<double>(a.reached))});
    cells.push_back(figure_cell("", a.step));
    cells.push_back(figure_cell("wall_s", a.seconds));
    for (const auto& value : a.at) cells.push_back(figure_cell(c.metric, value));
    cells.push_back(figure_cell(c.metric, a.best));
    cells.push_back(figure_cell(c.metric, a.last));
    rows.push_back(std::move(cells));
  }
  if (rows.empty()) return {};
  return table(columns, rows);
}

std::string convergence_words(const study::Convergence& c) {
  return fmt::format("The table: when settings reach {} {}{}.", c.metric,
                     named_figure(c.metric, c.target),
                     c.asked ? "" : ", which half of them do (--target sets another)");
}

Json curves_plot(const StudyView& view, const std::string& metric, const study::Curves& curves,
                 const study::Convergence* convergence, std::size_t points) {
  Lines plot;
  plot.x.label = "seconds";
  plot.y.label = metric;
  plot.lines = curve_lines(view, curves, CurveAxis::kSeconds, points);
  if (convergence != nullptr && !convergence->approaches.empty()) {
    const std::string best = setting_words(view.axes, convergence->approaches.front().values);
    for (Line& line : plot.lines) line.chosen = line.label.ends_with(": " + best);
  }
  plot.ends = {
      {Verdict::kGood, "done"}, {Verdict::kRisky, "ended early"}, {Verdict::kBad, "failed"}};
  return lines(plot);
}

bool is_band_end(const std::string& name) {
  return name.ends_with("_low") || name.ends_with("_high");
}

/// Forecast beside fact for every figure that trials measured and that was forecast.
std::vector<Json> forecasts(const StudyView& view) {
  std::map<std::string, std::vector<Pair>> by_figure;
  for (const study::TrialRow& row : view.rows) {
    if (row.state != study::TrialState::kDone) continue;
    for (const auto& [name, value] : row.forecast) {
      const auto fact = study::figure_of(row, name);
      std::vector<Pair>& rows = by_figure[name];
      if (is_band_end(name) || !fact || rows.size() >= kMostPairs) continue;
      Shown forecast = trial_figure(name, value);
      const auto low = row.forecast.find(name + "_low"), high = row.forecast.find(name + "_high");
      bool within = false;
      if (low != row.forecast.end() && high != row.forecast.end()) {
        forecast.low = low->second;
        forecast.high = high->second;
        forecast.band = named_figure(name, low->second) + " to " + named_figure(name, high->second);
        within = *fact >= low->second && *fact <= high->second;
      }
      rows.push_back({setting_words(view.axes, row.trial.values), forecast,
                      trial_figure(name, *fact), within ? Verdict::kGood : Verdict::kBad});
    }
  }
  std::vector<Json> blocks;
  for (const auto& [name, rows] : by_figure) {
    Json block = pairs(rows, {name.ends_with("_bytes") ? "bytes" : name, true});
    if (block.is_null()) continue;
    block["title"] = name;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Json forecast_errors(const study::ForecastVerdict& verdict) {
  std::vector<std::vector<Cell>> rows;
  for (const study::ForecastMatch& m : verdict.matches) {
    const double trials = std::max<double>(1, static_cast<double>(m.trials));
    rows.push_back(
        {{m.figure, {}},
         {"", shown_count(m.trials)},
         {"", plain(fmt::format("{:.2f}", m.ratio), m.ratio)},
         {"", shown_exact_percent(m.error)},
         {"", shown_exact_percent(static_cast<double>(m.inside) / trials)},
         m.corrected > 0 ? Cell{"", shown_exact_percent(m.corrected_error)} : Cell{"-", {}}});
  }
  if (rows.empty()) return {};
  return table({{"figure", false},
                {"trials"},
                {"measured over forecast"},
                {"median error"},
                {"in band"},
                {"error once corrected by earlier trials"}},
               rows);
}

}  // namespace

std::string study_page(const StudyPicture& p, std::string_view version) {
  const StudyView& view = p.view;
  std::string axes;
  for (const std::string& axis : view.axes) axes += (axes.empty() ? "" : ", ") + axis;
  Page page("study", view.study.name.empty() ? p.store : view.study.name, "what varies: " + axes);
  std::vector<std::string> head;
  if (!view.running_by.empty()) head.push_back("Run by " + view.running_by + ".");
  const study::Best* answer = asked_for(p);
  if (answer != nullptr) head.insert(head.begin(), counts_text(view.counts));
  page.headline(Verdict::kNone, answer == nullptr ? counts_text(view.counts) : words(*answer, p),
                head);
  add_tiles(page, p);
  page.section("Best settings", "Means over repetitions.", {best_table(view, p.findings)});
  if (p.findings.pareto_figures.size() > 1) {
    page.section("What can be had at once",
                 "A point a setting. Those on the line are beaten by none in all of the figures.",
                 {pareto_plot(view, p.findings)});
  }
  std::vector<Json> effects;
  for (const auto& one : p.findings.metrics) effects.push_back(effects_plot(one));
  effects.push_back(interactions(p.findings));
  effects.push_back(sentences(noise(p.findings)));
  page.section("What each setting does",
               "Mean change over trials that differ in nothing else. What crosses the stroke shows "
               "no effect.",
               effects);
  std::vector<Json> scalings;
  for (const auto& one : p.findings.scalings) scalings.push_back(scaling_plot(one));
  page.section("Scaling of throughput", "Measured, and the law that was fitted to it.", scalings);
  for (const auto& [metric, curves] : p.curves) {
    const auto found = std::find_if(p.convergences.begin(), p.convergences.end(),
                                    [&](const auto& c) { return c.metric == metric; });
    const study::Convergence* c = found == p.convergences.end() ? nullptr : &*found;
    page.section(
        "Convergence of " + metric,
        "A line a trial, by its own time." + (c == nullptr ? "" : " " + convergence_words(*c)),
        {curves_plot(view, metric, curves, c, kCurvePoints / p.curves.size()),
         c == nullptr ? Json() : convergence_table(view, *c)});
  }
  std::vector<Json> facts = forecasts(view);
  facts.insert(facts.begin(), forecast_errors(p.verdict));
  page.section("Forecast against fact",
               "The bar is the forecast's 90 % band, the stroke its value, the dot what was "
               "measured; at most the first 40 trials.",
               facts);
  page.section("Trials", trials_words(view), {trials_table(view)});
  std::vector<std::string> undecided;
  for (const std::string& metric : p.findings.undecided)
    undecided.push_back(metric + ": whether more is better is not known (--metric NAME:max)");
  page.footer("Undecided", undecided);
  page.text(study_text(view) + findings_text(view, p.findings));
  return page.html(version);
}

}  // namespace stoker
