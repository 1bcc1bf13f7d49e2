#include "lower/optimizer/offloaded_update.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lower/common/emitter.h"
#include "lower/optimizer/gradient_steps.h"
#include "lower/optimizer/optimizer.h"
#include "lower/optimizer/optimizer_recipes.h"

namespace stoker {
namespace {

std::vector<TrainedParameter> shards(const Step& captured, const Step& sharded,
                                     const Sizes& sizes) {
  std::vector<TrainedParameter> trained;
  const std::size_t count = std::min(captured.parameters.size(), sharded.parameters.size());
  for (std::size_t p = 0; p < count; ++p) {
    if (captured.parameters[p].gradient < 0) continue;
    trained.push_back(trained_parameter(sharded, sizes, sharded.parameters[p], ModuleId{}));
  }
  return trained;
}

/// A temporary is fresh memory from the system: page faults and zeroes cost what so many passes
/// over it would. 0.2 ns a byte measured (docs/models/parallel.md#cpu-offload).
constexpr std::int64_t kPassesOfFreshMemory = 3;

OptimizerSettings as_on_host(OptimizerSettings settings) {
  if (settings.loop == OptimizerLoop::kForeach && !settings.loop_asked)
    settings.loop = OptimizerLoop::kForLoop;
  return settings;
}

}  // namespace

Kernel offloaded_update(const Step& captured, const Step& sharded, const Sizes& sizes,
                        const Job& job) {
  const std::vector<TrainedParameter> trained = shards(captured, sharded, sizes);
  Program passes;
  Emitter emit(passes);
  if (job.clip) emit_clip(emit, trained, job.clip_checks, OptimizerLoop::kForLoop);
  const OptimizerSettings settings = as_on_host(job.optimizer);
  emit_optimizer_step(emit, settings, optimizer_groups(sharded, settings), trained);

  Kernel update;
  update.kernel_class = KernelClass::kOptimizer;
  update.phase = StepPhase::kOptimizer;
  update.on_host = true;
  std::size_t calls = 0;
  for (const Instruction& in : passes.iteration) {
    if (in.when == When::kFirst) continue;
    if (in.kind == InstructionKind::kAllocate)
      update.written += passes.buffers[in.value].bytes * kPassesOfFreshMemory;
    if (in.kind != InstructionKind::kLaunch) continue;
    update.read += passes.kernels[in.value].read;
    update.written += passes.kernels[in.value].written;
    ++calls;
  }
  const std::int64_t sums = job.accumulate - 1;
  for (const TrainedParameter& p : trained) {
    update.elements += elements_of(p);
    update.read += Bytes(2 * sums * p.bytes.count());
    update.written += Bytes(sums * p.bytes.count());
  }
  calls += static_cast<std::size_t>(sums) * trained.size();
  update.launches = static_cast<std::uint16_t>(std::min<std::size_t>(calls, 0xffff));
  return update;
}

}  // namespace stoker
