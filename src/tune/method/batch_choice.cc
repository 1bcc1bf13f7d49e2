#include "tune/method/batch_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace stoker::tune {
namespace {

/// What a rule goes by; more is better.
std::optional<double> figure_of(const BatchFigure& f, const BatchRule& rule) {
  if (!f.fits) return std::nullopt;
  if (rule.by == BatchBy::kThroughput) return f.samples_per_s;
  if (rule.by == BatchBy::kUtilisation) return f.utilisation;
  if (!f.power || f.samples_per_s.value_or(0) <= 0) return std::nullopt;
  return 1 / cost_of(*f.power, 1 / *f.samples_per_s, rule.energy_weight).value;
}

std::string shown(const BatchFigure& f, const BatchRule& rule) {
  const double value = *figure_of(f, rule);
  if (rule.by == BatchBy::kUtilisation) return fmt::format("{:.1f} % utilisation", 100 * value);
  if (rule.by == BatchBy::kThroughput) return fmt::format("{:.4g} samples/s", value);
  const double seconds = 1 / *f.samples_per_s;
  const std::string energy = energy_of(*f.power, seconds).text() + " a sample";
  if (rule.energy_weight == 1 || f.power->limit <= 0) return energy;
  return energy + " at a cost of " + cost_of(*f.power, seconds, rule.energy_weight).text();
}

/// What the other way to choose would have taken, where that is known and differs.
std::string other_way(const std::vector<BatchFigure>& figures, BatchRule rule, std::size_t chosen) {
  rule.by = rule.by == BatchBy::kThroughput ? BatchBy::kUtilisation : BatchBy::kThroughput;
  double best = 0;
  for (const BatchFigure& f : figures) best = std::max(best, figure_of(f, rule).value_or(0));
  for (std::size_t i = 0; best > 0 && i < figures.size(); ++i) {
    if (figure_of(figures[i], rule).value_or(0) < rule.threshold * best) continue;
    if (i == chosen) return "";
    return fmt::format("; by {} it would be {}",
                       rule.by == BatchBy::kThroughput ? "throughput" : "utilisation",
                       figures[i].value);
  }
  return "";
}

}  // namespace

std::optional<BatchChoice> choose_batch(const std::vector<BatchFigure>& figures,
                                        const BatchRule& rule) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto value = figure_of(figures[i], rule);
    if (value && (!best || *value > *figure_of(figures[*best], rule))) best = i;
  }
  if (!best) return std::nullopt;
  const double most = *figure_of(figures[*best], rule);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto value = figure_of(figures[i], rule);
    if (!value || *value < rule.threshold * most) continue;
    const double percent = 100 * rule.threshold;
    std::string reason =
        i == *best && rule.threshold < 1 && i > 0
            ? fmt::format("has the best, {}, and no smaller one reaches {:.0f} % of it",
                          shown(figures[i], rule), percent)
            : fmt::format("is the first that reaches {:.0f} % of the best: {}, where {} has {}",
                          percent, shown(figures[i], rule), figures[*best].value,
                          shown(figures[*best], rule));
    return BatchChoice{i, reason + other_way(figures, rule, i)};
  }
  return std::nullopt;
}

std::optional<StepFit> fit_steps(const std::vector<BatchFigure>& figures) {
  // Minimises the sum of ((fixed + each * b) / t - 1)^2 with t the measured time of a step.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  std::size_t count = 0;
  for (const BatchFigure& f : figures) {
    if (!f.fits || f.samples_per_s.value_or(0) <= 0) continue;
    const double t = f.batch / *f.samples_per_s, x = 1 / t, y = f.batch / t;
    aa += x * x, ab += x * y, bb += y * y, a += x, b += y;
    ++count;
  }
  const double determinant = aa * bb - ab * ab;
  if (count < 3 || determinant <= 1e-12 * aa * bb) return std::nullopt;
  StepFit fit{(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant, 0};
  if (fit.each_s <= 0) return std::nullopt;
  fit.fixed_s = std::max(fit.fixed_s, 0.0);
  for (const BatchFigure& f : figures) {
    if (!f.fits || f.samples_per_s.value_or(0) <= 0) continue;
    fit.error = std::max(fit.error, std::fabs(fit.samples_per_s(f.batch) / *f.samples_per_s - 1));
  }
  return fit;
}

std::optional<std::string> rest_is_flat(const std::vector<BatchFigure>& measured,
                                        const std::vector<double>& rest, double threshold) {
  constexpr double kGoodFit = 0.05;  // of a throughput: beyond it the fit decides nothing
  const auto fit = fit_steps(measured);
  if (!fit || rest.empty() || fit->error > kGoodFit) return std::nullopt;
  const auto choice = choose_batch(measured, {BatchBy::kThroughput, threshold});
  if (!choice) return std::nullopt;
  const double chosen = *measured[choice->index].samples_per_s;
  const double best = fit->samples_per_s(rest.back()) * (1 + fit->error);
  if (chosen < threshold * best) return std::nullopt;
  const double last = *measured.back().samples_per_s;
  return fmt::format(
      "by the fit of a step's time (within {:.1f} %) even {:.6g} gives at most {:.4g} samples/s, "
      "{:.1f} % above what {} has",
      100 * fit->error, rest.back(), best, 100 * (best / last - 1), measured.back().value);
}

}  // namespace stoker::tune
