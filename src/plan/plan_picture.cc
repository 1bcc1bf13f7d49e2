#include "plan/plan_picture.h"

#include <algorithm>
#include <set>

#include "forecast/node_share.h"
#include "forecast/settings.h"

namespace stoker {
namespace {

/// A chart has room for so many batches, and small ones say little.
constexpr std::size_t kMostBatches = 11;
/// Numbers of GPUs that a chart has room for.
constexpr std::size_t kMostCounts = 8;

std::vector<std::int64_t> batches_of(const PlanRequest& request, const Plan& plan) {
  if (request.batch) return {*request.batch};
  std::set<std::int64_t> own;
  std::int64_t largest = 1;
  const auto add = [&](const PlanRow& row) {
    own.insert(row.forecast.job.batch);
    largest = std::max({largest, row.batch_limits.value, row.batch_limits.first_failing});
  };
  for (const PlanRow& row : plan.by_gpus) add(row);
  for (const PlanRow& row : plan.by_precision) add(row);
  std::int64_t least = 1;
  for (const PrecisionChoice& choice : request.choices)
    least = std::max(least, choice.step->dimensions[0].minimum);
  std::vector<std::int64_t> powers;
  for (std::int64_t b = 1; b < 2 * largest; b *= 2) {
    if (b >= least) powers.push_back(b);
  }
  const std::size_t room = kMostBatches - std::min(kMostBatches - 1, own.size());
  if (powers.size() > room)
    powers.erase(powers.begin(), powers.end() - static_cast<std::ptrdiff_t>(room));
  own.insert(powers.begin(), powers.end());
  return {own.begin(), own.end()};
}

/// At most kMostCounts of the plan's, the largest and the best among them.
std::vector<const PlanRow*> counts_of(const Plan& plan) {
  std::vector<const PlanRow*> rows;
  const std::size_t n = plan.by_gpus.size();
  const std::size_t every = (n + kMostCounts - 1) / kMostCounts;
  for (std::size_t i = 0; i < n; ++i) {
    const PlanRow& row = plan.by_gpus[i];
    if (i % every == 0 || i + 1 == n || row.forecast.job.gpus == plan.best.forecast.job.gpus)
      rows.push_back(&row);
  }
  return rows;
}

Scenario scenario_of(const PlanRequest& request, const PrecisionChoice& choice, const PlanRow& row,
                     std::int64_t batch) {
  Scenario s = request.base;
  set_precision(s, *choice.step, choice.precision);
  s.job.gpus = row.forecast.job.gpus;
  s.machine.gpu_count = gpus_per_node(s.job.gpus, s.job.nodes);
  s.loader = row.forecast.loader;
  set_pinning(s, row.forecast.loader.pin);
  set_batch(s, batch);
  return s;
}

GridSetting setting_of(const Forecast& f) {
  GridSetting out;
  out.precision = f.job.precision;
  out.gpus = f.job.gpus;
  out.batch = f.job.batch;
  out.workers = f.loader.workers;
  out.input_known = f.input.known;
  out.verdict = f.memory.verdict;
  out.device_peak = f.memory.device_peak;
  if (out.verdict == MemoryVerdictWord::kDoesNotFit) return out;
  out.samples_per_s = f.samples_per_s;
  out.step_ms = f.step_ms;
  out.gpu_busy = f.gpu_busy;
  out.epoch_s = f.epoch_s;
  out.epoch_cost = f.epoch_cost;
  out.gpu_hours_per_epoch = f.gpu_hours_per_epoch;
  out.limiter = f.limiter;
  return out;
}

Result<std::vector<GridSetting>> grid_of(const PlanRequest& request, const Knowledge& knowledge,
                                         const Plan& plan) {
  const std::vector<std::int64_t> batches = batches_of(request, plan);
  const Job& best = plan.best.forecast.job;
  std::vector<GridSetting> grid;
  for (const PrecisionChoice& choice : request.choices) {
    for (const PlanRow* row : counts_of(plan)) {
      bool failed = false;
      for (const std::int64_t batch : batches) {
        if (failed) {  // a larger one takes more memory still
          GridSetting beyond;
          beyond.precision = choice.precision;
          beyond.gpus = row->forecast.job.gpus;
          beyond.batch = batch;
          grid.push_back(std::move(beyond));
          continue;
        }
        const auto f = TRY(forecast(scenario_of(request, choice, *row, batch), knowledge));
        GridSetting setting = setting_of(f);
        setting.chosen = setting.precision == best.precision && setting.gpus == best.gpus &&
                         setting.batch == best.batch;
        failed = setting.verdict == MemoryVerdictWord::kDoesNotFit;
        grid.push_back(std::move(setting));
      }
    }
  }
  return grid;
}

LoaderTimeline loader_of_best(const PlanRequest& request, const Plan& plan) {
  const Forecast& best = plan.best.forecast;
  for (const PrecisionChoice& choice : request.choices) {
    if (choice.precision != best.job.precision) continue;
    const Scenario s = scenario_of(request, choice, plan.best, best.job.batch);
    return loader_timeline(loader_of(s), s.sample, host_share(s), consumer_of(s, best.time));
  }
  return {};
}

}  // namespace

Result<PlanPicture> picture_of(const PlanRequest& request, const Knowledge& knowledge,
                               const Plan& plan) {
  auto grid = TRY(grid_of(request, knowledge, plan));
  return PlanPicture{std::move(grid), loader_of_best(request, plan)};
}

}  // namespace stoker
