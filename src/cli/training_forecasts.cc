#include "cli/training_forecasts.h"

#include <utility>

#include "cli/exact_settings.h"
#include "device/resolve.h"
#include "device/this_host.h"
#include "lower/common/lower.h"

namespace stoker::cli {
namespace {

bool takes_momentum(const std::string& optimizer) {
  return optimizer == "sgd" || optimizer == "rmsprop";
}

/// The flags that say what was measured. `cpu`: the machine is one.
RunOptions options_of(const MeasuredRun& run, const std::string& machine, bool cpu) {
  RunOptions o;
  o.model = run.model;
  o.gpu = machine;
  o.batch = run.batch;
  o.precision = run.precision;
  o.job.optimizer = run.optimizer;
  if (takes_momentum(run.optimizer)) o.job.momentum = run.momentum;
  if (!run.optimizer.empty()) o.job.weight_decay = run.weight_decay;
  for (const auto& [name, size] : run.dimensions)
    o.job.dimensions.push_back(name + "=" + std::to_string(size));
  if (cpu && run.threads > 0) o.job.threads = run.threads;
  // From page-locked memory and in line, as the measuring copies each batch.
  if (!cpu) o.job.copy = "non-blocking";
  return o;
}

}  // namespace

Forecaster forecaster_on(std::string machine) {
  return [machine = std::move(machine)](const MeasuredRun& run) -> Result<RunForecast> {
    const auto device = TRY(resolve_machine(machine, "", this_host()));
    const RunOptions o = options_of(run, machine, device.gpu.is_cpu());
    auto resolved = TRY(resolve_exactly(o, machine));
    const Scenario& s = resolved.base;
    auto made = TRY(forecast(s, resolved.knowledge));
    const auto program = TRY(lower(*s.step, s.job, s.machine));
    RunForecast result{std::move(made), {}};
    result.classes = class_times(program, result.forecast.time);
    return result;
  };
}

}  // namespace stoker::cli
