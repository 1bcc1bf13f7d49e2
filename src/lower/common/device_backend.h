#pragma once

#include <memory>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "program/job.h"
#include "program/program.h"
#include "step/step.h"

namespace stoker {

class BatchBuffers;
class OperatorKernels;
struct LibraryState;
struct Lowering;

/// What the kind of device decides about the program of a step. The parts of this library ask it
/// and never what the device is.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  /// Refuses what the device has not.
  [[nodiscard]] virtual Status check(const Job& job) const = 0;
  /// The job as PyTorch runs it there.
  [[nodiscard]] virtual Job as_run(Job job) const = 0;
  /// Whether the device works apart from the host: in a memory of its own, into which each batch is
  /// copied, and behind a queue, so that a value that Python reads has to be waited for.
  [[nodiscard]] virtual bool is_apart() const = 0;
  /// How PyTorch's utilities walk over many tensors where nobody chose.
  [[nodiscard]] virtual OptimizerLoop default_loop() const = 0;
  [[nodiscard]] virtual std::unique_ptr<OperatorKernels> kernels(const Lowering& lowering,
                                                                 LibraryState& libraries,
                                                                 BatchBuffers& batch) const = 0;
  /// What lies on the device outside PyTorch's allocator: named terms, each with its basis. A
  /// library that nothing in `program` calls is not loaded. A machine file's context_memory stands
  /// for context and libraries together.
  [[nodiscard]] virtual std::vector<OutsideMemory> outside(const Job& job,
                                                           const Program& program) const = 0;
  /// Says where the step was captured for another kind of device.
  virtual void note(const Step& step, Diagnostics& diagnostics) const = 0;
};

}  // namespace stoker
