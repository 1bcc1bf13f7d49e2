#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/trace/trace_diagnosis.h"

namespace stoker {

/// What a trace's time is looked at for, beside its shares.
struct HostWaits {
  std::int64_t count = 0;  ///< within the window
  std::string operation;   ///< the operator that waits most often: "aten::item"
  std::int64_t of_it = 0;
};

/// When what happened; no moment is in two of these but `communicating`, which may lie beside
/// `computing`.
struct TraceMoments {
  TimeSpan window;
  SpanSet computing, communicating, copying;
  std::array<SpanSet, kIdleCauses> idling;
};

/// One GPU's time: who worked, and why it idled.
struct GpuTime {
  TimeSpan window;
  std::array<std::int64_t, kIdleCauses> idle{};  ///< ns
  std::int64_t compute = 0, communication = 0, copies = 0, communication_all = 0;
  std::int64_t pageable = 0;  ///< of `copies`, from pageable memory
  std::int64_t copies_in = 0;
  std::int64_t kernels = 0, median_kernel = 0, without_launch = 0;
  std::int64_t optimizer_kernels = 0;  ///< ns of kernels that the optimizer launched
  HostWaits waits;
  std::string python_in;  ///< the script's annotation around most of IdleCause::kPython
  std::int64_t python_in_it = 0;
  TraceMoments moments;
};

/// The upper one of two in the middle; 0 of none.
[[nodiscard]] std::int64_t median_of(std::vector<std::int64_t> values);

/// A trace's diagnosis, with the moments that it is made of.
struct DiagnosedTrace {
  TraceDiagnosis diagnosis;
  TraceMoments moments;
  const std::vector<GpuSpan>* work = nullptr;  ///< of the GPU; nullptr: none worked
};
[[nodiscard]] Result<DiagnosedTrace> diagnose_in_full(const TraceTimeline& timeline,
                                                      std::optional<std::int64_t> device,
                                                      const std::string& where);

[[nodiscard]] GpuTime gpu_time(const TraceTimeline& timeline, const std::vector<GpuSpan>& work,
                               TimeSpan window);

}  // namespace stoker
