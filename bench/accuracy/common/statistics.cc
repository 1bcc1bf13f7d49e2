#include "accuracy/common/statistics.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numeric>

namespace stoker::accuracy {
namespace {

constexpr double kCoverage = 0.90;  // what a band promises
constexpr double kPercent = 100;
constexpr std::uint64_t kHalvesSeed = 2;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Width of a band over the truth, plus the penalty for missing the truth.
double interval_score_of(const Pair& p, const Band& band) {
  const double low = p.predicted * (1 - band.below), high = p.predicted * (1 + band.above);
  const double outside = std::max({0.0, low - p.truth, p.truth - high});
  return ((high - low) + 2 / (1 - kCoverage) * outside) / p.truth;
}

constexpr std::size_t kWidthsTried = 100;

/// The best of bands [p / (1 + r), p (1 + r)] with one r for all.
double constant_width_score(const std::vector<Pair>& pairs) {
  std::vector<double> ratios;
  for (const Pair& p : pairs)
    ratios.push_back(std::max(p.truth / p.predicted, p.predicted / p.truth) - 1);
  std::sort(ratios.begin(), ratios.end());
  double best = HUGE_VAL;
  for (std::size_t i = 0; i <= kWidthsTried; ++i) {
    const double r = quantile(ratios, static_cast<double>(i) / kWidthsTried);
    double sum = 0;
    for (const Pair& p : pairs) sum += interval_score_of(p, {r / (1 + r), r});
    best = std::min(best, sum / static_cast<double>(pairs.size()));
  }
  return best;
}

void score_bands(const std::vector<Pair>& pairs, Score& result) {
  std::vector<double> inside, widths, scores;
  std::vector<Pair> banded;
  for (const Pair& p : pairs) {
    if (!p.band) continue;
    const double low = p.predicted * (1 - p.band->below);
    const double high = p.predicted * (1 + p.band->above);
    inside.push_back(p.truth < low || p.truth > high ? 0 : 1);
    widths.push_back((high - low) / p.truth);
    scores.push_back(interval_score_of(p, *p.band));
    if (p.predicted > 0 && p.truth > 0) banded.push_back(p);
  }
  if (inside.empty()) return;
  result.coverage = kPercent * mean(inside);
  result.width = kPercent * mean(widths);
  result.interval_score = kPercent * mean(scores);
  if (!banded.empty()) result.constant_width_score = kPercent * constant_width_score(banded);
}

// What a side of the band may grow with, in MiB: the forecast and this much more (or less, where
// the error belongs to what the allocator holds and not to the context). The last is nearly
// constant.
constexpr std::array<double, 6> kOffsets{-1500, 0, 1000, 2000, 4000, 16000};
constexpr double kConstantOffset = 1e9;
constexpr double kContextOffset = kOffsets[0];
/// Chosen, with the offset, on 56 of 132 models of timm-a100; the coverage on all of them.
constexpr double kWorkspaces = 2;
constexpr double kNeedCoverage = 0.92;
constexpr double kLeastScale = 500;  // of a forecast that is nearly all context

double scale_of(double predicted, double offset) {
  return std::max(kLeastScale, predicted + offset);
}

/// The reach to one side (sign) that leaves 5 % of the truths beyond it.
Reach reach_with(const std::vector<Pair>& pairs, int sign, double offset) {
  std::vector<double> errors;
  for (const Pair& p : pairs)
    errors.push_back(sign * (p.truth - p.predicted) / scale_of(p.predicted, offset));
  std::sort(errors.begin(), errors.end());
  const double n = static_cast<double>(errors.size());
  // The k-th largest of n leaves k / (n + 1) beyond it on average.
  const auto rank = static_cast<std::size_t>(std::floor((1 - kCoverage) / 2 * (n + 1)));
  const double error = std::max(0.0, errors[errors.size() - std::max<std::size_t>(rank, 1)]);
  return {error, error * offset, error * kLeastScale};
}

/// This side's part of the interval score.
double score_of(const std::vector<Pair>& pairs, int sign, const Reach& reach) {
  double sum = 0;
  for (const Pair& p : pairs) {
    const double width = reach.at(p.predicted);
    const double beyond = std::max(0.0, sign * (p.truth - p.predicted) - width);
    sum += (width + 2 / (1 - kCoverage) * beyond) / p.truth;
  }
  return sum;
}

Reach best_reach(const std::vector<Pair>& pairs, int sign, BandGrowth growth) {
  if (growth == BandGrowth::kProportional) return reach_with(pairs, sign, 0);
  if (growth == BandGrowth::kConstant) return reach_with(pairs, sign, kConstantOffset);
  Reach best = reach_with(pairs, sign, kOffsets[0]);
  for (const double offset : kOffsets) {
    const Reach reach = reach_with(pairs, sign, offset);
    if (score_of(pairs, sign, reach) < score_of(pairs, sign, best)) best = reach;
  }
  return best;
}

}  // namespace

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Score score(const std::vector<Pair>& pairs) {
  Score result;
  result.rows = static_cast<std::int64_t>(pairs.size());
  if (pairs.empty()) return result;
  std::vector<double> absolute, relative;
  for (const Pair& p : pairs) {
    relative.push_back((p.predicted - p.truth) / p.truth);
    absolute.push_back(std::abs(relative.back()));
  }
  std::sort(absolute.begin(), absolute.end());
  std::sort(relative.begin(), relative.end());
  result.mape = kPercent * mean(absolute);
  result.mdape = kPercent * quantile(absolute, 0.5);
  result.p90 = kPercent * quantile(absolute, 0.9);
  result.bias = kPercent * quantile(relative, 0.5);
  score_bands(pairs, result);
  return result;
}

double Reach::at(double predicted) const { return std::max(least, share * predicted + fixed); }

Band BandForm::at(double predicted) const {
  return {std::min(1.0, below.at(predicted) / predicted), above.at(predicted) / predicted};
}

std::optional<BandForm> band_of(const std::vector<Pair>& pairs, BandGrowth growth) {
  if (pairs.empty()) return std::nullopt;
  return BandForm{best_reach(pairs, -1, growth), best_reach(pairs, 1, growth)};
}

std::optional<NeedForm> need_of(const std::vector<Pair>& pairs) {
  NeedForm form;
  form.workspaces = kWorkspaces;
  std::vector<double> errors;
  for (const Pair& p : pairs) {
    if (p.need > 0)
      errors.push_back((p.need - p.predicted - form.workspaces * p.workspace) /
                       scale_of(p.predicted, kContextOffset));
  }
  if (errors.empty()) return std::nullopt;
  std::sort(errors.begin(), errors.end());
  const auto beyond = static_cast<std::size_t>(
      std::floor((1 - kNeedCoverage) * static_cast<double>(errors.size() + 1)));
  const double error = std::max(0.0, errors[errors.size() - std::max<std::size_t>(beyond, 1)]);
  form.reach = {error, error * kContextOffset, error * kLeastScale};
  return form;
}

std::map<std::string, BandForm> bands_by_kind(const std::vector<Pair>& pairs, BandGrowth growth) {
  std::map<std::string, std::vector<Pair>> kinds;
  std::vector<double> sizes;
  for (const Pair& p : pairs) {
    kinds[p.kind].push_back(p);
    sizes.push_back(p.predicted);
  }
  const auto all = band_of(pairs, growth);
  if (!all) return {};
  std::sort(sizes.begin(), sizes.end());
  const double typical = quantile(sizes, 0.5);
  std::map<std::string, BandForm> bands;
  for (const auto& [kind, rows] : kinds) {
    if (rows.size() < kRowsToNarrow) continue;
    BandForm own = *band_of(rows, growth);
    if (own.below.at(typical) > all->below.at(typical)) own.below = all->below;
    if (own.above.at(typical) > all->above.at(typical)) own.above = all->above;
    bands[kind] = own;
  }
  bands[""] = *all;
  return bands;
}

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a of "seed:text"
  for (const char c : std::to_string(seed) + ":" + std::string(text))
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;  // finaliser of splitmix64
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

std::string family_of(std::string_view model) {
  std::string family;
  for (const char c : model) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
      if (!family.empty()) break;
      continue;
    }
    family += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return family.empty() ? std::string(model) : family;
}

int half_of(std::string_view group) { return static_cast<int>(hash_of(group, kHalvesSeed) & 1); }

}  // namespace stoker::accuracy
