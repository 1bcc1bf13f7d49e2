#include "lower/gpu/gpu_backend.h"

#include "lower/gpu/gpu_kernels.h"
#include "lower/gpu/outside.h"

namespace stoker {
namespace {

class GpuBackend final : public DeviceBackend {
 public:
  explicit GpuBackend(const Gpu& gpu) : gpu_(gpu) {}

  [[nodiscard]] Status check(const Job&) const override { return {}; }
  [[nodiscard]] Job as_run(Job job) const override { return job; }
  [[nodiscard]] bool is_apart() const override { return true; }
  [[nodiscard]] OptimizerLoop default_loop() const override { return OptimizerLoop::kForeach; }

  [[nodiscard]] std::unique_ptr<OperatorKernels> kernels(const Lowering& lowering,
                                                         LibraryState& libraries,
                                                         BatchBuffers& batch) const override {
    return std::make_unique<GpuKernels>(gpu_, lowering, libraries, batch);
  }

  [[nodiscard]] std::vector<OutsideMemory> outside(const Job& job,
                                                   const Program& program) const override {
    return outside_of_gpu(job, gpu_, libraries_of(program));
  }

  void note(const Step& step, Diagnostics& diagnostics) const override {
    if (step.provenance.capture != CaptureKind::kFakeCpu) return;
    diagnostics.add("captured_on_cpu", Severity::kWarning,
                    "the model was captured with the CPU's dispatch (no compiler for the CUDA "
                    "shim); bands are wider");
  }

 private:
  const Gpu& gpu_;
};

}  // namespace

std::unique_ptr<const DeviceBackend> gpu_backend(const Gpu& gpu) {
  return std::make_unique<GpuBackend>(gpu);
}

}  // namespace stoker
