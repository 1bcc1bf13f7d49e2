#include "report/study/findings_data.h"

#include <cmath>

namespace stoker {
namespace {

using json::Value;
using study::Findings;
using study::Setting;
using study::StudyView;

/// A number that JSON has.
Value finite(double value) { return std::isfinite(value) ? Value(value) : Value(); }

}  // namespace

Value setting_object(const StudyView& view, const Setting& setting,
                     const std::vector<std::string>& figures) {
  Value values = Value::object(), means = Value::object();
  for (std::size_t i = 0; i < view.axes.size(); ++i) values.append(view.axes[i], setting.values[i]);
  for (std::size_t i = 0; i < figures.size(); ++i)
    means.append(figures[i], json::or_null(setting.figures[i]));
  return {{"values", std::move(values)}, {"trials", setting.trials}, {"figures", std::move(means)}};
}

namespace {

Value effect_json(const study::AxisEffect& effect) {
  Value levels = Value::array();
  const auto shown = [&](double change) { return effect.ratio ? std::exp(change) : change; };
  for (const study::LevelEffect& level : effect.levels) {
    const auto& m = level.change;
    levels.push_back({{"value", level.value},
                      {"pairs", m.count},
                      {"change", shown(m.mean)},
                      {"low", m.low ? Value(shown(*m.low)) : Value()},
                      {"high", m.high ? Value(shown(*m.high)) : Value()},
                      {"better", level.better},
                      {"worse", level.worse}});
  }
  return {{"axis", effect.axis},
          {"change_is", effect.ratio ? "ratio" : "difference"},
          {"from", effect.base},
          {"levels", std::move(levels)}};
}

Value interaction_json(const study::Interaction& found) {
  Value best = Value::array();
  for (const auto& [given, value] : found.best) best.push_back({{"given", given}, {"best", value}});
  return {{"axis", found.axis},
          {"given", found.given},
          {"best", std::move(best)},
          {"gain", found.gain}};
}

Value metric_json(const Findings::OfMetric& one) {
  Value effects = Value::array(), interactions = Value::array();
  for (const auto& effect : one.effects) effects.push_back(effect_json(effect));
  for (const auto& found : one.interactions) interactions.push_back(interaction_json(found));
  return {{"metric", one.metric},
          {"effects", std::move(effects)},
          {"interactions", std::move(interactions)},
          {"noise", one.noise ? Value(one.noise->relative) : Value()}};
}

Value scaling_json(const study::AxisScaling& s) {
  Value others = Value::object(), points = Value::array();
  for (const auto& [axis, value] : s.others) others.append(axis, value);
  for (const auto& [n, x] : s.points) points.push_back(Value::array({n, x}));
  constexpr const char* kLaws[] = {"batch", "ceiling", "law"};
  Value root{{"axis", s.axis},
             {"others", std::move(others)},
             {"points", std::move(points)},
             {"explained_by", kLaws[static_cast<std::size_t>(s.explained_by())]},
             {"error", s.error()}};
  if (s.law)
    root["law"] = {{"first", s.law->first},           {"contention", s.law->contention},
                   {"coherence", s.law->coherence},   {"peak", finite(s.law->peak())},
                   {"limit", finite(s.law->limit())}, {"error", s.law->error}};
  if (s.ceiling)
    root["ceiling"] = {{"slope", s.ceiling->slope},
                       {"limit", s.ceiling->limit},
                       {"knee", s.ceiling->knee()},
                       {"error", s.ceiling->error}};
  if (s.batch)
    root["batch"] = {{"fixed_s", s.batch->fixed_s},
                     {"each_s", s.batch->each_s},
                     {"half", s.batch->half()},
                     {"error", s.batch->error}};
  return root;
}

}  // namespace

Value convergence_object(const StudyView& view, const study::Convergence& c) {
  Value approaches = Value::array();
  for (const study::Approach& a : c.approaches) {
    Value values = Value::object();
    for (std::size_t i = 0; i < view.axes.size(); ++i) values.append(view.axes[i], a.values[i]);
    Value at = Value::array();
    for (const auto& value : a.at) at.push_back(json::or_null(value));
    approaches.push_back({{"values", std::move(values)},
                          {"trials", a.trials},
                          {"reached", a.reached},
                          {"step", json::or_null(a.step)},
                          {"seconds", json::or_null(a.seconds)},
                          {"at", std::move(at)},
                          {"best", a.best},
                          {"last", a.last}});
  }
  return {{"metric", c.metric}, {"target", c.target}, {"goal", c.most ? "max" : "min"},
          {"asked", c.asked},   {"times", c.times},   {"settings", std::move(approaches)}};
}

Value findings_object(const StudyView& view, const Findings& findings) {
  Value best = Value::array(), metrics = Value::array(), scalings = Value::array(),
        pareto = Value::array();
  for (const study::Best& one : findings.best) {
    Value entry = setting_object(view, one.setting, {one.figure});
    entry["figure"] = one.figure;
    entry["goal"] = one.most ? "max" : "min";
    entry["next"] = json::or_null(one.next);
    best.push_back(std::move(entry));
  }
  for (const auto& one : findings.metrics) metrics.push_back(metric_json(one));
  for (const auto& one : findings.scalings) scalings.push_back(scaling_json(one));
  for (const auto& point : findings.pareto)
    pareto.push_back(setting_object(view, point.setting, findings.pareto_figures));
  return {{"best", std::move(best)},
          {"metrics", std::move(metrics)},
          {"scaling", std::move(scalings)},
          {"pareto", std::move(pareto)},
          {"undecided", findings.undecided}};
}

}  // namespace stoker
