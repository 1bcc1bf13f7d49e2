#include "study/expectation/forecast_guide.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "base/units.h"
#include "study/definition/trials.h"

namespace stoker::study {
namespace {

constexpr const char* kRate = "samples_per_s";
constexpr const char* kTime = "wall_s";
constexpr double kCertain = 0.99;
/// So many trials have to be done before others are left out: fewer say little of how far off
/// forecasts are here.
constexpr std::size_t kLeastLearnt = 3;

/// Parts of names of axes that change how fast data comes and nothing that is learnt.
constexpr std::string_view kLoading[] = {"worker",  "prefetch", "pin",         "persistent",
                                         "thread",  "core",     "cpus",        "in_order",
                                         "storage", "cache",    "non_blocking"};

bool is_of_loading(const std::string& axis) {
  return std::ranges::any_of(
      kLoading, [&](std::string_view part) { return axis.find(part) != std::string::npos; });
}

std::optional<Banded> banded(const std::map<std::string, double>& figures,
                             const std::string& name) {
  const auto value = figures.find(name), low = figures.find(name + "_low"),
             high = figures.find(name + "_high");
  if (value == figures.end() || !(value->second > 0)) return std::nullopt;
  Banded band{value->second, value->second, value->second};
  if (low != figures.end()) band.low = low->second;
  if (high != figures.end()) band.high = high->second;
  return band;
}

void keep(std::map<std::string, double>& figures, const std::string& name, const Banded& band) {
  figures[name] = band.value;
  figures[name + "_low"] = band.low;
  figures[name + "_high"] = band.high;
}

Banded times(Banded band, double factor) {
  return {band.value * factor, band.low * factor, band.high * factor};
}

std::string figure_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string banded_text(const Banded& band, bool time) {
  const auto one = [&](double value) {
    return time ? human_time(Nanos(value * 1e9)) : figure_text(value);
  };
  return one(band.value) + " [" + one(band.low) + "-" + one(band.high) + "]" +
         (time ? "" : " samples/s");
}

}  // namespace

ForecastGuide::ForecastGuide(const Study& study, const std::vector<TrialRow>& rows,
                             GuideOptions options)
    : study_(study), options_(options), axes_(axis_names(study)) {
  const auto learns = [](const std::string& metric) { return metric != kRate && metric != kTime; };
  for (const Metric& metric : study.metrics) learning_ = learning_ || learns(metric.name);
  for (const TrialRow& row : rows) {
    for (const auto& [metric, value] : row.metrics) learning_ = learning_ || learns(metric);
  }
  for (const TrialRow& row : rows) {
    const auto command = command_of(study, row.trial, row.id, "");
    Known known{row.trial.values, row.trial.seed, row.forecast, command ? command->needs.gpus : 0,
                !is_final(row.state)};
    learn(row.id, trials_[row.id] = std::move(known), row.state, row.metrics, row.wall_s);
  }
}

Correction::Prior ForecastGuide::time_of(const Known& trial) const {
  Correction::Prior prior{trial.values, banded(trial.forecast, kTime)};
  if (const auto rate = banded(trial.forecast, kRate)) prior.in_proportion_to = 1 / rate->value;
  return prior;
}

Correction::Prior ForecastGuide::rate_of(const Known& trial) {
  return {trial.values, banded(trial.forecast, kRate)};
}

std::vector<std::string> ForecastGuide::rivals_of(const Known& trial) const {
  if (!learning_) return {};
  std::vector<std::string> key{std::to_string(trial.seed)};
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (!is_of_loading(axes_[i])) key.push_back(trial.values[i]);
  }
  return key;
}

void ForecastGuide::learn(std::int64_t id, Known& trial, TrialState state,
                          const std::map<std::string, double>& metrics,
                          const std::optional<double>& wall_s) {
  if (state != TrialState::kDone) return;
  const auto rate = metrics.find(kRate);
  if (rate != metrics.end()) rate_.learn(rate_of(trial), rate->second);
  if (wall_s) time_.learn(time_of(trial), *wall_s);
  const bool by_rate = rate != metrics.end();
  if (!by_rate && !wall_s) return;
  auto& all = done_[rivals_of(trial)];
  all.push_back({id, by_rate ? rate->second : -*wall_s, trial.gpus});
  // The fastest first; more than a few are of no use.
  constexpr std::size_t kMostRivals = 16;
  std::ranges::sort(all, [](const Done& a, const Done& b) { return a.value > b.value; });
  if (all.size() > kMostRivals) all.pop_back();
}

void ForecastGuide::ended(const TrialRow& row) {
  const auto found = trials_.find(row.id);
  if (found == trials_.end()) return;
  found->second.open = false;
  for (const auto& [metric, value] : row.metrics) {
    if (metric == kRate || metric == kTime || learning_) continue;
    // A metric that nobody announced: what was done so far is no rival of trials that learn else.
    learning_ = true;
    done_.clear();
  }
  learn(row.id, found->second, row.state, row.metrics, row.wall_s);
}

