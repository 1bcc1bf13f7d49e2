#pragma once

#include "program/copy_way.h"
#include "timing/gpu/gpu_rates.h"

/// The rules of one class group each. Internal to src/timing.
namespace stoker {

/// What the rules of one class group return to cost_of: times of arithmetic and of memory
/// traffic, each already divided by its efficiency, and which class the efficiencies came from.
struct RawCost {
  Seconds compute, memory;
  Seconds latency;  ///< what neither hides: serial time steps, extra launches
  CostClass cost_class = CostClass::kUncosted;
  bool has_rule = true;
};

/// How long it takes to move `bytes`, at the class's share of bandwidth; faster while they stay in
/// the L2.
[[nodiscard]] Seconds memory_time(double bytes, CostClass cost_class, const GpuRates& device,
                                  const Coefficients& coefficients);
[[nodiscard]] double bytes_of(const Kernel& kernel);

/// One matrix product as the library would tile it.
struct Tiling {
  double m = 0, n = 0, k = 0, batch = 1;
  bool tensor = false;   ///< tensor-core tile shapes
  bool split_k = true;   ///< whether the library may split k over more blocks
  bool measured = true;  ///< whether the fitted rows hold such products; else k is split as it pays
  /// A product of two row-major operands: some architectures have one tile for all of them.
  bool untransposed = false;
};

/// Whether the fitted rows hold such products: k is no longer than theirs, and none is one of a
/// matrix and a vector, which cuBLAS has kernels of its own for, bound by memory.
[[nodiscard]] bool is_measured(const GemmShape& shape, bool tensor);

/// Which tile the library would take, and what it costs.
struct TileChoice {
  Seconds time;  ///< at efficiency 1, without split-K's own traffic
  double waves = 0;
  int tile_m = 0, tile_n = 0, splits = 1;
};

/// Least time over tile shapes and splits at `rate` FLOP/s of the whole device; flops = 2 b m n k.
[[nodiscard]] TileChoice best_tile(const Tiling& tiling, double rate, const GpuRates& device,
                                   const KernelCoefficients& coefficients);

[[nodiscard]] RawCost gemm_cost(const Kernel& kernel, const GemmShape& shape,
                                const GpuRates& device, const Coefficients& coefficients);
[[nodiscard]] RawCost convolution_cost(const Kernel& kernel, const ConvolutionShape& shape,
                                       const GpuRates& device, const Coefficients& coefficients);
[[nodiscard]] RawCost attention_cost(const Kernel& kernel, const AttentionShape& shape,
                                     const GpuRates& device, const Coefficients& coefficients);
[[nodiscard]] RawCost rnn_cost(const Kernel& kernel, const RnnShape& shape, const GpuRates& device,
                               const Coefficients& coefficients);
[[nodiscard]] RawCost memory_bound_cost(const Kernel& kernel, const GpuRates& device,
                                        const Coefficients& coefficients, CopyWay copy);

}  // namespace stoker
