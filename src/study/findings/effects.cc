#include "study/findings/effects.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "study/definition/study_words.h"

namespace stoker::study {
namespace {

/// Values of a metric by setting; repetitions are told apart by their seed where they have one.
struct Cell {
  std::vector<std::string> values;
  std::int64_t repetition = 0;
  double figure = 0;
};

std::vector<Cell> cells_of(const StudyView& view, const std::string& metric) {
  std::vector<Cell> cells;
  for (const TrialRow& row : view.rows) {
    const auto figure = figure_of(row, metric);
    if (row.state == TrialState::kDone && figure)
      cells.push_back({row.trial.values, row.trial.repetition, *figure});
  }
  return cells;
}

bool all_positive(const std::vector<Cell>& cells) {
  return std::ranges::all_of(cells, [](const Cell& cell) { return cell.figure > 0; });
}

/// Values of an axis in the order in which they first come.
std::vector<std::string> levels_of(const std::vector<Cell>& cells, std::size_t axis) {
  std::vector<std::string> levels;
  for (const Cell& cell : cells) {
    if (std::ranges::find(levels, cell.values[axis]) == levels.end())
      levels.push_back(cell.values[axis]);
  }
  return levels;
}

using Key = std::pair<std::vector<std::string>, std::int64_t>;

/// Everything but the axis.
Key others(const Cell& cell, std::size_t axis) {
  Key key{cell.values, cell.repetition};
  key.first[axis].clear();
  return key;
}

AxisEffect effect_of(const StudyView& view, const std::vector<Cell>& cells, std::size_t axis,
                     const std::string& metric) {
  AxisEffect effect{view.axes[axis], metric, all_positive(cells), {}, {}};
  const auto levels = levels_of(cells, axis);
  effect.base = levels.front();
  const bool more = more_is_better(view.study, metric).value_or(true);
  std::map<Key, double> base;
  for (const Cell& cell : cells) {
    if (cell.values[axis] == effect.base) base[others(cell, axis)] = cell.figure;
  }
  double lowest = 0, highest = 0;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    LevelEffect level{levels[i], {}};
    std::vector<double> changes;
    for (const Cell& cell : cells) {
      if (cell.values[axis] != levels[i]) continue;
      const auto pair = base.find(others(cell, axis));
      if (pair == base.end()) continue;
      const double change =
          effect.ratio ? std::log(cell.figure / pair->second) : cell.figure - pair->second;
      changes.push_back(change);
      if (change != 0) ++((change > 0) == more ? level.better : level.worse);
    }
    if (changes.empty()) continue;
    level.change = mean_interval(changes);
    lowest = std::min(lowest, level.change.mean);
    highest = std::max(highest, level.change.mean);
    effect.levels.push_back(std::move(level));
  }
  effect.spread = highest - lowest;
  return effect;
}

/// Mean of a metric over everything else, by the values of two axes.
using Means = std::map<std::pair<std::string, std::string>, std::pair<double, std::int64_t>>;

Means means_of(const std::vector<Cell>& cells, std::size_t a, std::size_t b) {
  Means means;
  for (const Cell& cell : cells) {
    auto& [sum, count] = means[{cell.values[a], cell.values[b]}];
    sum += cell.figure;
    ++count;
  }
  for (auto& [key, mean] : means) mean.first /= static_cast<double>(mean.second);
  return means;
}

std::optional<Interaction> interaction_of(const StudyView& view, const std::vector<Cell>& cells,
                                          std::size_t axis, std::size_t given, bool more) {
  const Means means = means_of(cells, axis, given);
  const auto levels = levels_of(cells, axis), conditions = levels_of(cells, given);
  if (means.size() != levels.size() * conditions.size()) return std::nullopt;  // not crossed
  const auto better = [&](double x, double y) { return more ? x > y : x < y; };
  std::string overall;
  double overall_sum = 0;
  for (const std::string& level : levels) {
    double sum = 0;
    for (const std::string& condition : conditions) sum += means.at({level, condition}).first;
    if (overall.empty() || better(sum, overall_sum)) overall = level, overall_sum = sum;
  }
  Interaction found{view.axes[axis], view.axes[given], {}};
  bool differs = false;
  for (const std::string& condition : conditions) {
    std::string best = overall;
    for (const std::string& level : levels) {
      if (better(means.at({level, condition}).first, means.at({best, condition}).first))
        best = level;
    }
    const double chosen = means.at({best, condition}).first;
    const double fixed = means.at({overall, condition}).first;
    if (fixed != 0) found.gain = std::max(found.gain, std::abs(chosen / fixed - 1));
    differs = differs || best != overall;
    found.best.emplace_back(condition, best);
  }
  if (!differs) return std::nullopt;
  return found;
}

}  // namespace

