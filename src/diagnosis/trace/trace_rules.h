#pragma once

#include <string>
#include <string_view>

#include "diagnosis/trace/finding_list.h"
#include "diagnosis/trace/gpu_time.h"
#include "diagnosis/trace/trace_diagnosis.h"

namespace stoker {

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
