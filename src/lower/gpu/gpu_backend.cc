#include "lower/gpu/gpu_backend.h"

#include "lower/gpu/gpu_kernels.h"
#include "lower/gpu/outside.h"

namespace stoker {

Status GpuBackend::check(const Job&) const { return {}; }

Job GpuBackend::as_run(Job job) const { return job; }

std::unique_ptr<OperatorKernels> GpuBackend::kernels(const Lowering& lowering,
                                                     LibraryState& libraries,
                                                     BatchBuffers& batch) const {
  return std::make_unique<GpuKernels>(gpu_, lowering, libraries, batch);
}

std::vector<OutsideMemory> GpuBackend::outside(const Job& job, const Program& program) const {
  return outside_of_gpu(job, gpu_, libraries_of(program));
}

void GpuBackend::note(const Step& step, Diagnostics& diagnostics) const {
  if (step.provenance.capture == CaptureKind::kFakeCpu) {
    diagnostics.add("captured_on_cpu", Severity::kWarning,
                    "the model was captured with the CPU's dispatch (no compiler for the CUDA "
                    "shim); bands are wider");
  }
}

}  // namespace stoker
