#include "tune/method/batch_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace stoker::tune {
namespace {

std::optional<double> figure_of(const BatchFigure& f, BatchBy by) {
  if (!f.fits) return std::nullopt;
  return by == BatchBy::kThroughput ? f.samples_per_s : f.utilisation;
}

std::string shown(double value, BatchBy by) {
  if (by == BatchBy::kUtilisation) return fmt::format("{:.1f} % utilisation", 100 * value);
  return fmt::format("{:.4g} samples/s", value);
}

/// What the other way to choose would have taken, where that is known and differs.
std::string other_way(const std::vector<BatchFigure>& figures, double threshold, BatchBy by,
                      std::size_t chosen) {
  const BatchBy other = by == BatchBy::kThroughput ? BatchBy::kUtilisation : BatchBy::kThroughput;
  double best = 0;
  for (const BatchFigure& f : figures) best = std::max(best, figure_of(f, other).value_or(0));
  for (std::size_t i = 0; best > 0 && i < figures.size(); ++i) {
    if (figure_of(figures[i], other).value_or(0) < threshold * best) continue;
    if (i == chosen) return "";
    return fmt::format("; by {} it would be {}",
                       other == BatchBy::kThroughput ? "throughput" : "utilisation",
                       figures[i].value);
  }
  return "";
}

}  // namespace

std::optional<BatchChoice> choose_batch(const std::vector<BatchFigure>& figures, double threshold,
                                        BatchBy by) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto value = figure_of(figures[i], by);
    if (value && (!best || *value > *figure_of(figures[*best], by))) best = i;
  }
  if (!best) return std::nullopt;
  const double most = *figure_of(figures[*best], by);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto value = figure_of(figures[i], by);
    if (!value || *value < threshold * most) continue;
    std::string reason =
        i == *best && threshold < 1 && i > 0
            ? fmt::format("has the best, {}, and no smaller one reaches {:.0f} % of it",
                          shown(*value, by), 100 * threshold)
            : fmt::format("is the first that reaches {:.0f} % of the best: {}, where {} has {}",
                          100 * threshold, shown(*value, by), figures[*best].value,
                          shown(most, by));
    return BatchChoice{i, reason + other_way(figures, threshold, by, i)};
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
  const auto choice = choose_batch(measured, threshold, BatchBy::kThroughput);
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