std::optional<bool> more_is_better(const Study& study, const std::string& metric) {
  Goal goal = Goal::kUnknown;
  for (const Metric& one : study.metrics) {
    if (one.name == metric) goal = one.goal;
  }
  if (goal == Goal::kUnknown) goal = usual_goal(metric);
  if (goal == Goal::kUnknown) return std::nullopt;
  return goal == Goal::kMost;
}

std::vector<AxisEffect> effects(const StudyView& view, const std::string& metric) {
  std::vector<AxisEffect> all;
  const auto cells = cells_of(view, metric);
  if (cells.empty()) return all;
  for (std::size_t axis = 0; axis < view.axes.size(); ++axis) {
    AxisEffect effect = effect_of(view, cells, axis, metric);
    if (!effect.levels.empty()) all.push_back(std::move(effect));
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.spread > b.spread; });
  return all;
}

std::vector<Interaction> interactions(const StudyView& view, const std::string& metric) {
  std::vector<Interaction> all;
  const auto cells = cells_of(view, metric);
  const auto more = more_is_better(view.study, metric);
  const auto level = noise(view, metric);
  // Without repetitions nothing tells an interaction from noise but its size.
  constexpr double kWithoutRepetitions = 0.05;
  const double least = level ? 2 * level->relative : kWithoutRepetitions;
  if (!more) return all;
  for (std::size_t axis = 0; axis < view.axes.size(); ++axis) {
    for (std::size_t given = 0; given < view.axes.size(); ++given) {
      if (axis == given) continue;
      auto found = interaction_of(view, cells, axis, given, *more);
      if (found && found->gain > least) all.push_back(std::move(*found));
    }
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.gain > b.gain; });
  return all;
}

std::optional<Noise> noise(const StudyView& view, const std::string& metric) {
  std::map<std::vector<std::string>, std::vector<double>> settings;
  for (const Cell& cell : cells_of(view, metric)) settings[cell.values].push_back(cell.figure);
  Noise result;
  double squares = 0;
  for (const auto& [values, figures] : settings) {
    double mean = 0;
    for (const double figure : figures) mean += figure / static_cast<double>(figures.size());
    if (figures.size() < 2 || mean == 0) continue;
    for (const double figure : figures) squares += (figure / mean - 1) * (figure / mean - 1);
    result.degrees += static_cast<std::int64_t>(figures.size()) - 1;
    ++result.settings;
  }
  if (result.degrees == 0) return std::nullopt;
  result.relative = std::sqrt(squares / static_cast<double>(result.degrees));
  return result;
}

std::vector<Setting> settings_of(const StudyView& view, const std::vector<std::string>& figures) {
  std::vector<Setting> all;
  std::map<std::vector<std::string>, std::size_t> places;
  std::vector<std::vector<std::vector<double>>> values;
  for (const TrialRow& row : view.rows) {
    if (row.state != TrialState::kDone) continue;
    const auto [place, is_new] = places.emplace(row.trial.values, all.size());
    if (is_new) {
      all.push_back({row.trial.values, 0, {}});
      values.emplace_back(figures.size());
    }
    ++all[place->second].trials;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (const auto figure = figure_of(row, figures[i]))
        values[place->second][i].push_back(*figure);
    }
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (const auto& one : values[s]) {
      const MeanInterval mean = mean_interval(one);
      all[s].figures.push_back(mean.count > 0 ? std::optional(mean.mean) : std::nullopt);
    }
  }
  return all;
}

}  // namespace stoker::study
