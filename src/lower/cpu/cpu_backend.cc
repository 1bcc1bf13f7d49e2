#include "lower/cpu/cpu_backend.h"

#include <algorithm>
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

/// torch.compile in the process: Dynamo, AOTAutograd and Inductor with what they import, and for
/// each kernel of a compiled graph its nodes, guards, generated code and libraries
/// (docs/models/compile.md). The C++ compiler and workers that compile are other processes.
constexpr Bytes kCompiler{72LL << 20};
constexpr Bytes kCompiledKernel{340LL << 10};

Status refuse(std::string message, Setting setting) {
  return fail(ErrorCode::kBadInput, std::move(message), mark(setting));
}

Status check_cpu_job(const Job& job) {
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
Job run_on_cpu(Job job) {
  if (job.optimizer.loop == OptimizerLoop::kForeach && !job.optimizer.loop_asked)
    job.optimizer.loop = OptimizerLoop::kForLoop;
  job.cublas_workspaces_in_allocator = false;
  if (is_pinned(job.copy)) job.copy = CopyWay::kBlocking;
  return job;
}

std::int64_t compiled_kernels(const Program& program) {
  return std::count_if(program.kernels.begin(), program.kernels.end(),
                       [](const Kernel& kernel) { return kernel.compiled; });
}

std::vector<OutsideMemory> outside_of_cpu(const Cpu& cpu, const Job& job, const Program& program) {
  std::vector<OutsideMemory> outside{
      {"Python and PyTorch", cpu.context_memory.value_or(kPythonAndPytorch),
       cpu.context_memory ? "machine file" : "default; PyTorch 2.13, measured once"},
      {"code of the step's operators", kCodeOfStep, "default; measured, 3 to 10 MiB"}};
  if (job.compile) {
    outside.push_back({"torch.compile", kCompiler + kCompiledKernel * compiled_kernels(program),
                       "default; measured with PyTorch 2.13 on five models"});
  }
  return outside;
}

void note_cpu_capture(const Step& step, Diagnostics& diagnostics) {
  if (step.provenance.capture == CaptureKind::kFakeCpu) return;
  diagnostics.add("captured_for_cuda", Severity::kWarning,
                  "the step was captured as a GPU runs it; on a CPU PyTorch takes other operators "
                  "for recurrent "
                  "layers, attention and fused kernels: capture it again for the CPU");
}

class CpuBackend final : public DeviceBackend {
 public:
  explicit CpuBackend(const Cpu& cpu) : cpu_(cpu) {}

  [[nodiscard]] Status check(const Job& job) const override { return check_cpu_job(job); }
  [[nodiscard]] Job as_run(Job job) const override { return run_on_cpu(std::move(job)); }
  [[nodiscard]] bool is_apart() const override { return false; }
  [[nodiscard]] OptimizerLoop default_loop() const override { return OptimizerLoop::kForLoop; }

  [[nodiscard]] std::unique_ptr<OperatorKernels> kernels(const Lowering& lowering, LibraryState&,
                                                         BatchBuffers& batch) const override {
    return std::make_unique<CpuKernels>(cpu_, lowering, batch);
  }

  [[nodiscard]] std::vector<OutsideMemory> outside(const Job& job,
                                                   const Program& program) const override {
    return outside_of_cpu(cpu_, job, program);
  }

  void note(const Step& step, Diagnostics& diagnostics) const override {
    note_cpu_capture(step, diagnostics);
  }

 private:
  const Cpu& cpu_;
};

}  // namespace

std::unique_ptr<const DeviceBackend> cpu_backend(const Cpu& cpu) {
  return std::make_unique<CpuBackend>(cpu);
}

}  // namespace stoker
