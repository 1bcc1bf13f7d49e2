#include "lower/cpu/cpu.h"

#include <string>
#include <utility>

#include "base/setting.h"

namespace stoker {
namespace {

Status refuse(std::string message, Setting setting) {
  return fail(ErrorCode::kBadInput, std::move(message), mark(setting));
}

}  // namespace

Status check_cpu(const Job& job) {
  if (job.gpus > 1 || job.nodes > 1) {
    return refuse(
        "a CPU trains as one device; training on several of them is not modelled: leave it out, "
        "or name a GPU",
        job.nodes > 1 ? Setting::kNodes : Setting::kGpus);
  }
  if (job.precision == Precision::kTf32) {
    return refuse("tf32 is a mode of NVIDIA's tensor cores, a CPU computes fp32: take " +
                      mark(Setting::kPrecision) + " fp32",
                  Setting::kPrecision);
  }
  if (job.cudnn == CudnnProfile::kBenchmark)
    return refuse("cuDNN runs on GPUs only; leave it out on a CPU", Setting::kCudnnBenchmark);
  if (job.cuda_graphs)
    return refuse("CUDA graphs need a GPU; leave it out on a CPU", Setting::kCudaGraphs);
  if (job.prefetching_loader) {
    return refuse(
        "copies batches to a GPU beside the step; on a CPU there is nothing to copy: leave it out",
        Setting::kPrefetchingLoader);
  }
  if (job.attention == AttentionBackend::kMemoryEfficient) {
    return fail(
        ErrorCode::kBadInput,
        "PyTorch has no memory-efficient attention on CPUs: take flash or math, or leave it out",
        "attention");
  }
  return {};
}

Job job_on_cpu(Job job) {
  if (job.optimizer.loop == OptimizerLoop::kForeach && !job.optimizer.loop_asked)
    job.optimizer.loop = OptimizerLoop::kForLoop;
  job.cublas_workspaces_in_allocator = false;
  job.loader_buffers = 0;
  job.overlapped_copy = job.non_blocking_copy = false;
  return job;
}

void note_cpu(const Step& step, Diagnostics& diagnostics) {
  if (step.provenance.capture == CaptureKind::kFakeCpu) return;
  diagnostics.add("captured_for_cuda", Severity::kWarning,
                  "the step was captured as a GPU runs it; on a CPU PyTorch takes other operators "
                  "for recurrent "
                  "layers, attention and fused kernels: capture it again with --device cpu");
}

}  // namespace stoker
