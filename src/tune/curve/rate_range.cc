#include "tune/curve/rate_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/files.h"
#include "base/text.h"

namespace stoker::tune {
namespace {

struct OneRun {
  double steepest = 0, least = 0;
  std::string reason{};  ///< why it says nothing
};

/// The points up to where the loss is no number any more or far above the best.
RangeRun usable(const RangeRun& run) {
  RangeRun good;
  for (const RangePoint& point : run) {
    if (!(point.rate > 0) || !std::isfinite(point.rate)) continue;
    if (!std::isfinite(point.loss)) break;
    good.push_back(point);
  }
  std::ranges::stable_sort(good, {}, &RangePoint::rate);
  return good;
}

std::vector<double> smoothed(const RangeRun& run, double weight) {
  std::vector<double> values;
  double average = 0, sum = 0;
  for (const RangePoint& point : run) {
    average = weight * average + (1 - weight) * point.loss;
    sum = weight * sum + (1 - weight);
    values.push_back(average / sum);
  }
  return values;
}

/// Noise of the loss from step to step around its trend.
double noise(const RangeRun& run, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 1; i + 1 < count; ++i) {
    const double bend = run[i - 1].loss - 2 * run[i].loss + run[i + 1].loss;
    sum += bend * bend;
  }
  return std::sqrt(sum / (6 * static_cast<double>(std::max<std::size_t>(count, 3) - 2)));
}

/// Variance of the average of `count` points, as a part of the variance of one: of weights b^0 to
/// b^(count - 1) that are made to add up to 1.
double share_of_noise(double b, std::size_t count) {
  const double rest = std::pow(b, static_cast<double>(count));
  return (1 - b) / (1 + b) * (1 + rest) / (1 - rest);
}

OneRun look_at(const RangeRun& given, const RangeOptions& o) {
  const RangeRun run = usable(given);
  if (run.size() < o.fewest)
    return {0, 0, fmt::format("{} finite points came, and {} are needed", run.size(), o.fewest)};
  const std::vector<double> loss = smoothed(run, o.smoothing);
  std::size_t least = 0, count = loss.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (loss[i] < loss[least]) least = i;
    if (i >= o.fewest && loss[i] > loss[least] + (o.diverged - 1) * std::fabs(loss[least]))
      count = i;
  }
  // The first averages are of few points, and as noisy as these: a fall counts by their errors.
  const double error = noise(run, std::min(std::max(least + 2, o.fewest), run.size()));
  bool falls = false;
  for (std::size_t i = 0; i < least; ++i) {
    const double both = share_of_noise(o.smoothing, i + 1) + share_of_noise(o.smoothing, least + 1);
    falls = falls || loss[i] - loss[least] > o.clear * std::sqrt(both) * error;
  }
  if (!falls) return {0, 0, "the loss never falls by more than its noise"};
  // Slope by the logarithm of the rate over a window: single steps are noise.
  const std::size_t window = std::max<std::size_t>(count / 20, 1);
  OneRun result;
  double steepest = 0;
  for (std::size_t i = 0; i + 2 * window <= least; ++i) {
    const double distance = std::log(run[i + 2 * window].rate / run[i].rate);
    if (distance <= 0) continue;
    const double slope = (loss[i + 2 * window] - loss[i]) / distance;
    if (slope >= steepest) continue;
    steepest = slope;
    result.steepest = run[i + window].rate;
  }
  result.least = run[least].rate;
  if (result.steepest == 0) result.reason = "the loss falls in its last steps alone";
  return result;
}

}  // namespace

RangeResult range_test(const std::vector<RangeRun>& runs, const RangeOptions& options) {
  RangeResult result;
  double steepest = 0, least = 0, lowest = INFINITY, highest = 0;
  for (const RangeRun& run : runs) {
    const OneRun one = look_at(run, options);
    if (!one.reason.empty()) {
      result.reason = one.reason;
      continue;
    }
    ++result.runs;
    steepest += std::log(one.steepest);
    least += std::log(one.least);
    lowest = std::min(lowest, one.steepest);
    highest = std::max(highest, one.steepest);
  }
  if (result.runs == 0 || 2 * result.runs <= runs.size()) {
    if (runs.empty()) result.reason = "there are no points";
    else if (result.runs > 0)
      result.reason = fmt::format("{} of {} runs say nothing: {}", runs.size() - result.runs,
                                  runs.size(), result.reason);
    return result;
  }
  const auto n = static_cast<double>(result.runs);
  result.steepest = std::exp(steepest / n);
  result.least = std::exp(least / n);
  result.spread = highest / lowest;
  const double tenth = result.least / 10;
  result.low = std::min(result.steepest, tenth);
  result.high = std::max(result.steepest, tenth);
  result.reason.clear();
  return result;
}

Result<std::vector<RangeRun>> read_range_runs(const std::string& path) {
  constexpr Bytes kLargest{256LL << 20};
  const std::string text = TRY(read_file(path, kLargest));
  std::map<std::string, RangeRun> runs;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos ||
        (number == 1 && line.starts_with("run")))
      continue;
    const auto cells = split(line, ',');
    char* end = nullptr;
    if (cells.size() != 3)
      return fail(ErrorCode::kBadInput, "is no \"run,rate,loss\"",
                  path + " line " + std::to_string(number));
    const double rate = std::strtod(cells[1].c_str(), &end);
    if (end == cells[1].c_str())
      return fail(ErrorCode::kBadInput, "\"" + cells[1] + "\" is no rate",
                  path + " line " + std::to_string(number));
    const double loss = std::strtod(cells[2].c_str(), &end);
    if (end == cells[2].c_str())
      return fail(ErrorCode::kBadInput, "\"" + cells[2] + "\" is no loss",
                  path + " line " + std::to_string(number));
    runs[cells[0]].push_back({rate, loss});
  }
  std::vector<RangeRun> all;
  for (auto& [run, points] : runs) all.push_back(std::move(points));
  return all;
}

}  // namespace stoker::tune
