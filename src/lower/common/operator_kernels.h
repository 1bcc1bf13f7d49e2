#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "lower/common/batch_buffers.h"
#include "lower/common/lowering.h"
#include "lower/common/math_attention.h"
#include "work/work.h"

namespace stoker {

/// Whether a library has its workspace already, by thread.
struct Handles {
  bool forward = false, backward = false;
};

/// What libraries remember over a whole run, whatever the batch.
struct LibraryState {
  Handles cublas, cublaslt;
  std::set<std::vector<std::int64_t>> tried;  ///< convolutions whose algorithms were tried
};

/// Launches the kernels of the step's operators, with the workspaces that their libraries want.
/// What kinds of device do differently is in lower/gpu/gpu_kernels.h and lower/cpu/cpu_kernels.h.
class OperatorKernels {
 public:
  virtual ~OperatorKernels() = default;
  OperatorKernels(const OperatorKernels&) = delete;
  OperatorKernels& operator=(const OperatorKernels&) = delete;

  /// Makes a storage that the operator writes, in the middle of it.
  using Allocate = std::function<void(std::uint32_t storage)>;
  void run(std::uint32_t op_index, const Allocate& allocate);

  /// Whether the operator allocates its outputs by itself, by `run`'s argument.
  [[nodiscard]] virtual bool allocates(std::uint32_t op_index) const = 0;

 protected:
  OperatorKernels(const Lowering& lowering, BatchBuffers& batch);

  /// One operator that runs, and its kernel.
  struct Launch {
    std::uint32_t op_index;
    const Operator& op;
    Kernel& kernel;
    const Allocate& allocate;
  };

  /// Makes of an operator's work what one call of this device executes.
  virtual void join(const Operator& op, std::vector<Work>& work) const = 0;
  [[nodiscard]] virtual MathUnit unit_of(const Work& work) const = 0;
  /// Adds what the device's timing reads besides the work.
  virtual void describe(std::uint32_t op_index, const Operator& op, Kernel& kernel) = 0;
  virtual void product(const Launch& launch) = 0;
  virtual void convolution(const Launch& launch, const ConvolutionShape& shape) = 0;
  /// How this attention runs where the job does not say.
  [[nodiscard]] virtual AttentionBackend attention_backend(const AttentionShape& shape, DType dtype,
                                                           const Attributes& attributes) const = 0;
  /// The library's handle for plain products within an attention.
  virtual void open_product_library(ModuleId module) = 0;
  /// An attention that the device runs as one kernel.
  [[nodiscard]] virtual SavedBuffers fused_attention_forward(const Launch& launch,
                                                             const AttentionShape& shape) = 0;
  virtual void fused_attention_backward(const Launch& launch, const AttentionShape& shape) = 0;

  const Lowering& l_;

 private:
  [[nodiscard]] Kernel kernel_of(std::uint32_t op_index, const Work& work, std::uint16_t views,
                                 std::uint16_t modules);
  void launch(std::uint32_t op_index, Kernel kernel, const Allocate& allocate);
  void attention(const Launch& launch);
  [[nodiscard]] SavedBuffers attention_forward(const Launch& launch, const AttentionShape& shape);
  void attention_backward(const Launch& launch, const AttentionShape& shape);

  const bool compiled_channels_last_;  ///< layout of convolutions in compiled graphs
  BatchBuffers& batch_;
  std::unordered_map<std::uint32_t, SavedBuffers> saved_attention_;  ///< by forward operator
  std::vector<Work> work_;
};

}  // namespace stoker
