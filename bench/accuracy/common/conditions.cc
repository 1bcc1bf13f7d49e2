#include "accuracy/common/conditions.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace stoker::accuracy {
namespace {

constexpr double kTimmWeightDecay = 2e-5;  // train.py --weight-decay

bool is_parameter(const Step& step, StorageId storage) {
  return step.storages[index(storage)].kind == StorageKind::kParameter;
}

}  // namespace

Job timm_train_job() {
  Job job;
  job.precision = Precision::kFp32;
  job.optimizer.nesterov = true;
  job.optimizer.weight_decay = kTimmWeightDecay;
  job.cudnn = CudnnProfile::kBenchmark;
  job.zero_grad_before_forward = false;
  job.prefetching_loader = true;
  return job;
}

Job timm_benchmark_job(bool channels_last) {
  Job job;
  job.precision = Precision::kAmpFp16;
  job.optimizer.nesterov = true;
  job.optimizer.loop = OptimizerLoop::kForLoop;
  job.cudnn = CudnnProfile::kBenchmark;
  job.channels_last = channels_last;
  job.cublas_workspaces_in_allocator = false;
  job.zero_grad_fills = true;  // the default before PyTorch 2.0
  job.attention = AttentionBackend::kMath;
  return job;
}

CaptureRequest timm_benchmark_request(const CsvRow& row) {
  CaptureRequest request{"timm:" + std::string(row["model"]), "amp-fp16",
                         static_cast<std::int64_t>(number(row, "img_size"))};
  request.fused_attention = false;
  return request;
}

std::vector<CaptureRequest> wanted_timm_benchmark(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(timm_benchmark_request(*row));
  return requests;
}

void reuse_input(Program& program) {
  program.drop([&](const Instruction& i) {
    const bool memory = i.kind == InstructionKind::kAllocate || i.kind == InstructionKind::kFree ||
                        i.kind == InstructionKind::kFreePrevious;
    if (!memory || program.buffers[i.value].role != BufferRole::kInput) return false;
    if (i.kind == InstructionKind::kAllocate) program.setup.push_back(i);
    return true;
  });
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
