#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/setting.h"
#include "base/text.h"
#include "forecast/node_share.h"
#include "forecast/settings.h"
#include "plan/advice.h"
#include "plan/search.h"

namespace stoker {
namespace {

constexpr std::array<std::pair<std::string_view, Objective>, 4> kObjectives{
    {{"throughput", Objective::kThroughput},
     {"cost", Objective::kCost},
     {"epoch", Objective::kEpoch},
     {"energy", Objective::kEnergy}}};

/// More GPUs must bring something: among counts that are equal within kGpuMustBring the fewest win.
const TriedSetting& best_count(Objective objective, const std::vector<TriedSetting>& by_gpus) {
  double best = 0;
  for (const TriedSetting& s : by_gpus) best = std::max(best, score(objective, s));
  const auto chosen = std::find_if(by_gpus.begin(), by_gpus.end(), [&](const TriedSetting& s) {
    return score(objective, s) >= (1 - kGpuMustBring) * best;
  });
  return *chosen;
}

double epoch_cost(const TriedSetting& s) {
  const double samples = static_cast<double>(s.scenario.dataset_samples);
  const double hours = samples / s.throughput.samples_per_s / kSecondsAnHour;
  return hours * s.scenario.job.gpus * s.scenario.price_per_gpu_hour;
}

/// The fastest precision; a later choice must be faster by more than kSameSpeed to displace an
/// earlier one.
const TriedSetting& fastest(const std::vector<TriedSetting>& settings) {
  const TriedSetting* best = &settings.front();
  for (const TriedSetting& s : settings) {
    if (s.throughput.samples_per_s > (1 + kSameSpeed) * best->throughput.samples_per_s) best = &s;
  }
  return *best;
}

/// Some count must give each node as many GPUs.
Status check_nodes(const PlanRequest& request) {
  const int nodes = request.base.job.nodes;
  const auto& counts = request.gpu_counts;
  if (std::any_of(counts.begin(), counts.end(), [&](int n) { return spreads_evenly(n, nodes); }))
    return {};
  std::string list;
  for (const int gpus : counts) list += (list.empty() ? "" : ", ") + std::to_string(gpus);
  return fail(ErrorCode::kBadInput,
              list + " GPUs cannot be spread evenly over " + std::to_string(nodes) +
                  " nodes; give " + mark(Setting::kGpus) + " a multiple of " +
                  std::to_string(nodes),
              mark(Setting::kNodes));
}

/// Input and precision together decide; for the search each count is tried in each precision.
class Planner {
 public:
  Planner(const PlanRequest& request, const Knowledge& knowledge)
      : request_(request), knowledge_(knowledge), search_(request, knowledge) {}

  Result<Plan> run() {
    std::vector<TriedSetting> by_gpus;
    for (const int gpus : request_.gpu_counts) {
      if (!spreads_evenly(gpus, request_.base.job.nodes)) continue;
      auto settings = TRY(all_precisions(gpus));
      if (settings.empty()) continue;
      TriedSetting best = fastest(settings);
      const auto within = TRY(affordable(best));
      if (within) by_gpus.push_back(std::move(best));
      all_[gpus] = std::move(settings);
    }
    if (by_gpus.empty()) {
      return fail(
          ErrorCode::kAnswerIsNo,
          reason_.empty() ? "no number of GPUs stays within the budget" + cheapest() : reason_);
    }
    const TriedSetting& best = best_count(request_.objective, by_gpus);
    return assemble(best, by_gpus);
  }

 private:
  Result<std::vector<TriedSetting>> all_precisions(int gpus) {
    std::vector<TriedSetting> settings;
    for (const PrecisionChoice& choice : request_.choices) {
      auto setting = TRY(search_.best(choice, gpus));
      if (setting) settings.push_back(std::move(*setting));
      else reason_ = search_.why_not();
    }
    return settings;
  }

  Result<bool> affordable(const TriedSetting& s) {
    const double limit = request_.limits.max_epoch_cost;
    if (s.scenario.price_per_gpu_hour <= 0 || s.scenario.dataset_samples <= 0) return true;
    if (limit > 0 && epoch_cost(s) > limit) {
      least_epoch_ = std::min(least_epoch_.value_or(epoch_cost(s)), epoch_cost(s));
      return false;
    }
    if (request_.limits.max_run_cost <= 0) return true;
    const auto f = TRY(forecast(s.scenario, knowledge_));
    if (f.run_cost.value <= request_.limits.max_run_cost) return true;
    least_run_ = std::min(least_run_.value_or(f.run_cost.value), f.run_cost.value);
    return false;
  }

