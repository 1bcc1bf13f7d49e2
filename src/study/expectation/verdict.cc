#include "study/expectation/verdict.h"

#include <algorithm>
#include <cmath>

#include "study/findings/selection.h"

namespace stoker::study {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bool inside(const std::map<std::string, double>& figures, const std::string& name, double value) {
  const auto low = figures.find(name + "_low"), high = figures.find(name + "_high");
  return low != figures.end() && high != figures.end() && low->second <= value &&
         value <= high->second;
}

double off(double forecast, double measured) { return std::abs(forecast / measured - 1); }

std::optional<ForecastMatch> match_of(const std::vector<TrialRow>& rows,
                                      const std::string& figure) {
  ForecastMatch match{figure};
  std::vector<double> ratios, errors, corrected, uncorrected;
  for (const TrialRow& row : rows) {
    const auto forecast = row.forecast.find(figure);
    const auto measured = figure_of(row, figure);
    if (row.state != TrialState::kDone || forecast == row.forecast.end() || !measured) continue;
    if (!(*measured > 0) || !(forecast->second > 0)) continue;
    ++match.trials;
    ratios.push_back(*measured / forecast->second);
    errors.push_back(off(forecast->second, *measured));
    match.inside += inside(row.forecast, figure, *measured) ? 1 : 0;
    const auto later = row.corrected.find(figure);
    if (later == row.corrected.end()) continue;
    ++match.corrected;
    corrected.push_back(off(later->second, *measured));
    uncorrected.push_back(errors.back());
    match.corrected_inside += inside(row.corrected, figure, *measured) ? 1 : 0;
  }
  if (match.trials == 0) return std::nullopt;
  match.ratio = median(ratios);
  match.error = median(errors);
  match.corrected_error = median(corrected);
  match.uncorrected_error = median(uncorrected);
  return match;
}

}  // namespace

ForecastVerdict verdict_of(const std::vector<TrialRow>& rows) {
  ForecastVerdict verdict;
  for (const char* figure : {"samples_per_s", "wall_s", "device_peak_bytes"}) {
    if (auto match = match_of(rows, figure)) verdict.matches.push_back(std::move(*match));
  }
  Banded saved;
  for (const TrialRow& row : rows) {
    if (is_final(row.state) && row.wall_s) verdict.spent_s += *row.wall_s;
    if (row.state != TrialState::kNotRun) continue;
    verdict.not_fitting += row.cause == kDoesNotFit ? 1 : 0;
    if (row.cause != kDominated) continue;
    ++verdict.dominated;
    const auto& figures = row.corrected.contains("wall_s") ? row.corrected : row.forecast;
    const auto value = figures.find("wall_s");
    if (value == figures.end()) continue;
    // Errors of what was saved have one sign: they come of one correction.
    saved.value += value->second;
    saved.low += figures.at("wall_s_low");
    saved.high += figures.at("wall_s_high");
  }
  if (saved.value > 0) verdict.saved_s = saved;
  return verdict;
}

}  // namespace stoker::study
