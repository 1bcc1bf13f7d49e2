#include "lower/loop/training_run.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "lower/loop/micro_batches.h"
#include "lower/loop/step_walk.h"
#include "lower/optimizer/parameter_update.h"

namespace stoker {
namespace {

/// Kernels and instructions that are made room for at once; steps beyond grow as they go.
constexpr std::size_t kMostReserved = 1 << 16;

/// Frees what the iteration before left, within the first micro-batch and so ahead of what is
/// repeated.
void insert_frees(BatchBuffers& into, const BatchBuffers& before,
                  const std::vector<Instruction>& instructions, Repeated& repeated) {
  const std::size_t count = instructions.size();
  into.insert_frees_of(before);
  repeated.from += instructions.size() - count;
  repeated.to += instructions.size() - count;
}

}  // namespace

TrainingRun::TrainingRun(const Step& step, const StepPlan& plan, const Sizes& sizes, const Job& job,
                         const DeviceBackend& device)
    : job_(job),
      emit_(program_),
      plan_(plan),
      l_{step, sizes, plan_, job, device, emit_, false, step.mode == "forward"},
      storages_(l_),
      batch_(l_, storages_),
      gradients_(l_, storages_) {
  // Kernels are large: most operators have one, some two.
  const auto walks = static_cast<std::size_t>(std::min(job.accumulate, kMostWrittenOut));
  const std::size_t operators = step.operators.size() * walks;
  program_.kernels.reserve(std::min(kMostReserved, operators + operators / 4));
  program_.iteration.reserve(std::min(kMostReserved, 2 * step.events.size() * walks));
  program_.batch = job.batch;
  program_.micro_batches = job.accumulate;
  program_.records_graph = step.mode != "inference";
  program_.input_bytes = batch_.copied_bytes();
  storages_.keep_model();
  if (!l_.device.is_apart()) batch_.keep_inputs();
  batch_.keep_loader_buffers();
  gradients_.keep_buckets();
  iteration();
}

void TrainingRun::iteration() {
  StepWalk walk(l_, storages_, batch_, gradients_, libraries_);
  program_.repeated = walk_micro_batches(walk, storages_, l_, job_.accumulate);
  walk.await_collectives();
  const std::size_t from = program_.iteration.size();
  gradients_.copy_buckets_back();
  if (l_.training()) emit_parameter_update(l_);
  if (job_.last_batch > 0) {
    update_.assign(program_.iteration.begin() + static_cast<std::ptrdiff_t>(from),
                   program_.iteration.end());
    drop_births(update_, 0);
  }
  if (zeroes_after_step(job_)) gradients_.zero_after_step();
  if (job_.drop_output) batch_.drop_outputs();
  insert_frees(batch_, batch_, program_.iteration, program_.repeated);
}

void TrainingRun::add_last_batch(std::int64_t batch, const Sizes& sizes) {
  ExtraPass pass{"last batch, " + std::to_string(batch), 1, {}, {}};
  Emitter emit(program_, pass.instructions), end(program_, pass.end);
  const Lowering l{l_.step, sizes, plan_, job_, l_.device, emit, true};
  StorageBuffers storages(l, storages_);
  BatchBuffers names(l, storages);
  if (!l.device.is_apart()) names.keep_inputs();
  Gradients gradients(l, storages);
  gradients.share_buckets(gradients_);
  StepWalk walk(l, storages, names, gradients, libraries_);
  pass.repeated = walk_micro_batches(walk, storages, l, job_.accumulate);
  walk.await_collectives();
  pass.instructions.insert(pass.instructions.end(), update_.begin(), update_.end());
  if (zeroes_after_step(job_)) gradients.zero_after_step();
  insert_frees(names, batch_, pass.instructions, pass.repeated);
  names.free_all(end);
  program_.passes.push_back(std::move(pass));
}

void TrainingRun::add_validation(const Step& evaluation, const Sizes& sizes) {
  Job job = job_;
  job.accumulate = 1;
  job.zero_grad_before_forward = job.zero_grad_before_backward = false;
  job.grad_scaler = false;
  const std::string forgotten = job.validation_no_grad ? "" : " without no_grad";
  ExtraPass pass{
      "validation" + forgotten + ", batch " + std::to_string(*job.validation_batch), 2, {}, {}};
  Emitter emit(program_, pass.instructions), end(program_, pass.end);
  const StepPlan plan = plan_step(evaluation);
  const Lowering l{evaluation, sizes, plan, job, l_.device, emit, true, !job.validation_no_grad};
  StorageBuffers storages(l, storages_);
  BatchBuffers names(l, storages);
  Gradients gradients(l, storages);
  if (!l.device.is_apart()) names.keep_inputs();
  names.keep_loader_buffers();
  StepWalk walk(l, storages, names, gradients, libraries_);
  walk.micro_batch({});
  walk.await_collectives();
  names.insert_frees_of(names);
  names.free_all(end);
  program_.passes.push_back(std::move(pass));
}

}  // namespace stoker
