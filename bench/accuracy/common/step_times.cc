#include "accuracy/common/step_times.h"

#include "forecast/forecast.h"

namespace stoker::accuracy {

Result<StepTime> time_with(const Bench& bench, const Step& step, const Job& job,
                           const Machine& machine, const CoefficientFile* timing) {
  Scenario scenario;
  scenario.step = &step;
  scenario.job = job;
  scenario.machine = machine;
  scenario.loader.batch = job.batch;
  if (timing == nullptr) return step_time_of(scenario, bench.knowledge);
  Knowledge knowledge = bench.knowledge;
  knowledge.timing = *timing;
  return step_time_of(scenario, knowledge);
}

Result<StepTime> time_of(const Bench& bench, const Step& step, const Job& job,
                         const Machine& machine, Unseen unseen) {
  if (unseen == Unseen::kNothing) return time_with(bench, step, job, machine, nullptr);
  if (unseen == Unseen::kGpu && bench.folds.without(machine.device->name) == nullptr)
    return fail(ErrorCode::kNotFound, "no fold left this GPU out");
  return time_with(bench, step, job, machine, &bench.timing_for(unseen, machine.device->name));
}

}  // namespace stoker::accuracy
