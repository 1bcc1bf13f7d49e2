// The plan of the input behind a model: steps come from the time model.

#include <map>
#include <memory>
#include <utility>

#include "forecast/settings.h"
#include "plan/search.h"

namespace stoker {
namespace {

/// Steps by batch and pinning, each computed once. A batch that cannot be computed keeps the step
/// of the setting in proportion.
StepOf steps_of(const Knowledge& knowledge, const TriedSetting& setting) {
  auto known = std::make_shared<std::map<std::pair<std::int64_t, bool>, Consumer>>();
  return [known, &knowledge, &setting](const LoaderSettings& loader) {
    const auto key = std::pair(loader.batch, loader.pin);
    if (const auto found = known->find(key); found != known->end()) return found->second;
    Scenario s = setting.scenario;
    set_batch(s, loader.batch);
    set_pinning(s, loader.pin);
    const auto time = step_time_of(s, knowledge);
    Consumer consumer;
    if (time) {
      consumer = consumer_of(s, *time);
      consumer.fixed = fixed_share(s, *time, knowledge);
    } else {
      LoaderCase same = loader_case(setting.scenario, setting.time);
      consumer = at_batch(same, loader.batch);
    }
    (*known)[key] = consumer;
    return consumer;
  };
}

}  // namespace

Result<std::optional<InputPlan>> plan_of_input(const PlanRequest& request,
                                               const Knowledge& knowledge,
                                               const TriedSetting& setting,
                                               const Figure& samples_per_s) {
  const Scenario& s = setting.scenario;
  if (!s.sample.known) return std::optional<InputPlan>{};
  InputPlanRequest input;
  input.now = loader_case(s, setting.time);
  input.chosen = input.now.settings;
  input.chosen_rate = samples_per_s;
  input.now.limits = request.limits_here;
  input.now.folder = request.folder;
  input.now.pipeline = request.pipeline;
  LoaderSettings& now = input.now.settings;
  now = request.loader_now;
  now.batch = s.job.batch;
  now.dataset_samples = s.dataset_samples;
  input.now_known = request.loader_known;
  input.freedom.workers = request.workers;
  input.freedom.prefetch = request.prefetch;
  input.freedom.in_order = true;
  input.freedom.max_workers = request.limits.max_workers;
  input.room = s.machine.host;
  input.step = steps_of(knowledge, setting);
  input.profile = &knowledge.loader;
  input.price_per_gpu_hour = s.price_per_gpu_hour;
  input.gpus = s.job.gpus;
  if (request.thesis) {
    input.thesis =
        ThesisLimits{.dram = s.machine.host.memory,
                     .sample = s.sample.output,
                     .largest_batch = setting.limits.low,
                     .gpus = input.now.host.ranks,
                     .most_workers = std::max(1, static_cast<int>(s.machine.host.cores))};
  }
  auto plan = TRY(make_input_plan(input));
  return std::optional<InputPlan>(std::move(plan));
}

}  // namespace stoker
