#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace_timeline.h"

namespace stoker {

/// Who had a GPU's time: the operator or module that launched its work.
struct GpuOwner {
  std::string name;
  std::int64_t ns = 0, backward_ns = 0;  ///< backward_ns: of ns, launched by the backward pass
  std::int64_t count = 0;                ///< kernels and copies
  std::int64_t modules = 0;              ///< of this class, that launched something
};
struct GpuOwners {
  /// The innermost operator around each launch, largest first; what none encloses is apart.
  std::vector<GpuOwner> operators;
  /// Classes of the innermost module around each launch, or in the backward pass around the forward
  /// operator of the same sequence number, largest first; empty without with_stack=True.
  std::vector<GpuOwner> modules;
  std::int64_t all_ns = 0;
  std::int64_t orphan_ns = 0, orphans = 0;  ///< work whose launch is not in the trace
};

[[nodiscard]] GpuOwners gpu_owners(const TraceTimeline& timeline, const std::vector<GpuSpan>& work,
                                   TimeSpan window);

}  // namespace stoker
