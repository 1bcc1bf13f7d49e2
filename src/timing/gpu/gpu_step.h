#pragma once

#include <vector>

#include "device/machine.h"
#include "program/program.h"
#include "timing/common/coefficients.h"
#include "timing/common/step_time.h"
#include "timing/gpu/kernel_cost.h"
#include "timing/gpu/step_band.h"

/// A step on GPUs: kernels costed, collectives timed, launched by a host that runs ahead. Internal
/// to src/timing.
namespace stoker {

/// A program's kernels on one GPU, for steps that differ in the ranks around it.
class GpuStepModel {
 public:
  /// `options`: how the batch is copied, and the pace.
  GpuStepModel(const Program& program, const Gpu& gpu, const Coefficients& coefficients,
               const StepTimeOptions& options);

  [[nodiscard]] StepTime predict(const Machine& machine, const StepTimeOptions& options) const;

  /// What the band of `predict` is made of, for fits: the device's terms, and what the host's
  /// spread makes the step longer by, as a share of it.
  struct Doubt {
    BandTerms terms{};
    double host = 0;
  };
  [[nodiscard]] Doubt doubt(const Machine& machine, const StepTimeOptions& options,
                            const StepTime& time) const;

 private:
  [[nodiscard]] GroupedReduce groups_of(const Machine& machine,
                                        const StepTimeOptions& options) const;
  [[nodiscard]] HostDoubt host_doubt(const Machine& machine, const HostSpeed& host,
                                     const AllReduceModel& all_reduce,
                                     const StepTimeOptions& options, const StepTime& time) const;

  const Program& program_;
  const Gpu& gpu_;
  CostModel model_;
  std::vector<KernelCost> costs_;
};

[[nodiscard]] std::vector<PassTime> predict_gpu_passes(const Program& program,
                                                       const StepTime& step_time,
                                                       const Machine& machine,
                                                       const Coefficients& coefficients,
                                                       const StepTimeOptions& options);

}  // namespace stoker