  /// "; the least is 0.21 an epoch": what the budget would have to be.
  [[nodiscard]] std::string cheapest() const {
    // Rounded up to two digits, so that a budget of what is said is enough.
    const auto amount = [](double money) {
      const double unit = std::pow(10, std::floor(std::log10(money)) - 1);
      return fmt::format("{:g}", std::ceil(money / unit) * unit);
    };
    // What a run costs is looked at where the epoch's budget is enough.
    if (least_run_) return "; the least is " + amount(*least_run_) + " a run";
    return least_epoch_ ? "; the least is " + amount(*least_epoch_) + " an epoch" : std::string();
  }

  Result<PlanRow> row(const TriedSetting& s) {
    auto f = TRY(forecast(s.scenario, knowledge_));
    return PlanRow{std::move(f), s.limits};
  }

  Result<Plan> assemble(const TriedSetting& best, const std::vector<TriedSetting>& by_gpus) {
    Plan plan;
    std::copy_if(request_.gpu_counts.begin(), request_.gpu_counts.end(),
                 std::back_inserter(plan.uneven_counts),
                 [&](int gpus) { return !spreads_evenly(gpus, request_.base.job.nodes); });
    for (const TriedSetting& s : by_gpus) {
      auto r = TRY(row(s));
      if (&s == &best) plan.best = r;
      plan.by_gpus.push_back(std::move(r));
    }
    std::vector<TriedSetting> others;
    for (const TriedSetting& s : all_[best.scenario.job.gpus]) {
      if (s.scenario.job.precision == best.scenario.job.precision) continue;
      auto r = TRY(row(s));
      plan.by_precision.push_back(std::move(r));
      others.push_back(s);
    }
    plan.batch_reason = best.reason;
    auto input = TRY(plan_of_input(request_, knowledge_, best, plan.best.forecast.samples_per_s));
    plan.input = std::move(input);
    auto next = TRY(advise(request_, knowledge_, best, by_gpus, others, plan.input));
    plan.next = std::move(next);
    TRY(measure_pinning(best, plan));
    plan.settings_considered = search_.considered();
    return plan;
  }

  Status measure_pinning(const TriedSetting& best, Plan& plan) {
    Scenario other = best.scenario;
    set_pinning(other, !best.scenario.loader.pin);
    const auto time = TRY(step_time_of(other, knowledge_));
    const double ratio = best.throughput.samples_per_s / throughput_of(other, time).samples_per_s;
    plan.pin_gain = best.scenario.loader.pin ? ratio - 1 : 1 / ratio - 1;
    return {};
  }

  const PlanRequest& request_;
  const Knowledge& knowledge_;
  SettingSearch search_;
  std::map<int, std::vector<TriedSetting>> all_;
  std::string reason_;
  std::optional<double> least_epoch_, least_run_;  ///< money, of what is beyond the budget
};

}  // namespace

std::string_view name_of(Objective objective) {
  for (const auto& [name, value] : kObjectives) {
    if (value == objective) return name;
  }
  return "";
}

Result<Objective> parse_objective(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [key, value] : kObjectives) {
    if (key == name) return value;
    names.emplace_back(key);
  }
  return fail(ErrorCode::kUsage,
              "unknown objective \"" + std::string(name) + "\"" + suggestion(name, names) +
                  " (known: throughput, cost, epoch, energy)",
              mark(Setting::kObjective));
}

Result<Plan> make_plan(const PlanRequest& request, const Knowledge& knowledge) {
  if (request.choices.empty() || request.gpu_counts.empty()) {
    return fail(ErrorCode::kUsage, "a plan needs a model and a number of GPUs");
  }
  if (request.limits.max_epoch_cost > 0 &&
      (request.base.price_per_gpu_hour <= 0 || request.base.dataset_samples <= 0)) {
    return fail(ErrorCode::kUsage,
                "a budget needs " + mark(Setting::kPrice) + " and the size of the data set (" +
                    mark(Setting::kData) + " or " + mark(Setting::kSamples) + ")",
                mark(Setting::kBudget));
  }
  if (request.limits.max_run_cost > 0 &&
      (request.base.price_per_gpu_hour <= 0 || request.base.epochs <= 0)) {
    return fail(ErrorCode::kUsage,
                "the budget of a run needs " + mark(Setting::kPrice) + ", " +
                    mark(Setting::kEpochs) + " and the size of the data set (" +
                    mark(Setting::kData) + " or " + mark(Setting::kSamples) + ")",
                mark(Setting::kRunBudget));
  }
  if (request.objective == Objective::kEnergy && !(request.base.machine.device->tdp_watts > 0)) {
    return fail(ErrorCode::kUsage,
                "energy needs the TDP of " + request.base.machine.device->name +
                    "; give tdp_watts in a machine file (docs/reference/machine-file.md)",
                mark(Setting::kObjective));
  }
  TRY(check_nodes(request));
  return Planner(request, knowledge).run();
}

}  // namespace stoker
