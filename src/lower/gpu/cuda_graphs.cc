#include "lower/gpu/cuda_graphs.h"

#include <algorithm>
#include <string>

#include "base/setting.h"

// What may be captured: docs.pytorch.org, "CUDA semantics", CUDA Graphs, constraints.
namespace stoker {
namespace {

std::string where() { return mark(Setting::kCudaGraphs); }

}  // namespace

Status check_cuda_graphs(const Step& step, const Job& job) {
  if (!job.cuda_graphs) return {};
  const auto waits = std::count_if(step.events.begin(), step.events.end(), [](const Event& e) {
    return e.kind == EventKind::kSynchronize;
  });
  if (waits > 0) {
    return fail(ErrorCode::kBadInput,
                step.name + " makes the host wait for the GPU " + std::to_string(waits) +
                    (waits == 1 ? " time" : " times") +
                    " a step (.item(), nonzero, a mask as index, a copy to or from the host), over "
                    "which no graph can be captured; take that out of the model, or leave the flag "
                    "out",
                where());
  }
  if (step.mode == "train" && job.gpus > 1 && job.parallel != Parallel::kDdp) {
    return fail(ErrorCode::kUnsupported,
                std::string(name_of(job.parallel)) + " under CUDA graphs is not modelled; take " +
                    mark(Setting::kParallel) + " ddp, or leave the flag out",
                where());
  }
  return {};
}

void note_cuda_graphs(const Job& job, Diagnostics& diagnostics) {
  if (!job.cuda_graphs) return;
  diagnostics.add(
      "cuda_graphs_memory", Severity::kWarning,
      "memory is that of the eager step; the private pool of the graphs and their static inputs "
      "are not modelled, so the band reaches up to activations and temporaries held twice");
  if (job.grad_scaler && job.optimizer.loop != OptimizerLoop::kFused) {
    diagnostics.add(
        "optimizer_outside_graphs", Severity::kNote,
        "GradScaler reads found_inf on the host, so the optimizer's step stays outside the "
        "graphs (a fused optimizer reads nothing)");
  }
}

}  // namespace stoker
