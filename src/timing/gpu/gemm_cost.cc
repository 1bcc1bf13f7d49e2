#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

/// Output tiles of one thread block and the share of an SM's rate that their inner loop reaches;
/// relative to the best one. FP32 values reproduce 97,000 measured GEMMs (docs/models/time.md);
/// tensor-core values are priors, larger tiles being needed to feed faster units.
struct Tile {
  int m, n;
  double efficiency;
};
constexpr std::array kTiles{Tile{128, 128, 1.0}, Tile{128, 64, 0.92}, Tile{64, 128, 0.92},
                            Tile{64, 64, 0.80},  Tile{32, 128, 0.75}, Tile{128, 32, 0.75},
                            Tile{32, 32, 0.50}};
constexpr std::array kTensorTiles{Tile{256, 128, 1.0}, Tile{128, 256, 1.0}, Tile{128, 128, 0.95},
                                  Tile{128, 64, 0.80}, Tile{64, 128, 0.80}, Tile{64, 64, 0.60},
                                  Tile{32, 64, 0.35},  Tile{64, 32, 0.35},  Tile{32, 32, 0.20}};
/// Pieces of k at most: what the fitted rows are explained with, and where no row is (by judgement:
/// several for each SM; kernels of the rows split k up to 162 times, linear layers on an A100).
constexpr int kMostSplits = 32, kMostSplitsUnmeasured = 1024;
/// The longest k of the rows of products is 65,430 (NeuSight's table of GEMMs).
constexpr std::int64_t kLongestMeasured = 65536;
/// No library splits k into pieces shorter than this: the pipeline of a tile would never fill.
constexpr double kShortestPiece = 128;

/// cuBLAS takes one tile for nearly all products of untransposed operands on some architectures,
/// whatever their size (kernel names of 40,000 products on P100, P4, A100, L4); no tile: it
/// chooses.
std::optional<Tile> fixed_tile(Architecture architecture) {
  switch (architecture) {
    case Architecture::kMaxwell:
    case Architecture::kPascal:
      return Tile{64, 128, 0.92};
    case Architecture::kAmpere:
    case Architecture::kAda:
      return Tile{128, 128, 1.0};
    default:
      return std::nullopt;
  }
}

double blocks(double size, int tile) { return std::ceil(size / tile); }

template <std::size_t N>
TileChoice choose(const std::array<Tile, N>& tiles, const Tiling& t, double rate,
                  const GpuRates& device, const KernelCoefficients& coefficients) {
  const double sms = device.sms;
  const double rate_of_sm = rate / sms;
  const int most_splits = t.measured ? kMostSplits : kMostSplitsUnmeasured;
  TileChoice best;
  best.time = Seconds(HUGE_VAL);
  for (const Tile& tile : tiles) {
    const double count = t.batch * blocks(t.m, tile.m) * blocks(t.n, tile.n);
    for (int splits = 1; splits <= most_splits; splits *= 2) {
      const double piece = std::ceil(t.k / splits);
      if (splits > 1 && ((!t.split_k && t.measured) || piece < kShortestPiece)) break;
      const double waves = std::ceil(count * splits / sms);
      // A block alone on its SM cannot hide its own latencies.
      const double turns = std::max(waves, 1 / coefficients.lone_block);
      const Seconds arithmetic(turns * 2.0 * tile.m * tile.n *
                               (piece + coefficients.tile_prologue) /
                               (rate_of_sm * tile.efficiency));
      // Partial sums are written and read once more, in FP32.
      const Seconds extra(splits == 1 ? 0 : 8.0 * t.batch * t.m * t.n * splits / device.bandwidth);
      if (arithmetic + extra < best.time) {
        best = {arithmetic + extra, waves, tile.m, tile.n, splits};
      }
      if (count * splits >= 2 * sms) break;  // more pieces than two full waves gain nothing
    }
  }
  return best;
}

