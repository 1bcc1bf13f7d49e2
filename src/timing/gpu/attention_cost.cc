#include <algorithm>
#include <array>
#include <cmath>

#include "timing/gpu/cost_rules.h"
#include "work/real.h"

namespace stoker {
namespace {

/// The math path keeps the scores in memory: product out, scale and mask, softmax, dropout, each
/// reads and writes them, then the second product reads them. Backward touches them twice as often.
constexpr double kMathForwardPasses = 6, kMathBackwardPasses = 10;

/// How a fused kernel divides its work.
struct FusedKernel {
  double query_tile, key_tile;   ///< of the forward; a block owns one tile of queries
  double backward_tile;          ///< keys that one block of the backward owns
  std::array<double, 6> widths;  ///< head sizes that have a kernel; others are padded up
  double backward_share;         ///< rate of the backward over that of the forward
  double dropout_share;          ///< rate with dropout over that without
};
/// FlashAttention-2 (Dao, arXiv 2307.08691, section 3; csrc/flash_attn, flash_fwd_launch_template.h
/// and flash_bwd_launch_template.h). Backward reaches 63 % of an A100's peak where forward reaches
/// 73 % (ibid., section 4.1) at its best sizes, and falls off sooner: 0.75 is a prior, so is what
/// dropout's random numbers cost.
constexpr FusedKernel kFlash{128, 64, 128, {32, 64, 96, 128, 192, 256}, 0.75, 0.85};
/// xFormers' CUTLASS kernels as PyTorch has them (aten/src/ATen/native/transformers/cuda/
/// mem_eff_attention, kernel_forward.h): half the rate of FlashAttention-2 forward, less backward
/// (ibid., figures 4 and 5).
constexpr FusedKernel kEfficient{64, 64, 64, {32, 64, 96, 128, 192, 256}, 0.7, 0.85};
/// FP32 on tensor cores splits each operand into two TF32 numbers and multiplies thrice (CUTLASS,
/// OpMultiplyAddFastF32, which gemm_kernel_utils.h there takes from compute capability 8.0 on).
constexpr double kTf32Products = 3;
/// Tiles along a side from which on the diagonal does not count.
constexpr double kLongDiagonal = 4096;
constexpr double kSingle = 4;  ///< bytes of FP32, which statistics and accumulators have

double padded(std::int64_t width, const FusedKernel& kernel) {
  for (const double w : kernel.widths) {
    if (real(width) <= w) return w;
  }
  const double step = kernel.widths[0];
  return std::ceil(real(width) / step) * step;
}

/// Tiles that a window crosses: its own, and one more at each of its ends.
double windowed_tiles(const AttentionShape& s, double tile_q, double tile_k) {
  const double rows = std::ceil(real(s.query_length) / tile_q);
  const double width = s.pairs() / std::max(1.0, real(s.query_length));
  const double columns = std::ceil(real(s.key_length) / tile_k);
  return rows * std::min(columns, (width + tile_q) / tile_k + 1);
}

/// Tiles of scores that are computed for one head. A causal mask skips the tiles that it empties,
/// not the halves of those that it crosses.
double tiles(const AttentionShape& s, double tile_q, double tile_k) {
  const double rows = std::ceil(real(s.query_length) / tile_q);
  const double columns = std::ceil(real(s.key_length) / tile_k);
  if (s.windowed()) return windowed_tiles(s, tile_q, tile_k);
  if (!s.causal) return rows * columns;
  if (rows > kLongDiagonal) return rows * columns / 2;
  double count = 0;
  for (int row = 1; row <= static_cast<int>(rows); ++row)
    count += std::min(columns, std::ceil(row * tile_q / tile_k));
  return count;
}

/// FLOP/s of the whole device for one backend.
double rate_of(const Kernel& kernel, AttentionBackend backend, const GpuRates& device) {
  const auto unit = static_cast<std::size_t>(kernel.unit);
  // FlashAttention-2 is made of Ampere's instructions.
  if (backend == AttentionBackend::kFlash) return device.warp_level[unit];
  const double plain = device.rate[unit];
  const auto tf32 = static_cast<std::size_t>(MathUnit::kTf32Tensor);
  const bool single = kernel.dtype == DType::kF32 && backend == AttentionBackend::kMemoryEfficient;
  if (!single || !device.tensor[tf32]) return plain;
  // The kernel is built for tensor cores, whatever the flag for TF32 says.
  return device.rate[tf32] / kTf32Products;
}

/// The math path as one piece; lowering normally takes it apart. Masked by -inf, not skipped:
/// causal saves nothing here.
RawCost math_cost(const Kernel& kernel, const AttentionShape& s, double products, double scores,
                  const GpuRates& device, const Coefficients& coefficients) {
  RawCost cost;
  cost.cost_class = CostClass::kMathAttention;
  const double passes = s.backward ? kMathBackwardPasses : kMathForwardPasses;
  const double bytes = bytes_of(kernel) + scores * size_of(kernel.dtype) * passes;
  const double rate = device.rate[static_cast<std::size_t>(kernel.unit)];
  cost.compute = Seconds(2 * products * scores / (rate * coefficients.of(cost.cost_class).compute));
  cost.memory = memory_time(bytes, cost.cost_class, device, coefficients);
  return cost;
}

/// What runs beside the main kernel of a backward: row sums of gradient times output, and for
/// flash the query's gradient, which is summed in FP32: cleared, added to and converted.
double side_bytes(const Kernel& kernel, const AttentionShape& s, double width) {
  const double rows = real(s.batch) * real(s.heads) * real(s.query_length);
  const double element = size_of(kernel.dtype);
  double bytes = rows * (2 * real(s.value_dim) * element + kSingle);
  if (s.backend == AttentionBackend::kFlash)
    bytes += rows * (2 * kSingle * width + element * real(s.head_dim));
  return bytes;
}

}  // namespace

RawCost attention_cost(const Kernel& kernel, const AttentionShape& shape, const GpuRates& device,
                       const Coefficients& coefficients) {
  AttentionShape s = shape;
  if (s.value_dim <= 0) s.value_dim = s.head_dim;
  const double heads = real(s.batch) * real(s.heads);
  // Multiply-adds for one score: q k and p v forward; the scores again, dp, dv, dq, dk backward.
  const auto products = [&](double qk, double v) { return s.backward ? 3 * qk + 2 * v : qk + v; };
  if (s.backend == AttentionBackend::kMath) {
    return math_cost(kernel, s, products(real(s.head_dim), real(s.value_dim)),
                     heads * real(s.query_length) * real(s.key_length), device, coefficients);
  }
  const bool flash = s.backend == AttentionBackend::kFlash;
  const FusedKernel& fused = flash ? kFlash : kEfficient;
  RawCost cost;
  cost.cost_class = flash ? CostClass::kFlashAttention : CostClass::kMemoryEfficientAttention;
  double share = coefficients.of(cost.cost_class).compute;
  if (s.backward) share *= fused.backward_share;
  if (s.dropout) share *= fused.dropout_share;

  const double width = padded(s.head_dim, fused), value_width = padded(s.value_dim, fused);
  const double own = s.backward ? fused.backward_tile : fused.query_tile;
  const double tile_q = s.backward ? fused.key_tile : fused.query_tile;
  const double tile_k = s.backward ? fused.backward_tile : fused.key_tile;
  const double count = heads * tiles(s, tile_q, tile_k);
  const double flops = 2 * products(width, value_width) * count * tile_q * tile_k;
  // Blocks run in waves; the last one, or a single one that does not fill the GPU, leaves SMs idle.
  const double blocks = heads * std::ceil(real(s.backward ? s.key_length : s.query_length) / own);
  const double turns = std::max(std::ceil(blocks / device.sms), 1 / coefficients.kernel.lone_block);
  const double idle = std::max(1.0, turns * device.sms / std::max(1.0, blocks));
  cost.compute = Seconds(idle * flops / (rate_of(kernel, s.backend, device) * share));
  cost.memory = memory_time(bytes_of(kernel), cost.cost_class, device, coefficients);
  if (s.backward) {
    cost.latency = memory_time(side_bytes(kernel, s, width), cost.cost_class, device, coefficients);
  }
  return cost;
}

}  // namespace stoker
