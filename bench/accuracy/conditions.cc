#include "conditions.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lower/lower.h"

namespace stoker::accuracy {
namespace {

constexpr double kTimmWeightDecay = 2e-5;  // train.py --weight-decay
constexpr int kFloatBytesPerByte = 4;      // the loader's uint8 batch becomes a float batch

bool is_parameter(const Step& step, StorageId storage) {
  return step.storages[index(storage)].kind == StorageKind::kParameter;
}

/// Moves or copies events; `f` maps an event's index to what shall stand after it.
template <class After>
void insert_events(Step& step, After&& after) {
  std::vector<Event> events;
  for (std::uint32_t e = 0; e < step.events.size(); ++e) {
    events.push_back(step.events[e]);
    after(e, events);
  }
  step.events = std::move(events);
}

std::vector<std::uint32_t> last_writes(const Step& step) {
  std::vector<std::uint32_t> last(step.storages.size(), 0xffffffff);
  for (std::uint32_t e = 0; e < step.events.size(); ++e) {
    if (step.events[e].kind != EventKind::kOperator) continue;
    for (const TensorRef& out : step.operators[step.events[e].value].outputs)
      last[index(out.storage)] = e;
  }
  return last;
}

}  // namespace

Job timm_train_job() {
  Job job;
  job.precision = Precision::kFp32;
  job.optimizer.nesterov = true;
  job.optimizer.weight_decay = kTimmWeightDecay;
  job.cudnn = CudnnProfile::kBenchmark;
  job.zero_grad_before_forward = false;
  job.loader_buffers = 1;  // with the current and the previous batch: three
  job.overlapped_copy = true;
  return job;
}

Result<Program> timm_train_program(const Step& step, const Job& job, const Machine& machine) {
  auto program = lower(step, job, machine);
  if (program) use_prefetching_loader(*program);
  return program;
}

Job timm_benchmark_job(bool channels_last) {
  Job job;
  job.precision = Precision::kAmpFp16;
  job.optimizer.nesterov = true;
  job.optimizer.loop = OptimizerLoop::kForLoop;
  job.cudnn = CudnnProfile::kBenchmark;
  job.channels_last = channels_last;
  job.cublas_workspaces_in_allocator = false;
  job.attention = AttentionBackend::kMath;
  return job;
}

void use_prefetching_loader(Program& program) {
  Bytes largest;
  for (Buffer& buffer : program.buffers) {
    if (buffer.role != BufferRole::kInput) continue;
    buffer.stream = Stream::kCopy;
    largest = std::max(largest, buffer.bytes);
  }
  if (largest.count() == 0) return;
  program.buffers.push_back(
      {largest / kFloatBytesPerByte, BufferRole::kInput, Stream::kCopy, false, ModuleId{}});
  program.setup.push_back({InstructionKind::kAllocate, When::kAlways,
                           static_cast<std::uint32_t>(program.buffers.size() - 1)});
}

void reuse_input(Program& program) {
  std::vector<Instruction> kept;
  for (const Instruction& i : program.iteration) {
    const bool memory = i.kind == InstructionKind::kAllocate || i.kind == InstructionKind::kFree ||
                        i.kind == InstructionKind::kFreePrevious;
    if (!memory || program.buffers[i.value].role != BufferRole::kInput) {
      kept.push_back(i);
    } else if (i.kind == InstructionKind::kAllocate) {
      program.setup.push_back(i);
    }
  }
  program.iteration = std::move(kept);
}

Step with_kept_gradients(Step step) {
  const std::vector<std::uint32_t> last = last_writes(step);
  std::vector<std::uint32_t> copy_of(step.storages.size(), 0);
  const std::size_t before = step.storages.size();
  for (std::size_t s = 0; s < before; ++s) {
    if (step.storages[s].kind != StorageKind::kGradient) continue;
    step.storages[s].kind = StorageKind::kPersistent;
    copy_of[s] = static_cast<std::uint32_t>(step.storages.size());
    step.storages.push_back({step.storages[s].bytes, StorageKind::kTransient});
  }
  std::vector<std::uint32_t> done_after(step.events.size(), 0);  // event -> copy that ends there
  for (std::size_t s = 0; s < before; ++s) {
    if (copy_of[s] != 0 && last[s] != 0xffffffff) done_after[last[s]] = copy_of[s];
  }
  insert_events(step, [&](std::uint32_t e, std::vector<Event>& events) {
    const Event event = events.back();
    if (event.kind == EventKind::kAllocate && copy_of[event.value] != 0 &&
        last[event.value] != 0xffffffff) {
      events.push_back({EventKind::kAllocate, copy_of[event.value]});
    }
    if (done_after[e] != 0) events.push_back({EventKind::kFree, done_after[e]});
  });
  return step;
}

void keep_gradients(Program& program) {
  const auto frees_gradient = [&](const Instruction& i) {
    return (i.kind == InstructionKind::kFreePrevious || i.kind == InstructionKind::kFree) &&
           program.buffers[i.value].role == BufferRole::kGradient;
  };
  std::erase_if(program.iteration, frees_gradient);
}

Step with_autocast_until_end(Step step) {
  std::set<std::uint32_t> copies;
  bool backward = false;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) backward = true;
    if (backward || event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    if (step.operator_name(op) == "aten::_to_copy" && !op.inputs.empty() &&
        is_parameter(step, op.inputs[0].storage)) {
      for (const TensorRef& out : op.outputs)
        copies.insert(static_cast<std::uint32_t>(index(out.storage)));
    }
  }
  std::vector<Event> events, held;
  const auto flush = [&] { events.insert(events.end(), held.begin(), held.end()), held.clear(); };
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kEnd) flush();
    (event.kind == EventKind::kFree && copies.count(event.value) > 0 ? held : events)
        .push_back(event);
  }
  flush();
  step.events = std::move(events);
  return step;
}

}  // namespace stoker::accuracy
