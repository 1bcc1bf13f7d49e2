#include "lower/lower.h"

#include <string>
#include <utility>

#include "lower/capture_notes.h"
#include "lower/lowering.h"
#include "lower/optimizer.h"
#include "lower/outside.h"
#include "lower/step_walk.h"
#include "lower/units.h"

namespace stoker {
namespace {

std::vector<TrainedParameter> trained_parameters(const Lowering& l) {
  std::vector<TrainedParameter> trained;
  for (const Parameter& p : l.step.parameters) {
    if (p.gradient < 0) continue;
    trained.push_back(trained_parameter(l.step, l.sizes, p,
                                        l.plan.modules[static_cast<std::size_t>(p.gradient)]));
  }
  return trained;
}

/// The whole run: setup and iteration.
Program lower_run(const Step& step, const Sizes& sizes, const Job& job, const Machine& machine) {
  Program program;
  Emitter emit(program);
  const StepPlan plan = plan_step(step);
  const Lowering l{step, sizes, plan, job, machine, emit};
  program.batch = job.batch;
  program.micro_batches = job.accumulate;

  StorageBuffers storages(l);
  BatchBuffers batch(l, storages);
  Gradients gradients(l, storages);
  LibraryState libraries;
  storages.keep_model();
  batch.keep_loader_buffers();
  gradients.keep_buckets();

  StepWalk walk(l, storages, batch, gradients, libraries);
  for (int i = 0; i < job.accumulate; ++i) walk.micro_batch({i, job.accumulate});
  gradients.copy_buckets_back();
  if (l.training()) emit_optimizer_step(emit, job.optimizer, trained_parameters(l));
  if (!job.zero_grad_before_forward) gradients.zero(InstructionKind::kFree);
  batch.insert_frees_of_previous();

  program.outside = outside_memory(job, machine, program);
  note_capture(step, program.diagnostics);
  note_units(job, machine.gpu, program.diagnostics);
  return program;
}

}  // namespace

Result<Program> lower(const Step& step, const Job& job, const Machine& machine) {
  if (auto status = check_job(job); !status) return tl::unexpected(status.error());
  if (capture_precision(job.precision) != step.precision) {
    return fail(ErrorCode::kBadInput,
                step.name + " was captured in " + step.precision + ", which cannot serve " +
                    std::string(name_of(job.precision)) + "; capture it with --precision " +
                    std::string(capture_precision(job.precision)));
  }
  auto dimensions = job.dimensions;
  dimensions["batch"] = job.batch;
  const auto sizes = Sizes::at(step, dimensions);
  if (!sizes) return tl::unexpected(sizes.error());
  return lower_run(step, *sizes, job, machine);
}

}  // namespace stoker
