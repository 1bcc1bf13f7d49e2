#include "lower/loop/lower.h"

#include <string>
#include <utility>

#include "base/setting.h"
#include "lower/common/math_units.h"
#include "lower/gpu/cuda_graphs.h"
#include "lower/loop/backend_of.h"
#include "lower/loop/capture_notes.h"
#include "lower/loop/known_cliffs.h"
#include "lower/loop/step_rewrites.h"
#include "lower/loop/training_run.h"
#include "lower/optimizer/offloaded_update.h"
#include "rewrite/evaluation.h"

namespace stoker {
namespace {

Status check_precision(const Step& step, const Job& job) {
  if (capture_precision(job.precision) == step.precision) return {};
  return fail(ErrorCode::kBadInput,
              step.name + " was captured in " + step.precision + ", which cannot serve " +
                  std::string(name_of(job.precision)) + "; capture it with " +
                  mark(Setting::kPrecision) + " " + std::string(capture_precision(job.precision)));
}

/// What only a training loop has.
Status check_mode(const Step& step, const Job& job) {
  if (step.mode == "train") return {};
  const std::pair<bool, const char*> asked[] = {
      {!job.checkpoint.empty(), "activation checkpointing"},
      {job.clip || job.clip_checks, "gradient clipping"},
      {job.ema, "a moving average of the model"},
      {job.grad_scaler, "a gradient scaler"},
      {job.zero_grad_fills, "zero_grad"},
      {job.validation_batch.has_value(), "a validation pass"},
      {job.last_batch > 0, "an epoch's last batch"}};
  for (const auto& [wanted, what] : asked) {
    if (!wanted) continue;
    return fail(ErrorCode::kBadInput, step.name + " was captured for " + step.mode + ": there is " +
                                          "no backward and no epoch, so " + what +
                                          " makes no sense; capture it for training");
  }
  return {};
}

Result<Sizes> sizes_at(const Step& step, const Job& job, std::int64_t batch) {
  auto dimensions = job.dimensions;
  dimensions["batch"] = batch;
  return Sizes::at(step, dimensions);
}

Status add_passes(TrainingRun& run, const Step& step, const Job& job) {
  if (job.last_batch > 0) {
    const auto sizes = TRY(sizes_at(step, job, job.last_batch));
    run.add_last_batch(job.last_batch, sizes);
  }
  if (job.validation_batch) {
    const Step evaluation = evaluation_step(step, job.validation_no_grad);
    const auto sizes = TRY(sizes_at(evaluation, job, *job.validation_batch));
    run.add_validation(evaluation, sizes);
  }
  return {};
}

/// The optimizer's step over shards in the host's memory ends the iteration, and the epoch's last,
/// smaller batch, which is the first of the passes.
void update_on_host(const Step& captured, const Step& sharded, const Sizes& sizes, const Job& job,
                    Program& program) {
  const Kernel update = offloaded_update(captured, sharded, sizes, job);
  if (update.elements == 0) return;
  Emitter emit(program);
  emit.enter(StepPhase::kOptimizer);
  emit.launch(update);
  if (job.last_batch > 0 && !program.passes.empty())
    program.passes[0].instructions.push_back(program.iteration.back());
  program.diagnostics.add(
      "offloaded_optimizer", Severity::kWarning,
      "the optimizer steps on the host's processor while the GPUs wait; its time is a prior: one "
      "thread for each rank of a node, which is what torchrun sets (OMP_NUM_THREADS), at the speed "
      "of a server's core");
}

}  // namespace

Result<PreparedStep> prepare(const Step& captured, const Job& job) {
  for (const Status& status : {check_job(job), check_precision(captured, job),
                               check_mode(captured, job), check_cuda_graphs(captured, job)}) {
    if (!status) return tl::unexpected(status.error());
  }
  auto rewritten = TRY(rewritten_step(captured, job));
  StepPlan plan = plan_step(rewritten ? *rewritten : captured);
  return PreparedStep{&captured, std::move(rewritten), std::move(plan)};
}

Result<Program> lower(const PreparedStep& prepared, const Job& asked, const Machine& machine) {
  TRY(check_job(asked));
  const auto device = backend_of(machine.device);
  TRY(device->check(asked));
  const Job job = device->as_run(asked);
  const Step& step = prepared.runs();
  const auto sizes = TRY(sizes_at(step, job, job.batch));
  TrainingRun run(step, prepared.plan, sizes, job, *device);
  TRY(add_passes(run, step, job));
  Program program = run.take();
  program.cuda_graphs = job.cuda_graphs;
  program.outside = device->outside(job, program);
  note_capture(*prepared.captured, *device, program.diagnostics);
  note_known_cliffs(step, sizes, *device, program.diagnostics);
  note_units(job, machine.device.facts(), program.diagnostics);
  note_cuda_graphs(job, program.diagnostics);
  if (job.fsdp_offload && job.gpus > 1 && step.mode == "train")
    update_on_host(*prepared.captured, step, sizes, job, program);
  return program;
}

Result<Program> lower(const Step& captured, const Job& job, const Machine& machine) {
  const auto prepared = TRY(prepare(captured, job));
  return lower(prepared, job, machine);
}

}  // namespace stoker
