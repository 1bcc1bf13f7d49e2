#pragma once

#include "lower/common/device_backend.h"

namespace stoker {

/// How PyTorch trains on a CPU.
class CpuBackend final : public DeviceBackend {
 public:
  explicit CpuBackend(const Cpu& cpu) : cpu_(cpu) {}

  [[nodiscard]] Status check(const Job& job) const override;
  [[nodiscard]] Job as_run(Job job) const override;
  [[nodiscard]] bool is_apart() const override { return false; }
  [[nodiscard]] OptimizerLoop default_loop() const override { return OptimizerLoop::kForLoop; }
  [[nodiscard]] std::unique_ptr<OperatorKernels> kernels(const Lowering& lowering,
                                                         LibraryState& libraries,
                                                         BatchBuffers& batch) const override;
  [[nodiscard]] std::vector<OutsideMemory> outside(const Job& job,
                                                   const Program& program) const override;
  void note(const Step& step, Diagnostics& diagnostics) const override;

 private:
  const Cpu& cpu_;
};

}  // namespace stoker