std::optional<std::string> ForecastGuide::leave_out(const TrialRow& row) {
  if (options_.prune == GuideOptions::Prune::kNothing) return std::nullopt;
  const auto found = trials_.find(row.id);
  if (found == trials_.end()) return std::nullopt;
  const Known& trial = found->second;
  const auto rivals = done_.find(rivals_of(trial));
  if (rivals == done_.end()) return std::nullopt;
  for (const Done& rival : rivals->second) {
    const bool by_rate = rival.value > 0;
    const Correction& figure = by_rate ? rate_ : time_;
    if (figure.learnt() < kLeastLearnt || rival.gpus > trial.gpus) continue;
    const Correction::Prior prior = by_rate ? rate_of(trial) : time_of(trial);
    if (!prior.forecast) continue;
    const double slower =
        by_rate ? figure.below(prior, rival.value) : 1 - figure.below(prior, -rival.value);
    if (slower < kCertain) continue;
    const std::string did =
        by_rate ? figure_text(rival.value) : human_time(Nanos(-rival.value * 1e9));
    return "certain to be slower than trial " + std::to_string(rival.trial) +
           " by forecast: " + banded_text(*figure.expect(prior), !by_rate) + ", which did " + did;
  }
  return std::nullopt;
}

std::map<std::string, double> ForecastGuide::expected(const TrialRow& row) {
  std::map<std::string, double> figures;
  const auto found = trials_.find(row.id);
  if (found == trials_.end() || found->second.forecast.empty()) return figures;
  if (rate_.learnt() > 0) {
    if (const auto rate = rate_.expect(rate_of(found->second))) keep(figures, kRate, *rate);
  }
  if (time_.learnt() > 0) {
    if (const auto time = time_.expect(time_of(found->second))) keep(figures, kTime, *time);
  }
  return figures;
}

void ForecastGuide::arrange(std::deque<TrialRow>& waiting) {
  const bool cheapest = options_.order == Order::kCheapest;
  const bool informative = options_.order == Order::kInformative && rate_.learnt() > 0;
  if (!cheapest && !informative) return;
  // With ten trials more in a hundred the order hardly changes, and each costs something to place.
  const std::size_t learnt = time_.learnt() + rate_.learnt();
  if (arranged_with_ > 0 && learnt < arranged_with_ + 1 + arranged_with_ / 8) return;
  arranged_with_ = std::max<std::size_t>(learnt, 1);
  std::map<std::int64_t, double> rank;
  for (const TrialRow& row : waiting) {
    const auto found = trials_.find(row.id);
    if (found == trials_.end()) continue;
    const Known& trial = found->second;
    if (cheapest) {
      const auto prior = time_of(trial);
      const auto time = time_.expect(prior);
      // Where times are not known, those of one study go as the forecast of a sample's.
      rank[row.id] = (time ? time->value : prior.in_proportion_to) * std::max(trial.gpus, 1);
    } else if (const auto rate = rate_.expect(rate_of(trial))) {
      rank[row.id] = -rate->high / rate->low;  // the least certain says most
    }
  }
  std::ranges::stable_sort(
      waiting, [&](const TrialRow& a, const TrialRow& b) { return rank[a.id] < rank[b.id]; });
}

double ForecastGuide::price() const {
  if (study_.budget.price_of_gpu_hour > 0) return study_.budget.price_of_gpu_hour;
  const auto found = study_.forecast.find("price");
  return found == study_.forecast.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

Outlook ForecastGuide::outlook() const {
  Outlook view;
  view.at_a_time = std::max(options_.at_a_time, 1);
  std::vector<Correction::Prior> open;
  // Where there are very many trials, some that are evenly spread stand for all.
  constexpr std::size_t kMostLookedAt = 200;
  for (const auto& [id, trial] : trials_) view.trials += trial.open ? 1 : 0;
  const std::size_t stride = static_cast<std::size_t>(view.trials) / kMostLookedAt + 1;
  std::size_t number = 0;
  double longest = 0, sum = 0, gpu_s = 0, joules = 0;
  bool watts_known = true, known = true;
  for (const auto& [id, trial] : trials_) {
    if (!trial.open || number++ % stride != 0) continue;
    open.push_back(time_of(trial));
    const auto time = time_.expect(open.back());
    known = known && time;
    if (!time) continue;
    longest = std::max(longest, time->value);
    sum += time->value;
    const auto watts = trial.forecast.find("gpu_watts");
    watts_known = watts_known && watts != trial.forecast.end();
    if (watts != trial.forecast.end()) joules += time->value * watts->second;
    const auto gpus = trial.forecast.find("gpus");
    gpu_s += time->value * (gpus != trial.forecast.end() ? gpus->second : trial.gpus);
  }
  if (open.empty() || !known) return view;
  const auto looked_at = time_.sum(open);
  if (!looked_at || sum <= 0) return view;
  view.trial_s =
      times(*looked_at, static_cast<double>(view.trials) / static_cast<double>(open.size()));
  view.elapsed_s = times(*view.trial_s, std::max(1.0 / view.at_a_time, longest / sum));
  constexpr double kJoulesAKwh = 3.6e6;
  if (gpu_s > 0) view.gpu_hours = times(*view.trial_s, gpu_s / sum / kSecondsAnHour);
  if (gpu_s > 0 && price() > 0) view.money = times(*view.gpu_hours, price());
  if (watts_known && joules > 0) view.kwh = times(*view.trial_s, joules / sum / kJoulesAKwh);
  return view;
}

}  // namespace stoker::study
