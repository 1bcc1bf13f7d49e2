#include "plan/comparison.h"

#include <algorithm>

#include "base/setting.h"
#include "base/units.h"

namespace stoker {
namespace {

Figure seconds_a_sample(const Forecast& f) {
  const Figure& rate = f.samples_per_s;
  if (!(rate.low > 0)) return {};
  return {1 / rate.value, 1 / rate.high, 1 / rate.low, rate.basis};
}

Figure cost(const Forecast& f) {
  if (f.run_cost.value > 0) return f.run_cost;
  if (f.epoch_cost.value > 0) return f.epoch_cost;
  // Without prices the GPU-hours decide, as if all cost the same.
  const double price = f.price_per_gpu_hour > 0 ? f.price_per_gpu_hour / kSecondsAnHour : 1;
  return f.price_per_gpu_hour <= 0 && f.gpu_hours_per_epoch.value > 0
             ? f.gpu_hours_per_epoch
             : scaled(seconds_a_sample(f), f.job.gpus * price);
}

Figure energy(const Forecast& f) {
  if (!f.energy) return {};
  if (f.energy->run_kwh.value > 0) return f.energy->run_kwh;
  return f.energy->epoch_kwh.value > 0 ? f.energy->epoch_kwh : f.energy->joules_per_sample;
}

}  // namespace

bool higher_is_better(Objective objective) { return objective == Objective::kThroughput; }

Figure objective_figure(Objective objective, const Forecast& f) {
  switch (objective) {
    case Objective::kThroughput:
      return f.samples_per_s;
    case Objective::kCost:
      return cost(f);
    case Objective::kEpoch:
      return f.epoch_s.value > 0 ? f.epoch_s : seconds_a_sample(f);
    case Objective::kEnergy:
      return energy(f);
  }
  return f.samples_per_s;
}

std::vector<Standing> rank(Objective objective, const std::vector<const Forecast*>& forecasts) {
  const bool high = higher_is_better(objective);
  std::vector<Standing> ranked, unfit;
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    figures.push_back(objective_figure(objective, *forecasts[i]));
    (forecasts[i]->memory.fits ? ranked : unfit).push_back({i, 0, 0});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Standing& a, const Standing& b) {
    const double x = figures[a.index].value, y = figures[b.index].value;
    return high ? x > y : x < y;
  });
  const auto surely_better = [&](const Standing& a, const Standing& b) {
    const Figure &x = figures[a.index], &y = figures[b.index];
    return high ? x.low > y.high : x.high < y.low;
  };
  for (Standing& s : ranked) {
    s.first = 1;
    s.last = ranked.size();
    for (const Standing& other : ranked) {
      if (surely_better(other, s)) ++s.first;
      if (surely_better(s, other)) --s.last;
    }
  }
  ranked.insert(ranked.end(), unfit.begin(), unfit.end());
  return ranked;
}

Status check_objective(Objective objective, const std::vector<const Forecast*>& forecasts) {
  std::string without;
  std::size_t missing = 0;
  for (const Forecast* f : forecasts) {
    const bool lacks = (objective == Objective::kCost && f->price_per_gpu_hour <= 0) ||
                       (objective == Objective::kEnergy && !f->energy);
    if (!lacks) continue;
    ++missing;
    without += (without.empty() ? "" : ", ") + f->gpu_name;
  }
  if (objective == Objective::kEnergy && missing > 0) {
    return fail(ErrorCode::kUsage,
                "energy needs the TDP of " + without +
                    "; give tdp_watts in a machine file (docs/reference/machine-file.md)",
                mark(Setting::kObjective));
  }
  if (objective == Objective::kCost && missing > 0 && missing < forecasts.size()) {
    return fail(ErrorCode::kUsage,
                "there is no price of " + without +
                    "; give one for each GPU: " + mark(Setting::kPrice) + " 1.3,2.5",
                mark(Setting::kObjective));
  }
  return {};
}

}  // namespace stoker
