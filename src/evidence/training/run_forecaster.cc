#include "evidence/training/run_forecaster.h"

#include <utility>

#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "lower/loop/lower.h"
#include "scenario/resolve/resolve.h"

namespace stoker {
namespace {

bool takes_momentum(OptimizerKind kind) {
  return kind == OptimizerKind::kSgd || kind == OptimizerKind::kRmsprop;
}

}  // namespace

Result<RunRequest> request_of(const MeasuredRun& run, const std::string& machine, bool cpu) {
  RunRequest request;
  request.model = run.model;
  request.machine = machine;
  request.batch = run.batch;
  request.gpus = 1;
  if (!run.precision.empty()) request.precisions = {TRY(parse_precision(run.precision))};
  OptimizerRequest& optimizer = request.job.optimizer;
  if (!run.optimizer.empty()) {
    optimizer.kind = TRY(parse_optimizer(run.optimizer));
    if (takes_momentum(*optimizer.kind)) optimizer.momentum = run.momentum;
    optimizer.weight_decay = run.weight_decay;
  }
  request.job.dimensions = run.dimensions;
  request.job.compile = request.capture.compile = run.compile;
  if (cpu && run.threads > 0) request.job.threads = run.threads;
  // From page-locked memory and in line, as the measuring copies each batch.
  if (!cpu) request.job.copy = CopyWay::kNonBlocking;
  return request;
}

Forecaster forecaster_on(std::string machine, ScenarioTools tools) {
  return [machine = std::move(machine),
          tools = std::move(tools)](const MeasuredRun& run) -> Result<RunForecast> {
    const Machine device = TRY(resolve_machine(machine, "", this_host()));
    const RunRequest request = TRY(request_of(run, machine, device.device.cpu() != nullptr));
    const Resolved resolved = TRY(resolve_exactly(request, tools));
    const Scenario& s = resolved.base;
    RunForecast result{TRY(forecast(s, resolved.knowledge)), {}};
    const Program program = TRY(lower(*s.step, s.job, s.machine));
    result.classes = class_times(program, result.forecast.time);
    return result;
  };
}

}  // namespace stoker
