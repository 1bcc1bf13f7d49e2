#include "diagnosis/timeline/rhythm_track.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stoker {
namespace {

/// Points of a window, and the windows that are kept of each grid.
constexpr std::size_t kWindow = 256, kMostWindows = 256;
/// Points of the shortest period: fewer do not show its form.
constexpr std::size_t kLeastPoints = 4;
/// A window holds at least so many periods.
constexpr std::size_t kLeastPeriods = 4;
/// How like itself a window is one period later: 1 is the same. That of chance stays below.
constexpr double kAlike = 0.5;
/// A shorter lag that does nearly as well as the best one is the period; the best is a multiple.
constexpr double kNearlyAsGood = 0.8;
/// ... and so much less alike it has to be in between.
constexpr double kValley = 0.3;
/// Two periods later it is by this part at least as alike as one period later: steps that vary
/// drift apart.
constexpr double kStillAlike = 0.6;
/// Ups and downs below this part of a core are the grain of the kernel's counting.
constexpr double kLeastSpread = 0.05;
/// Part of the finest grid's ups and downs (as variance) that the averages of a coarser one keep.
constexpr double kKept = 0.3;
/// Seconds; a recording may claim that readings lie nearer than moments of it can be told apart.
constexpr double kLeastGap = 1e-5;
/// A reading that comes after so many usual gaps leaves a hole.
constexpr double kHole = 4;
/// Periods this near to each other are the same.
constexpr double kSame = 1.25;
/// Share of the windows that have to show a rhythm, and of these that have to agree.
constexpr double kOften = 0.5, kAgree = 0.7;
/// No band is narrower, relative: loads elsewhere move a step by that much.
constexpr double kLeastBand = 0.03;

/// How like itself the window is `lag` points later, -1 to 1.
double alike(const std::vector<double>& centred, double variance, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < centred.size(); ++i) sum += centred[i] * centred[i + lag];
  return sum / static_cast<double>(centred.size() - lag) / variance;
}

/// Where the peak around a point of a curve is, in points: a parabola through three of them.
double peak_at(const std::vector<double>& curve, std::size_t i) {
  const double left = curve[i - 1], middle = curve[i], right = curve[i + 1];
  const double bend = left - 2 * middle + right;
  const auto at = static_cast<double>(i);
  return bend < 0 ? at + std::clamp(0.5 * (left - right) / bend, -0.5, 0.5) : at;
}

bool is_peak(const std::vector<double>& curve, std::size_t i) {
  return curve[i] >= curve[i - 1] && curve[i] > curve[i + 1];
}

/// The lag, in points, at which a window repeats; 0: at none. `multiples` is how many periods later
/// it was still like itself, which makes the lag so much surer.
double lag_of(const std::vector<double>& curve, double* multiples) {
  // What is the opposite one point later is faster than the points can show; slower patterns that
  // it seems to have are products of both (aliases).
  if (curve[1] < 0) return 0;
  const std::size_t most = kWindow / kLeastPeriods;
  double best = 0;
  for (std::size_t lag = 2; lag <= most; ++lag) {
    if (is_peak(curve, lag)) best = std::max(best, curve[lag]);
  }
  if (best < kAlike) return 0;
  std::size_t first = 2;
  while (!is_peak(curve, first) || curve[first] < kNearlyAsGood * best) ++first;
  // Steps of two or three points may show at twice their length, too.
  if (first < kLeastPoints) return 0;
  const double valley = *std::min_element(curve.begin(), curve.begin() + static_cast<long>(first));
  if (curve[first] - valley < kValley) return 0;
  // What repeats once repeats again, with the drift of its steps.
  double lag = peak_at(curve, first);
  *multiples = 1;
  for (double k = 2;; ++k) {
    const double near = k * lag, room = std::max(1.0, lag / 4);
    if (near + room + 2 >= static_cast<double>(curve.size())) break;
    auto at = static_cast<std::size_t>(near - room);
    for (std::size_t i = at; static_cast<double>(i) <= near + room; ++i) {
      if (curve[i] > curve[at]) at = i;
    }
    if (!is_peak(curve, at) || curve[at] < kStillAlike * curve[first]) break;
    lag = peak_at(curve, at) / k;
    *multiples = k;
  }
  return *multiples >= 2 ? lag : 0;
}

}  // namespace

