#include "study/findings/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "study/definition/values.h"
#include "study/findings/effects.h"
#include "study/findings/statistics.h"

namespace stoker::study {
namespace {

using Points = std::vector<std::pair<double, double>>;

std::size_t distinct(const Points& points) {
  std::set<double> numbers;
  for (const auto& [n, x] : points) numbers.insert(n);
  return numbers.size();
}

template <class Law>
double error_of(const Law& at, const Points& points) {
  double squares = 0;
  for (const auto& [n, x] : points) squares += (at(n) / x - 1) * (at(n) / x - 1);
  return std::sqrt(squares / static_cast<double>(points.size()));
}

bool good(const Points& points) {
  constexpr std::size_t kFewest = 3;
  return distinct(points) >= kFewest &&
         std::ranges::all_of(points, [](const auto& p) { return p.first > 0 && p.second > 0; });
}

/// n / X is linear in the law's terms. Each row is weighted by X / n, so that relative errors of
/// throughput count.
std::optional<ScalingLaw> fit_terms(const Points& points, bool coherence) {
  std::vector<std::vector<double>> rows;
  std::vector<double> targets;
  for (const auto& [n, x] : points) {
    const double weight = x / n;
    rows.push_back({weight, weight * (n - 1)});
    if (coherence) rows.back().push_back(weight * n * (n - 1));
    targets.push_back(1);
  }
  const auto c = least_squares(rows, targets);
  if (!c || (*c)[0] <= 0) return std::nullopt;
  ScalingLaw law{1 / (*c)[0], (*c)[1] / (*c)[0], coherence ? (*c)[2] / (*c)[0] : 0};
  law.error = error_of([&](double n) { return law.at(n); }, points);
  return law;
}

enum class Kind : std::uint8_t { kNone, kNumber, kBatch };

Kind kind_of(const std::string& axis) {
  for (const char* name : {"thread", "worker", "core", "gpu", "node", "rank", "process"}) {
    if (axis.find(name) != std::string::npos) return Kind::kNumber;
  }
  return axis.find("batch") != std::string::npos ? Kind::kBatch : Kind::kNone;
}

/// Settings that differ from the best one in this axis alone.
AxisScaling along(const StudyView& view, const std::vector<Setting>& settings, const Setting& best,
                  std::size_t axis) {
  AxisScaling scaling{view.axes[axis], {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < view.axes.size(); ++i) {
    if (i != axis) scaling.others.emplace_back(view.axes[i], best.values[i]);
  }
  for (const Setting& setting : settings) {
    auto values = setting.values;
    const auto number = as_number(values[axis]);
    values[axis] = best.values[axis];
    if (values == best.values && number && *number > 0 && setting.figures[0])
      scaling.points.emplace_back(*number, *setting.figures[0]);
  }
  std::ranges::sort(scaling.points);
  return scaling;
}

}  // namespace

double ScalingLaw::at(double n) const {
  return first * n / (1 + contention * (n - 1) + coherence * n * (n - 1));
}

double ScalingLaw::peak() const {
  if (coherence <= 0) return INFINITY;
  return std::sqrt(std::max(1 - contention, 0.0) / coherence);
}

double ScalingLaw::limit() const {
  if (coherence > 0) return at(std::max(peak(), 1.0));
  return contention > 0 ? first / contention : INFINITY;
}

AxisScaling::Law AxisScaling::explained_by() const {
  if (batch) return Law::kBatch;
  return ceiling && (!law || ceiling->error <= law->error) ? Law::kCeiling : Law::kScaling;
}

double AxisScaling::at(double n) const {
  switch (explained_by()) {
    case Law::kBatch:
      return batch->at(n);
    case Law::kCeiling:
      return std::min(ceiling->slope * n, ceiling->limit);
    case Law::kScaling:
      break;
  }
  return law ? law->at(n) : 0;
}

double AxisScaling::error() const {
  switch (explained_by()) {
    case Law::kBatch:
      return batch->error;
    case Law::kCeiling:
      return ceiling->error;
    case Law::kScaling:
      break;
  }
  return law ? law->error : 0;
}

std::optional<ScalingLaw> fit_scaling(const Points& points) {
  if (!good(points)) return std::nullopt;
  const auto amdahl = fit_terms(points, false);
  // Three numbers decide three terms exactly, whatever the noise: the third needs a fourth.
  if (distinct(points) > 3) {
    const auto full = fit_terms(points, true);
    const bool physical = full && full->coherence > 0 && full->contention >= 0;
    if (physical && (!amdahl || full->error < 0.8 * amdahl->error)) return full;
  }
  if (amdahl && amdahl->contention >= 0) return amdahl;
  if (!amdahl) return std::nullopt;
  // Faster than in proportion: within noise, or a cache; the law has no term for it.
  Points flat = points;
  ScalingLaw law;
  for (const auto& [n, x] : flat) law.first += x / n / static_cast<double>(flat.size());
  law.error = error_of([&](double n) { return law.at(n); }, points);
  return law;
}

std::optional<Ceiling> fit_ceiling(const Points& points) {
  if (!good(points)) return std::nullopt;
  Points sorted = points;
  std::ranges::sort(sorted);
  std::optional<Ceiling> best;
  // The first `split` points rise, the others are flat. At least two are flat, or nothing is known
  // of a ceiling.
  for (std::size_t split = 1; split + 2 <= sorted.size(); ++split) {
    Ceiling c;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (i < split) c.slope += sorted[i].second / sorted[i].first / static_cast<double>(split);
      else c.limit += sorted[i].second / static_cast<double>(sorted.size() - split);
    }
    c.error = error_of([&](double n) { return std::min(c.slope * n, c.limit); }, sorted);
    const bool consistent =
        c.knee() >= sorted[split - 1].first * 0.9 && c.knee() <= sorted[split].first * 1.1;
    if (consistent && (!best || c.error < best->error)) best = c;
  }
  return best;
}

std::optional<BatchLaw> fit_batch(const Points& points) {
  if (!good(points)) return std::nullopt;
  std::vector<std::vector<double>> rows;
  std::vector<double> targets;
  for (const auto& [batch, x] : points) {
    rows.push_back({x / batch, x});
    targets.push_back(1);
  }
  const auto c = least_squares(rows, targets);
  if (!c || (*c)[1] <= 0) return std::nullopt;
  BatchLaw law{std::max((*c)[0], 0.0), (*c)[1]};
  law.error = error_of([&](double batch) { return law.at(batch); }, points);
  return law;
}

std::vector<AxisScaling> scalings(const StudyView& view, const std::string& metric) {
  std::vector<AxisScaling> all;
  const auto settings = settings_of(view, {metric});
  const Setting* best = nullptr;
  for (const Setting& setting : settings) {
    if (setting.figures[0] && (best == nullptr || *setting.figures[0] > *best->figures[0]))
      best = &setting;
  }
  if (best == nullptr) return all;
  for (std::size_t axis = 0; axis < view.axes.size(); ++axis) {
    const Kind kind = kind_of(view.axes[axis]);
    if (kind == Kind::kNone) continue;
    AxisScaling scaling = along(view, settings, *best, axis);
    if (kind == Kind::kBatch) {
      scaling.batch = fit_batch(scaling.points);
    } else {
      scaling.law = fit_scaling(scaling.points);
      scaling.ceiling = fit_ceiling(scaling.points);
    }
    if (scaling.batch || scaling.law || scaling.ceiling) all.push_back(std::move(scaling));
  }
  return all;
}

}  // namespace stoker::study
