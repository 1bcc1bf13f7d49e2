#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// One operator that was timed on a device. What kinds and sizes there are, and which kernel they
/// stand for, is said in timing/learned/measured_operator.h; here they are names and numbers.
struct MeasuredOperator {
  std::string kind;      ///< "gemm"
  std::string function;  ///< of CPUs: the ATen operator, "gelu_backward"; else empty
  int threads = 0;       ///< of CPUs: torch.set_num_threads; else 0
  std::map<std::string, std::int64_t> sizes;  ///< "m", "n", "k"
  std::string precision = "fp32";             ///< fp32, tf32, fp16 or bf16
  std::string pass = "forward";               ///< backward, backward_input, backward_weight
  double time_us = 0;                         ///< of one call, launch floor included
  double spread = 0;                          ///< relative standard deviation of repeated timings
  bool warm = true;   ///< the operands may lie in the L2 cache, as after the call before
  std::string where;  ///< "lab.toml:31", for errors
};

/// A figure that is no operator's time: "fault_us", "forward_us". Names and units:
/// docs/reference/machine-file.md.
struct MeasuredFigure {
  std::string name;
  int threads = 0;  ///< as in MeasuredOperator
  double value = 0;
  double spread = 0;    ///< relative standard deviation of repeated measurements
  std::string where{};  ///< "lab.toml:31", for errors
};

/// What was measured on one very device: the [calibration] table of a machine file
/// (docs/reference/machine-file.md). Zero: not measured.
struct Calibration {
  double launch_floor_us =
      0;  ///< an empty kernel by the clock of the operators; in all their times
  double host_dispatch_us = 0;  ///< the host issuing one forward operator from Python
  double pinned_gbs = 0;        ///< host to device, page-locked
  double pageable_gbs = 0;
  std::vector<MeasuredFigure> figures;
  std::vector<MeasuredOperator> operators;
  /// Others used the device or the machine's cores meanwhile: bands widen.
  bool disturbed = false;
};

/// "gemm m=4096 n=4096 k=1024 tf32 forward".
[[nodiscard]] std::string label_of(const MeasuredOperator& measured);

/// The figure of this name for this number of threads; null: it was not measured.
[[nodiscard]] const MeasuredFigure* find_figure(const Calibration& calibration,
                                                std::string_view name, int threads);
/// Adds a figure, in the place of the one that it replaces.
void set_figure(Calibration& calibration, MeasuredFigure figure);

/// The [calibration] table that a machine file reads back as the same values.
[[nodiscard]] std::string calibration_toml(const Calibration& calibration);

}  // namespace stoker
