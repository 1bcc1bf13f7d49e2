#pragma once

#include <string>
#include <string_view>

#include "diagnosis/trace/gpu_time.h"
#include "diagnosis/trace/trace_diagnosis.h"

namespace stoker {

/// Losses below are not reported, as in a watch.
inline constexpr double kWorthTurning = 0.05;
/// What a loss that is removed whole brings: " At most +25 % speed."
[[nodiscard]] std::string at_most(double lost);
/// A finding of kernels that a setting makes cheaper: its time is not lost whole.
[[nodiscard]] bool is_cheaper(std::string_view finding);
/// " Most is lost by loading in the main process: 33 % of the time."; `waits`: it is time lost.
[[nodiscard]] std::string verdict_end(const JobFinding& first, bool waits);

[[nodiscard]] double share_of_window(std::int64_t ns, TimeSpan window);

/// Kernels of a kind that a setting makes cheaper, told by their names.
struct KernelShares {
  double fp32 = 0;         ///< matrix products and convolutions outside of tensor cores
  double layout = 0;       ///< changes between channels-first and channels-last
  double elementwise = 0;  ///< element by element, reductions, normalisations: what fuses
  void add(std::string_view name, double share);
  /// Kernels beside each other on several streams take no more than all of them together.
  void bound(double all);
};

/// Findings and the verdict, from what `d` and `t` say of the time.
void add_gpu_findings(const TraceTimeline& timeline, const GpuTime& t, const KernelShares& kernels,
                      TraceDiagnosis& d);
void add_host_findings(const TraceTimeline& timeline, TraceDiagnosis& d);

}  // namespace stoker
