#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "base/result.h"
#include "device/machine.h"
#include "operators/cost_class.h"

namespace stoker {

class CpuModel;
class LearnedTimes;

/// Fractions of what the data sheet promises that kernels of one class reach.
struct ClassCoefficients {
  double compute = 0.8;  ///< of the capped peak rate; below 1 unless an algorithm saves arithmetic
  double memory = 0.8;   ///< of the nameplate bandwidth
  double spread = 0.5;   ///< 90 % relative half-width of the class's time, from measured residuals
  /// Multiplies the time of the class beyond the floor, whether rules or learned trees gave it:
  /// what a calibration sets.
  double scale = 1;
};

struct KernelCoefficients {
  Micros floor{2.0};        ///< device time of an empty kernel and the gap to the next
  Micros launch{1.5};       ///< each further device kernel of the same library call
  double l2_speedup = 2.0;  ///< bandwidth while a kernel's bytes stay in the L2 cache
  double l2_share = 0.6;    ///< of the L2 that one kernel's operands can count on
  /// Batch norms, reductions, pooling, transposes and the operands of convolutions do not keep up
  /// with wide memories: their share of the bandwidth goes with (bandwidth / reference)^(exponent -
  /// 1).
  double bandwidth_exponent = 1;
  double bandwidth_reference = 936e9;  ///< bytes/s (RTX 3090)
  double tile_prologue = 16;  ///< elements of k that filling and draining a tile's pipeline costs
  double lone_block = 0.65;   ///< of an SM's rate that a single thread block on it reaches
  double unaligned_tensor =
      0.5;  ///< tensor-core rate when rows are 4-byte aligned; the root of it at 8 bytes
  Micros recurrence{4.0};      ///< latency of one time step of a recurrent layer
  Micros graph_gain{0.4};      ///< what a kernel of a CUDA graph saves of the gap before it
  double graph_spread = 0.15;  ///< 90 % relative half-width of the time spent in CUDA graphs
  /// Tensor cores of width w (FLOPs of an SM in one clock) sustain peak (w / reference)^(exponent -
  /// 1): wide ones are fed worse than narrow ones; more SMs or a higher clock cost nothing.
  double tensor_exponent = 0.65;
  /// tensor_exponent of single matrix products: large ones are fed better than convolutions.
  double tensor_gemm_exponent = 0.65;
  double tensor_reference = 512;  ///< FP16 FLOPs of an SM in one clock (GA102); half for TF32
  /// Rate of tensor-core convolutions in channels-last whose channels are no multiple of 16 bytes.
  double unaligned_convolution = 0.6;
  double unaligned_depthwise = 0.3;  ///< bandwidth of depthwise ones, likewise
};

/// Sustained power bounds the clock: share of TDP over the energy of one FLOP.
struct PowerCoefficients {
  double share = 0.85;     ///< of the TDP that arithmetic may draw
  double pj_28nm = 30;     ///< per FP32 FLOP: Kepler, Maxwell
  double pj_16nm = 14;     ///< Pascal
  double pj_12nm = 14;     ///< Volta, Turing
  double pj_8nm = 9;       ///< Ampere of compute capability 8.6 (RTX 3090: FP32 GEMMs at its limit)
  double pj_7nm = 6.5;     ///< A100 and its like, CDNA
  double pj_5nm = 4.2;     ///< Ada, Hopper, Blackwell
  double half_tensor = 5;  ///< FLOPs of an FP16/BF16 tensor core for the energy of one FP32 FLOP
  double tf32_tensor = 2.5;  ///< the same for TF32
};

/// Times on the core that data/measured/host was measured on; device/host_speed.h says how much
/// longer another takes. An operator is dispatched in `forward` or `backward`, launch of
/// its kernel included; what its library does on the host comes on top, for each kernel of it.
struct HostCoefficients {
  Micros forward{6};       ///< an operator called from Python, without a graph
  Micros autograd{0.6};    ///< recording it for the backward
  Micros module{0.75};     ///< a module's call around it
  Micros backward{6};      ///< one operator from the autograd engine
  Micros library{24};      ///< cuDNN: descriptors, plan, workspace of a convolution or batch norm
  Micros product{5};       ///< cuBLAS
  Micros rows{2};          ///< layer norm's further outputs
  Micros attention{12};    ///< a fused attention's checks, seeds and further outputs
  Micros conversion{3};    ///< copies and conversions of data types, autocast's among them
  Micros optimizer{10};    ///< one foreach or fused call over a list of tensors
  Micros list{0.3};        ///< each tensor that such a call is given, Python's books included
  Micros update{5};        ///< one operator on one tensor without autograd, after the backward
  Micros view{0.9};        ///< one view operator
  Micros launch{3};        ///< each further device kernel of an operator
  Micros compiled{5};      ///< a kernel or library call of torch.compile's generated code: a prior
  Micros synchronize{10};  ///< noticing on the host that the device has finished
  Micros step{100};        ///< Python between steps: zero_grad, loop, loader hand-over
  Micros graph{8};         ///< replay of a captured CUDA graph, whatever it holds
  Micros graph_kernel{0.15};  ///< and for each kernel in it
  double spread = 0.25;       ///< 90 % relative half-width of these times on a known core
  /// Speed of the host that runs the step, where these times say it themselves (a calibration's are
  /// of that very host: 1). 0: its processor decides (device/host_speed.h).
  double speed = 0;
};

struct CopyCoefficients {
  double pinned = 0.8;     ///< of the nominal PCIe bandwidth
  double pageable = 0.35;  ///< the same when the driver stages through its own buffer
  Micros latency{10};
};

/// What the half-widths of a step's band are multiplied by, by what is known of the GPU, and what
/// is added to them in squares for time that is further from what was measured.
struct BandCoefficients {
  double known = 1;       ///< rows of the GPU, or of its chip, are among those fitted
  double unseen = 1;      ///< there are none
  double calibrated = 1;  ///< the GPU was measured by its user
  double host = 1;        ///< the host's part, whatever the GPU
  double capped = 0;      ///< times the share of arithmetic whose rate power limits
  double backward = 0;    ///< times the share of the backward
  double latency = 0;     ///< times the share that neither arithmetic nor memory explains
  /// Times the share of convolutions on FP32 units where no rows are of the chip: they differ
  /// between chips more than products and memory do.
  double unseen_convolution = 0;
};

/// Measured time of an all-reduce by size, of one fabric and count of GPUs.
struct FabricFit {
  struct Point {
    double bytes = 0;
    Micros time;
  };
  std::string fabric;  ///< "NVLink 3", "PCIe"
  int ranks = 2;
  /// 90 % relative half-width of times on the machine that was measured, up to a size.
  struct Spread {
    double bytes = 0;
    double half_width = 0;
  };
  std::vector<Point> curve;     ///< at least two, rising
  std::vector<Spread> spreads;  ///< at least one, rising sizes; the last holds beyond them too