/// Tensor cores read 16 bytes at once, so the library needs each operand's leading dimension to be
/// a multiple of that. The rate falls with every halving of the alignment that is there: to the
/// root of `unaligned_tensor` at 8 bytes, to all of it at 4, to its power 1.5 at 2 (a prior; ViTs
/// and mixers on an RTX 3090 fit it).
double alignment_factor(const GemmShape& s, DType dtype, double unaligned_tensor) {
  const std::int64_t size = dtype == DType::kF16 || dtype == DType::kBf16 ? 2 : 4;
  const std::int64_t lead_a = s.transpose_a ? s.m : s.k;
  const std::int64_t lead_b = s.transpose_b ? s.k : s.n;
  double halvings = 0;
  for (std::int64_t bytes = 16; bytes > size; bytes /= 2) {
    if (lead_a * size % bytes != 0 || lead_b * size % bytes != 0 || s.n * size % bytes != 0)
      ++halvings;
  }
  return std::pow(unaligned_tensor, halvings / 2);
}

CostClass class_of(bool tensor, bool weight, bool batched) {
  if (!tensor) return weight ? CostClass::kGemmWeight : CostClass::kGemm;
  if (batched) return CostClass::kTensorGemmBatched;
  return weight ? CostClass::kTensorGemmWeight : CostClass::kTensorGemm;
}

}  // namespace

bool is_measured(const GemmShape& shape, bool tensor) {
  return shape.k <= kLongestMeasured && (tensor || std::min(shape.m, shape.n) > 1);
}

TileChoice best_tile(const Tiling& tiling, double rate, const GpuRates& device,
                     const KernelCoefficients& coefficients) {
  if (!(tiling.m > 0) || !(tiling.n > 0) || !(tiling.k > 0) || !(tiling.batch > 0)) return {};
  if (!tiling.measured && !tiling.tensor && std::min(tiling.m, tiling.n) <= 1) {
    // A matrix times a vector: each element is read once, and no tile is computed in vain.
    return {.time = Seconds(2 * tiling.batch * tiling.m * tiling.n * tiling.k / rate),
            .waves = 1,
            .tile_m = 1,
            .tile_n = 1};
  }
  if (tiling.untransposed && !tiling.tensor) {
    if (const auto tile = fixed_tile(device.architecture))
      return choose(std::array{*tile}, tiling, rate, device, coefficients);
  }
  return tiling.tensor ? choose(kTensorTiles, tiling, rate, device, coefficients)
                       : choose(kTiles, tiling, rate, device, coefficients);
}

RawCost gemm_cost(const Kernel& kernel, const GemmShape& shape, const GpuRates& device,
                  const Coefficients& coefficients) {
  const auto unit = static_cast<std::size_t>(kernel.unit);
  const bool tensor = device.tensor[unit];
  // A transposed first operand is what a weight gradient has: dW = dY^T X, k the number of tokens.
  const bool weight =
      shape.transpose_a && !shape.transpose_b && kernel.phase == StepPhase::kBackward;
  const bool untransposed = !shape.transpose_a && !shape.transpose_b;
  RawCost cost;
  cost.cost_class = class_of(tensor, weight, shape.batch > 1);
  const Tiling tiling{.m = static_cast<double>(shape.m),
                      .n = static_cast<double>(shape.n),
                      .k = static_cast<double>(shape.k),
                      .batch = static_cast<double>(shape.batch),
                      .tensor = tensor,
                      .split_k = tensor || !untransposed,
                      .measured = is_measured(shape, tensor),
                      .untransposed = untransposed};
  double efficiency = coefficients.of(cost.cost_class).compute;
  if (tensor)
    efficiency *= alignment_factor(shape, kernel.dtype, coefficients.kernel.unaligned_tensor);
  const bool single = tensor && shape.batch == 1;
  const double rate = single ? device.product[unit] : device.rate[unit];
  cost.compute = best_tile(tiling, rate, device, coefficients.kernel).time / efficiency;
  cost.memory = memory_time(bytes_of(kernel), cost.cost_class, device, coefficients);
  return cost;
}

}  // namespace stoker