void RhythmTrack::restart() {
  for (Level& level : levels_) {
    level.values.clear();
    level.sum = level.spread = 0;
    level.summed = level.spreads = 0;
    level.finer = false;
  }
  any_ = false;
}

void RhythmTrack::add(double at, double counter, double usual_gap) {
  if (usual_gap < kLeastGap || (any_ && at <= at_)) return;
  if (grid_ != usual_gap || (any_ && at - at_ > kHole * usual_gap)) restart();
  grid_ = usual_gap;
  if (!any_) {
    any_ = true;
    next_ = at + grid_;
    before_ = counter;
  }
  while (next_ <= at) {
    const double part = at > at_ ? (next_ - at_) / (at - at_) : 1;
    const double value = counter_ + part * (counter - counter_);
    push(0, (value - before_) / grid_);
    before_ = value;
    next_ += grid_;
  }
  at_ = at;
  counter_ = counter;
}

void RhythmTrack::push(std::size_t level, double value) {
  Level& here = levels_[level];
  here.values.push_back(value);
  if (level + 1 < kLevels) {
    here.sum += value;
    if (++here.summed == kFactor) {
      push(level + 1, here.sum / static_cast<double>(kFactor));
      here.sum = 0;
      here.summed = 0;
    }
  }
  if (here.values.size() == kWindow) judge(level);
}

void RhythmTrack::judge(std::size_t level) {
  Level& here = levels_[level];
  std::vector<double>& x = here.values;
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(kWindow);
  double variance = 0;
  for (double& value : x) value -= mean, variance += value * value / static_cast<double>(kWindow);
  if (level == 0) {
    for (std::size_t coarser = 1; coarser < kLevels; ++coarser)
      levels_[coarser].spread += variance, ++levels_[coarser].spreads;
  }
  const bool kept =
      level == 0 ||
      (here.spreads > 0 && variance >= kKept * here.spread / static_cast<double>(here.spreads));
  Window found;
  if (variance > kLeastSpread * kLeastSpread && kept && !here.finer) {
    std::vector<double> curve;
    for (std::size_t lag = 0; lag <= kWindow / 2; ++lag) curve.push_back(alike(x, variance, lag));
    double multiples = 1;
    const double lag = lag_of(curve, &multiples);
    const double step = grid_ * std::pow(static_cast<double>(kFactor), static_cast<double>(level));
    found = {lag * step, lag > 0 ? 0.5 * step / multiples : 0};
  }
  for (std::size_t coarser = level + 1; coarser < kLevels; ++coarser)
    levels_[coarser].finer = levels_[coarser].finer || found.period > 0;
  // A window that a finer grid has explained is not this one's to judge.
  if (!here.finer) here.windows.push_back(found);
  if (here.windows.size() > kMostWindows) {
    std::size_t half = 0;
    for (std::size_t i = 0; i < here.windows.size(); i += 2) here.windows[half++] = here.windows[i];
    here.windows.resize(half);
  }
  x.clear();
  here.spread = 0;
  here.spreads = 0;
  here.finer = false;
}

std::optional<Rhythm> RhythmTrack::rhythm() const {
  double seconds = static_cast<double>(kWindow) * grid_;
  for (const Level& level : levels_) {
    std::vector<Window> found;
    for (const Window& w : level.windows) {
      if (w.period > 0) found.push_back(w);
    }
    const auto all = static_cast<double>(level.windows.size());
    if (!found.empty() && static_cast<double>(found.size()) >= kOften * all) {
      std::ranges::sort(found, std::less<>(), &Window::period);
      const double middle = found[found.size() / 2].period;
      const auto showed = static_cast<double>(found.size());
      std::erase_if(found, [&](const Window& w) {
        return w.period > kSame * middle || w.period < middle / kSame;
      });
      const auto agree = static_cast<double>(found.size());
      if (agree < kAgree * showed || agree < kOften * all) return std::nullopt;
      Rhythm r;
      r.period = middle;
      r.low = r.high = middle;
      for (const Window& w : found) {
        r.low = std::min(r.low, w.period - w.error);
        r.high = std::max(r.high, w.period + w.error);
      }
      r.low = std::min(r.low, middle * (1 - kLeastBand));
      r.high = std::max(r.high, middle * (1 + kLeastBand));
      r.share = agree / all;
      r.judged = all * seconds;
      return r;
    }
    seconds *= static_cast<double>(kFactor);
  }
  return std::nullopt;
}

}  // namespace stoker