  [[nodiscard]] double spread_at(double bytes) const;
};

struct CollectiveCoefficients {
  std::vector<FabricFit> fits;
  double contention = 0.04;  ///< slow-down of kernels while a collective runs beside them
  /// Ranks that step together wait for the slowest: `straggler_wait` between two of them, longer by
  /// `straggler_growth` for each doubling, never more than `straggler_most` of the step; and
  /// `straggler` of the step for each doubling beyond 64. Published throughput on 2-16 V100, A100
  /// and H100 loses 3-8 ms a step whether it takes 50 or 1000.
  Micros straggler_wait{3700};
  double straggler_growth = 0.8;
  double straggler_most = 0.1;
  double straggler = 0;
  double pcie_share = 0.75;  ///< bus bandwidth over nominal PCIe bandwidth, where no fit exists
  double link_share = 0.75;  ///< bus bandwidth over half the link's two-way figure, likewise
  double network_share = 0.8;
  Micros alpha{30};  ///< plus alpha_rank for each rank, likewise
  Micros alpha_rank{6};
  Micros network_alpha{20};  ///< for each doubling of the nodes
  /// 90 % relative half-widths: of a machine with the links of the measured one; of a count of GPUs
  /// between measured ones, joined by a switch; of what nobody measured.
  double machine_spread = 0.05;
  double between_spread = 0.1;
  double unfitted_spread = 0.5;
};

/// What a set of coefficients was fitted on; each step down has a wider band.
enum class CoefficientLevel : std::uint8_t {
  kPrior,
  kBase,
  kArchitecture,
  kChip,
  kGpu,
  kCalibrated
};

/// Everything the time model knows beyond data sheets, resolved for one GPU. Built-in values are
/// priors (docs/models/time.md says where each comes from); the shipped file replaces what was
/// fitted.
struct Coefficients {
  std::array<ClassCoefficients, kCostClasses> classes;
  KernelCoefficients kernel;
  PowerCoefficients power;
  HostCoefficients host;
  CopyCoefficients copy;
  CollectiveCoefficients collective;
  BandCoefficients band;
  double common_spread =
      0.3;  ///< 90 % relative half-width that all kernels of a GPU share (clocks)
  double tensor_spread = 0.5;  ///< further half-width of time spent on tensor cores
  CoefficientLevel level = CoefficientLevel::kPrior;
  std::string basis = "built-in priors";
  /// Learned times of kernels; null: none, the analytic rules alone.
  std::shared_ptr<const LearnedTimes> residual;
  /// Rules and measured operators of a CPU; null: the rules alone.
  std::shared_ptr<const CpuModel> cpu;
  std::string residual_problem;  ///< why the learned times that ship cannot be used; empty: nothing

  Coefficients();
  [[nodiscard]] const ClassCoefficients& of(CostClass c) const {
    return classes[static_cast<std::size_t>(c)];
  }
};

/// Named values that replace some of a Coefficients: "gemm.compute", "kernel.floor_us" (which names
/// its unit, as files do). The form in which an architecture, a GPU or a calibration overrides what
/// is below it.
struct CoefficientPatch {
  std::vector<std::pair<std::string, double>> values;
  std::string basis;  ///< "4,045 convolution and 3,004 GEMM rows"
};

/// Refuses unknown names (nearest one suggested) and values that are not finite and positive.
[[nodiscard]] Status apply(const CoefficientPatch& patch, Coefficients& coefficients);

/// The value that a name stands for; error for unknown names.
[[nodiscard]] Result<double> value_of(const Coefficients& coefficients, std::string_view name);

/// "volta"; how the coefficient file names architectures.
[[nodiscard]] std::string_view architecture_name(Architecture architecture);

}  // namespace stoker
