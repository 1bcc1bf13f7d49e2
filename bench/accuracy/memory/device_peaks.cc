#include "accuracy/memory/device_peaks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "forecast/memory_forecast.h"
#include "lower/loop/lower.h"
#include "memory/replay/replay.h"

namespace stoker::accuracy {

double fitted_offset(const std::vector<Pair>& pairs) {
  std::vector<std::pair<double, double>> gaps;  // gap, weight
  double total = 0;
  for (const Pair& p : pairs) {
    gaps.emplace_back(p.truth - p.predicted, 1 / p.truth);
    total += gaps.back().second;
  }
  std::sort(gaps.begin(), gaps.end());
  double sum = 0;
  for (const auto& [gap, weight] : gaps) {
    sum += weight;
    if (sum >= total / 2) return gap;
  }
  return gaps.empty() ? 0 : gaps.back().first;
}

std::vector<Pair> with_offset_of_others(std::vector<Pair> pairs, double offset) {
  for (Pair& p : pairs) p.predicted -= offset;
  return cross_fit(pairs, fitted_offset,
                   [](Pair p, double fitted) { return p.predicted += fitted, p; });
}

DevicePeaks::DevicePeaks(Bench& bench, std::string name, std::string what) : bench_(bench) {
  measure_.name = std::move(name);
  measure_.what = std::move(what);
}

void DevicePeaks::refuse(std::string row, std::string reason) {
  measure_.unserved.push_back({std::move(row), std::move(reason)});
}

bool DevicePeaks::add(const std::string& group, const std::string& label, const Step& step,
                      const Job& job, const Machine& machine, double truth_mib) {
  const auto program = lower(step, job, machine);
  if (!program) return refuse(label, program.error().text()), false;
  const std::string kind = memory_error_case(*program, job, machine);
  const Figure peak = forecast_memory(*program, machine, {}, bench_.knowledge, kind).device_peak;
  measure_.pairs.push_back({group, label, truth_mib, peak.value / kMebibyte,
                            Band{1 - peak.low / peak.value, peak.high / peak.value - 1}});
  outside_.push_back(mebibytes(outside_bytes(*program)));
  return true;
}

void DevicePeaks::add_rival(const std::string& name, const std::vector<double>& figures) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (std::isfinite(figures[i]))
      pairs.push_back({"", "", measure_.pairs[i].truth, figures[i], {}});
  }
  if (pairs.empty()) return;
  const Score s = score(pairs);
  measure_.shares.emplace_back(name + "_mdape", s.mdape);
  if (!measure_.rival || s.mdape < measure_.rival->mdape)
    measure_.rival = Rival{name, s.rows, s.mape, s.mdape, s.p90};
}

Measure DevicePeaks::finish() && {
  measure_.score = score(measure_.pairs);
  if (measure_.pairs.empty()) return std::move(measure_);
  std::vector<Pair> bare = measure_.pairs;
  for (std::size_t i = 0; i < bare.size(); ++i) bare[i].predicted -= outside_[i];
  measure_.cross_fitted = score(with_offset_of_others(bare, 0));
  measure_.shares.emplace_back("fitted_context_mib", fitted_offset(bare));
  measure_.shares.emplace_back("shipped_context_mib", outside_.front());
  return std::move(measure_);
}

}  // namespace stoker::accuracy
