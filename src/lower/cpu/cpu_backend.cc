#include "lower/cpu/cpu_backend.h"

#include <string>
#include <utility>

#include "base/setting.h"
#include "lower/cpu/cpu_kernels.h"

namespace stoker {
namespace {

/// A process with Python and PyTorch's CPU build before its first model: resident, with the parts
/// of the libraries that a first step touches. PyTorch 2.13 on Debian 12
/// (docs/models/cpu-memory.md).
constexpr Bytes kPythonAndPytorch{300LL << 20};
/// Pages of the libraries that a model's own operators touch for the first time, and the kernels
/// that oneDNN writes for them: 3 to 10 MiB in eight runs of seven models.
constexpr Bytes kCodeOfStep{8LL << 20};

Status refuse(std::string message, Setting setting) {
  return fail(ErrorCode::kBadInput, std::move(message), mark(setting));
}

}  // namespace

Status CpuBackend::check(const Job& job) const {
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

/// An optimizer whose loop nobody chose goes tensor by tensor (torch/optim/optimizer.py,
/// _default_to_fused_or_foreach: foreach is no CPU's default), and no library keeps a workspace in
/// PyTorch's allocator.
Job CpuBackend::as_run(Job job) const {
  if (job.optimizer.loop == OptimizerLoop::kForeach && !job.optimizer.loop_asked)
    job.optimizer.loop = OptimizerLoop::kForLoop;
  job.cublas_workspaces_in_allocator = false;
  job.loader_buffers = 0;
  job.overlapped_copy = job.non_blocking_copy = false;
  return job;
}

std::unique_ptr<OperatorKernels> CpuBackend::kernels(const Lowering& lowering, LibraryState&,
                                                     BatchBuffers& batch) const {
  return std::make_unique<CpuKernels>(cpu_, lowering, batch);
}

std::vector<OutsideMemory> CpuBackend::outside(const Job&, const Program&) const {
  return {{"Python and PyTorch", cpu_.context_memory.value_or(kPythonAndPytorch),
           cpu_.context_memory ? "machine file" : "default; PyTorch 2.13, measured once"},
          {"code of the step's operators", kCodeOfStep, "default; measured, 3 to 10 MiB"}};
}

void CpuBackend::note(const Step& step, Diagnostics& diagnostics) const {
  if (step.provenance.capture == CaptureKind::kFakeCpu) return;
  diagnostics.add("captured_for_cuda", Severity::kWarning,
                  "the step was captured as a GPU runs it; on a CPU PyTorch takes other operators "
                  "for recurrent "
                  "layers, attention and fused kernels: capture it again with --device cpu");
}

}  // namespace stoker
