#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnosis/findings/job_diagnosis.h"
#include "trace/trace_timeline.h"

namespace stoker {

/// Why a GPU had nothing to do, in the order in which a moment is given to one of them.
enum class IdleCause : std::uint8_t {
  kLoader,         ///< the loop was in its DataLoader's next()
  kSaving,         ///< it wrote a checkpoint
  kCollecting,     ///< Python's collector of garbage ran
  kAllocation,     ///< the host took or gave back memory of the GPU or pinned memory
  kPageableCopy,   ///< the host had waited for a copy from pageable memory
  kSynchronising,  ///< the host had waited for the GPU, and had yet to launch again
  kOptimizer,      ///< the host launched the optimizer's kernels
  kLaunching,      ///< the host was within an operator or a call of the runtime
  kPython,         ///< the host was within none
  kLatency,        ///< from the launch to the kernel's beginning, where that is short
  kDependency,     ///< likewise where it is long: the kernel waited for another stream or GPU
  kGraph,          ///< between two kernels of one CUDA graph
};
inline constexpr std::size_t kIdleCauses = 12;
/// A phrase for people, and its name in JSON.
[[nodiscard]] std::string_view words_of(IdleCause cause);
[[nodiscard]] std::string_view name_of(IdleCause cause);

/// A finding of a trace in words, to stand behind "lost by": "loading in the main process".
[[nodiscard]] std::string words_of_finding(std::string_view finding);

/// A kernel, or without a GPU an operator by its own time.
struct TraceShare {
  std::string name;
  double share = 0;  ///< of the time
  std::int64_t count = 0;
};

/// An operator or a class of modules by the GPU's time that it launched.
struct TraceOwner {
  std::string name;
  double share = 0, backward = 0;  ///< of the time; backward: of share, in the backward pass
  std::int64_t count = 0;          ///< kernels and copies
  std::int64_t modules = 0;        ///< of this class
};

/// Where a profile's time went; shares are of the time looked at.
struct TraceDiagnosis {
  std::optional<std::int64_t> device;  ///< nothing: no GPU worked
  double seconds = 0;                  ///< the time looked at
  std::int64_t steps = 0;              ///< ProfilerStep within it
  double step_s = 0;                   ///< median; 0: not known
  /// The GPU's shares; without one `compute` is the main thread's within operators.
  double compute = 0, communication = 0, copies = 0, idle = 0;
  double communication_all = 0;  ///< beside computing too
  std::array<double, kIdleCauses> idle_by{};
  double loader = 0;                ///< share in which the host was in the loader's next()
  std::vector<TraceShare> largest;  ///< largest first
  std::vector<TraceOwner> operators, modules;  ///< of a GPU's time, largest first
  double orphans = 0;  ///< of the GPU's work, by time, what has no launch in the trace
  std::int64_t orphan_count = 0;
  double overhead = 0;  ///< share in which the profiler itself was at work on the host
  std::vector<JobFinding> findings;
  std::string verdict;
  std::vector<std::string> notes;  ///< what limits this answer

  [[nodiscard]] double idle_of(IdleCause cause) const {
    return idle_by[static_cast<std::size_t>(cause)];
  }
};

/// `device`: the GPU asked for; default: the one that worked most. `where` names the file.
[[nodiscard]] Result<TraceDiagnosis> diagnose_trace(const TraceTimeline& timeline,
                                                    std::optional<std::int64_t> device,
                                                    const std::string& where);

}  // namespace stoker
