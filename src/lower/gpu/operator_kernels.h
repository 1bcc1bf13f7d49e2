#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "lower/common/batch_buffers.h"
#include "lower/common/lowering.h"
#include "lower/gpu/attention.h"
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

/// Tells which operators Python does not issue one by one.
class CallChain {
 public:
  /// Whether this operator comes out of the same call, or autograd node, as the one before.
  bool follows(bool backward, std::uint32_t op_index, const Operator& op);

 private:
  std::uint32_t last_op_ = Kernel::kSynthesized, link_ = 0;
  std::size_t module_ = 0;
  int run_ = 0;
  bool chained_ = false, backward_ = false;
};

/// Launches the kernels of the step's operators, with the workspaces that their libraries want.
class OperatorKernels {
 public:
  OperatorKernels(const Lowering& lowering, LibraryState& libraries, BatchBuffers& batch)
      : l_(lowering), libraries_(libraries), batch_(batch) {}

  /// `allocate` makes a storage that the operator writes: on a CPU a convolution's outputs come into
  /// being in the middle of it.
  using Allocate = std::function<void(std::uint32_t storage)>;
  void run(std::uint32_t op_index, const Allocate& allocate);

  /// Whether the operator allocates its outputs by itself, by `run`'s argument.
  [[nodiscard]] bool allocates(std::uint32_t op_index) const;

 private:
  [[nodiscard]] Kernel kernel_of(std::uint32_t op_index, const Work& work, std::uint16_t views);
  /// One operator as it runs: `allocate` as for `run`.
  struct Call {
    std::uint32_t index;
    const Operator& op;
    const Allocate& allocate;
  };
  void launch(const Call& call, const Work& work, std::uint16_t views);
  void keep_workspace(Handles& handles, Bytes bytes, ModuleId module);
  void cublas_handle(ModuleId module);
  void launch_with_workspace(const Kernel& kernel, Buffer workspace);
  void product(const Operator& op, const Kernel& kernel);
  void convolution(const Call& call, const Kernel& kernel, const ConvolutionShape& shape);
  void cpu_convolution(const Call& call, const Kernel& kernel, const ConvolutionShape& shape);
  void attention(std::uint32_t op_index, const Operator& op, Kernel& kernel);
  [[nodiscard]] SavedBuffers attention_forward(const AttentionShape& shape, const Kernel& kernel,
                                               const Attributes& attributes, ModuleId module);
  void attention_backward(const AttentionShape& shape, const Kernel& kernel,
                          const Attributes& attributes, ModuleId module);

  const Lowering& l_;
  LibraryState& libraries_;
  BatchBuffers& batch_;
  std::unordered_map<std::uint32_t, SavedBuffers> saved_attention_;  ///< by forward operator
  std::vector<Work> work_;
  CallChain chain_;
};

}  // namespace stoker
