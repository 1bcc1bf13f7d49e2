#include "evidence/input/validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/setting.h"
#include "evidence/error_statistics.h"

namespace stoker {
namespace {

/// Standard deviations of a binomial count that chance is granted before coverage is a failure.
constexpr double kGranted = 2.33;  // one in a hundred
/// Half-width of a band at least: where the step sets the pace the samples' cost does not matter,
/// but timers and wake-ups do (docs/models/input.md).
constexpr double kLeastBand = 0.05;
/// Room in the page cache where files were dropped before: none is read twice.
constexpr Bytes kNoCache{1};
/// Among settings whose forecasts differ by less, the one with the fewest workers is recommended,
/// as the plan's search does.
constexpr double kSameSpeedWorkers = 0.01;

/// What a rows file measures: an epoch without the end of its workers, and the first one of a
/// process unless the workers are persistent.
Nanos measured_epoch_of(const LoaderPoint& point, const LoaderForecast& forecast) {
  const Nanos later = forecast.epoch - forecast.shutdown;
  return point.settings.persistent ? later : later + forecast.first_batch - forecast.epoch_start;
}

/// How far repetitions of one epoch lie apart, relative to the best: no forecast can know better.
double spread_of(const std::vector<const LoaderRepetition*>& good) {
  const auto [best, worst] = std::minmax_element(
      good.begin(), good.end(), [](const auto* a, const auto* b) { return a->epoch < b->epoch; });
  return (*worst)->epoch / (*best)->epoch - 1;
}

ComparedPoint compare(const LoaderScenario& scenario, const LoaderPoint& point,
                      const SampleCost& cost, const std::vector<const LoaderRepetition*>& good,
                      double shared_memory_bar) {
  ComparedPoint out;
  out.scenario = scenario.name;
  out.point = point;
  out.good = static_cast<int>(good.size());
  const LoaderRepetition& best = **std::min_element(
      good.begin(), good.end(), [](const auto* a, const auto* b) { return a->epoch < b->epoch; });
  out.epoch = best.epoch;
  out.interval = best.interval;
  std::vector<double> first;
  std::vector<Bytes> memory;
  for (const LoaderRepetition* r : good) {
    first.push_back(r->first_batch.count());
    memory.push_back(r->shared_memory);
  }
  std::sort(memory.begin(), memory.end());
  out.shared_memory = memory[(memory.size() - 1) / 2];
  out.first_batch = Nanos(median_of(first));
  out.forecast = forecast_of(scenario, point, cost);
  const auto epoch_at = [&](double factor) {
    return measured_epoch_of(point, forecast_of(scenario, point, at_band_end(cost, factor)));
  };
  const Nanos quick = epoch_at(1 - cost.band.below), slow = epoch_at(1 + cost.band.above);
  const double middle = out.forecast_epoch().count();
  const double truth = out.epoch.count();
  const double least = std::max(kLeastBand, spread_of(good));
  out.band = {std::max(least, 1 - quick.count() / middle),
              std::max(least, slow.count() / middle - 1)};
  out.within_band =
      truth >= middle * (1 - out.band.below) && truth <= middle * (1 + out.band.above);
  out.epoch_error = relative_error(middle, truth);
  out.first_batch_error =
      relative_error(out.forecast_first_batch().count(), out.first_batch.count());
  if (point.settings.workers > 0 && out.shared_memory.count() > 0) {
    out.shared_memory_error =
        relative_error(static_cast<double>(out.forecast.shared_memory_used.count()),
                       static_cast<double>(out.shared_memory.count()));
    // For a moment a worker may be at the next batch while the loop still holds the last one.
    const double window = static_cast<double>(point.settings.workers) * point.settings.prefetch;
    const Bytes most = out.forecast.shared_memory;
    out.window_fills = !scenario.batches_differ && out.forecast.shared_memory_used == most;
    out.exceeds_window =
        !scenario.batches_differ && static_cast<double>(out.shared_memory.count()) >
                                        (1 + shared_memory_bar) * (window + 2) / (window + 1) *
                                            static_cast<double>(most.count());
  }
  return out;
}

std::string percent(double share) {
  const auto tenths = std::lround(share * 1000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

/// Why a point is dropped: the most frequent objection.
std::string reason_of(const LoaderPoint& point, std::size_t good, int needed) {
  std::map<std::string, int> counts;
  for (const LoaderRepetition& r : point.repetitions) {
    if (!r.good) ++counts[r.why];
  }
  std::string text = std::to_string(good) + " of " + std::to_string(needed) + " good repetitions";
  if (counts.empty()) return text;
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return text + " (" + most->first + ")";
}

/// Whether the best `needed` epochs lie close enough together to be believed.
bool agrees(const std::vector<const LoaderRepetition*>& good, int needed, double agreement) {
  if (agreement <= 0) return true;
  std::vector<double> epochs;
  for (const LoaderRepetition* r : good) epochs.push_back(r->epoch.count());
  std::sort(epochs.begin(), epochs.end());
  return epochs[static_cast<std::size_t>(needed) - 1] <= epochs.front() * (1 + agreement);
}

/// What the points of one search share: everything but the workers.
auto search_key(const ComparedPoint& p) {
  const LoaderSettings& s = p.point.settings;
  return std::tuple(p.scenario, s.batch, s.prefetch, s.in_order, s.persistent, s.drop_last,
                    static_cast<int>(s.start_method), p.point.step.count(), p.point.cores,
                    p.point.cold);
}

double rate(const ComparedPoint& p, Nanos epoch) {
  return static_cast<double>(p.point.settings.dataset_samples) / epoch.count();
}

std::vector<RecommendationCheck> check_recommendations(const std::vector<ComparedPoint>& points) {
  constexpr std::size_t kFewest = 4;  // fewer settings are no search
  std::map<decltype(search_key(points.front())), std::vector<const ComparedPoint*>> searches;
  for (const ComparedPoint& p : points) searches[search_key(p)].push_back(&p);
  std::vector<RecommendationCheck> checks;
  for (const auto& [key, members] : searches) {
    if (members.size() < kFewest) continue;
    const auto best_by = [&members](auto rate_of) {
      return *std::max_element(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        return rate_of(*a) < rate_of(*b);
      });
    };
    const auto forecast_rate = [](const ComparedPoint& p) { return rate(p, p.forecast_epoch()); };
    const ComparedPoint* chosen = best_by(forecast_rate);
    const double enough = (1 - kSameSpeedWorkers) * forecast_rate(*chosen);
    for (const ComparedPoint* p : members) {
      const bool fewer = p->point.settings.workers < chosen->point.settings.workers;
      if (fewer && forecast_rate(*p) >= enough) chosen = p;
    }
    const ComparedPoint* best = best_by([](const ComparedPoint& p) { return rate(p, p.epoch); });
    checks.push_back({chosen->scenario, chosen->point.label(), best->point.label(),
                      1 - rate(*chosen, chosen->epoch) / rate(*best, best->epoch), members.size()});
  }
  return checks;
}

template <class ErrorOf>
ErrorSummary summarize(const std::vector<const ComparedPoint*>& points, ErrorOf&& error_of) {
  ErrorStatistics errors;
  for (const ComparedPoint* p : points) {
    const std::optional<double> error = error_of(*p);
    if (error) errors.add(*error, p->label(), p->within_band);
  }
  return {errors.count(), errors.mean(), errors.worst(), errors.bias(), errors.worst_label()};
}

void judge(InputValidation& v, const InputBars& bars) {
  const auto require = [&v](bool fine, const std::string& what, double found, double bar) {
    if (!fine) v.failures.push_back(what + " is " + percent(found) + ", to reach: " + percent(bar));
  };
  require(v.epoch.mean <= bars.epoch_mean, "mean error of epochs", v.epoch.mean, bars.epoch_mean);
  require(v.epoch.worst <= bars.epoch_worst, "worst error of an epoch", v.epoch.worst,
          bars.epoch_worst);
  require(v.first_batch.mean <= bars.first_batch_mean, "mean error of first batches",
          v.first_batch.mean, bars.first_batch_mean);
  require(v.shared_memory.worst <= bars.shared_memory_worst,
          "worst error of shared memory where the window fills", v.shared_memory.worst,
          bars.shared_memory_worst);
  for (const ComparedPoint& p : v.points) {
    if (p.exceeds_window)
      v.failures.push_back(p.label() + " used more shared memory than its window can hold");
  }
  for (const RecommendationCheck& c : v.recommendations) {
    require(c.loss <= bars.recommendation, "loss by the recommended workers of " + c.scenario,
            c.loss, bars.recommendation);
  }
  const auto n = static_cast<double>(v.points.size());
  const double spread =
      kGranted * std::sqrt(bars.band_coverage * (1 - bars.band_coverage) / std::max(1.0, n));
  require(v.coverage >= bars.band_coverage - spread, "share of epochs within their 90 % band",
          v.coverage, bars.band_coverage);
}

}  // namespace

Nanos ComparedPoint::forecast_epoch() const { return measured_epoch_of(point, forecast); }

Nanos ComparedPoint::forecast_first_batch() const {
  return point.settings.persistent ? forecast.epoch_start : forecast.first_batch;
}

LoaderForecast forecast_of(const LoaderScenario& scenario, const LoaderPoint& point,
                           const SampleCost& scenario_cost) {
  SampleCost cost = scenario_cost;
  HostShare host;
  host.cores = point.cores;
  if (point.cold) {
    host.memory = kNoCache;
    cost.cold_seek_ms = scenario.cold.seek_ms;
    cost.cold_bandwidth = scenario.cold.bandwidth;
    cost.cold_speedup = scenario.cold.speedup;
    cost.dataset_samples = point.settings.dataset_samples;
  }
  LoaderSettings settings = point.settings;
  if (scenario.cut) {  // the epoch itself is as long as the data set
    settings.stop_after = std::max<std::int64_t>(1, settings.dataset_samples / settings.batch);
    settings.dataset_samples = 0;
  }
  return simulate_loader(settings, cost, host,
                         {.step = point.step, .consumption = Consumption::kBlocking});
}

Result<InputValidation> validate_input(const LoaderRuns& runs, const LoaderProfile& profile,
                                       const InputBars& bars) {
  InputValidation out;
  for (const LoaderScenario& scenario : runs.scenarios) {
    const SampleCost cost = sample_cost_from_pipeline(scenario.probe, profile);
    for (const LoaderPoint& point : scenario.points) {
      std::vector<const LoaderRepetition*> good;
      for (const LoaderRepetition& r : point.repetitions) {
        if (r.good) good.push_back(&r);
      }
      if (static_cast<int>(good.size()) < runs.needed) {
        out.dropped.push_back(
            {scenario.name + ": " + point.label(), reason_of(point, good.size(), runs.needed)});
        continue;
      }
      if (!agrees(good, runs.needed, runs.agreement)) {
        out.dropped.push_back({scenario.name + ": " + point.label(),
                               "no " + std::to_string(runs.needed) + " repetitions agree within " +
                                   percent(runs.agreement)});
        continue;
      }
      if (point.cold && !scenario.cold.measured) {
        out.dropped.push_back(
            {scenario.name + ": " + point.label(), "cold reads were not measured at calibration"});
        continue;
      }
      out.points.push_back(compare(scenario, point, cost, good, bars.shared_memory_worst));
    }
  }
  if (out.points.empty()) {
    return fail(ErrorCode::kBadInput,
                "no measured point is left to compare with (" + std::to_string(out.dropped.size()) +
                    " dropped); measure on a quieter machine or with a larger " +
                    mark(Setting::kBudget));
  }
  std::vector<const ComparedPoint*> all;
  std::vector<std::pair<std::string, std::vector<const ComparedPoint*>>> groups;
  for (const ComparedPoint& p : out.points) {
    all.push_back(&p);
    if (groups.empty() || groups.back().first != p.scenario) groups.push_back({p.scenario, {}});
    groups.back().second.push_back(&p);
    out.coverage += p.within_band ? 1 : 0;
  }
  out.coverage /= static_cast<double>(out.points.size());
  const auto epoch_error = [](const ComparedPoint& p) { return std::optional(p.epoch_error); };
  out.epoch = summarize(all, epoch_error);
  out.first_batch =
      summarize(all, [](const ComparedPoint& p) { return std::optional(p.first_batch_error); });
  const auto memory_error = [&all](bool full) {
    return summarize(all, [full](const ComparedPoint& p) {
      return p.window_fills == full ? p.shared_memory_error : std::nullopt;
    });
  };
  out.shared_memory = memory_error(true);
  out.shared_memory_elsewhere = memory_error(false);
  for (const auto& [name, members] : groups)
    out.by_scenario.emplace_back(name, summarize(members, epoch_error));
  out.recommendations = check_recommendations(out.points);
  judge(out, bars);
  return out;
}

}  // namespace stoker
