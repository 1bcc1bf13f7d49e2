#include "statistics.h"

#include <algorithm>
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

void score_bands(const std::vector<Pair>& pairs, Score& result) {
  std::vector<double> inside, widths, scores;
  for (const Pair& p : pairs) {
    if (!p.band) continue;
    const double low = p.predicted * (1 - p.band->below);
    const double high = p.predicted * (1 + p.band->above);
    const double outside = std::max({0.0, low - p.truth, p.truth - high});
    inside.push_back(outside > 0 ? 0 : 1);
    widths.push_back((high - low) / p.truth);
    scores.push_back(((high - low) + 2 / (1 - kCoverage) * outside) / p.truth);
  }
  if (inside.empty()) return;
  result.coverage = kPercent * mean(inside);
  result.width = kPercent * mean(widths);
  result.interval_score = kPercent * mean(scores);
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

std::optional<Band> band_of(const std::vector<Pair>& pairs) {
  if (pairs.empty()) return std::nullopt;
  std::vector<double> errors;
  for (const Pair& p : pairs) errors.push_back(p.truth / p.predicted - 1);
  std::sort(errors.begin(), errors.end());
  const double tail = (1 - kCoverage) / 2;
  const double n = static_cast<double>(errors.size());
  // The k-th smallest of n leaves k / (n + 1) below it on average.
  const auto rank = static_cast<std::size_t>(std::floor(tail * (n + 1)));
  const std::size_t low = rank > 0 ? rank - 1 : 0;
  const std::size_t high = errors.size() - 1 - low;
  return Band{std::max(0.0, -errors[low]), std::max(0.0, errors[high])};
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
