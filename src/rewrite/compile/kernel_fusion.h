#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "step/step.h"

namespace stoker {

/// What the code that torch.compile generates does in one kernel or one call of a library.
struct FusedKernel {
  std::vector<std::uint32_t> operators;  ///< of the step; one for a call of a library
  std::vector<TensorRef> reads;          ///< from memory: what it does not make itself
  std::vector<TensorRef> writes;         ///< to memory: what anything else reads
  bool library = false;                  ///< a product, a convolution, an attention ...
  bool across_rows = false;  ///< sums over rows, so its input is read in a pass of its own
};

/// Kernels of one run of a compiled graph, in the order in which they run.
///
/// `operators`: of the step, in order, all of that run. `outlives`, by storage: it is there when
/// the run has ended, so it has to be in memory.
///
/// The rules, after torch/_inductor (lowering.py, graph.py, scheduler.py, codegen/simd.py):
///  - Products, convolutions, attention, recurrent layers, sorts and indexed reads and writes are
///    calls of their own, whose operands are in memory.
///  - What is computed element by element is computed again by each that reads it, unless it
///    outlives the run, a library reads it, or several read it and it takes more than four tensors
///    (realize_reads_threshold), or it takes more than eight (realize_acc_reads_threshold).
///  - Kernels over the same number of elements are one where one makes or reads what the other
///    reads, in an order that all their operands allow. A reduction along rows joins what it reads
///    and what follows over its rows or its sums; one across rows only what follows over its sums,
///    and others like it.
[[nodiscard]] std::vector<FusedKernel> fused_kernels(const Step& step,
                                                     const std::vector<std::uint32_t>& operators,
                                                     const std::vector<bool>& outlives);

}  // namespace stoker
