#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/event_reader.h"
#include "trace/span_set.h"

namespace stoker {

enum class GpuWork : std::uint8_t {
  kCompute,        ///< kernels, and memory being set
  kCommunication,  ///< kernels of NCCL and RCCL
  kCopyIn,         ///< from the host's pinned memory
  kCopyInPageable,
  kCopyOut,     ///< to the host
  kCopyWithin,  ///< within a GPU or between two
};

/// What a trace tells of a collective, at its kernel or at the call that launches it.
struct CollectiveFacts {
  std::string kind;   ///< "allreduce"
  std::string group;  ///< the process group's name and ranks; empty: not told
  std::int64_t sequence = -1, elements = -1;
};

/// One kernel, copy or memset on a GPU.
struct GpuSpan {
  TimeSpan time;
  std::uint32_t name = 0;
  std::uint32_t stream = 0;  ///< of this trace's, by their first work in the file
  GpuWork work = GpuWork::kCompute;
  std::int32_t collective = -1;  ///< TraceTimeline::collectives
  std::int64_t correlation = 0;  ///< that of the call which launched it; 0: not told
};

enum class HostWork : std::uint8_t {
  kOperator,     ///< an operator of PyTorch
  kCall,         ///< of the CUDA or HIP runtime, none of the following
  kSynchronise,  ///< such a call that waits for the GPU
  kAllocate,     ///< such a call that takes or gives back memory
  kLoader,       ///< the loop in its DataLoader's next()
  kOptimizer,    ///< Optimizer.step and zero_grad
  kSave,         ///< writing a checkpoint
  kCollect,      ///< Python's collector of garbage
  kModule,       ///< the forward of an nn.Module
  kAnnotation,   ///< record_function of the script
};

struct HostSpan {
  TimeSpan time;
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
  HostWork work = HostWork::kOperator;
  std::int32_t collective = -1;  ///< TraceTimeline::collectives
  /// Autograd's number of an operator: a forward operator and its backward share it. -1: not told.
  std::int32_t sequence = -1;
};

/// What a profile tells of time: columns in the order of their beginning, names kept once.
class TraceTimeline final : public TraceSink {
 public:
  void restart() override;
  void take(const ProfilerEvent& event) override;
  /// Sorts what was taken; before it nothing below holds.
  void finish();

  [[nodiscard]] const std::vector<HostSpan>& host() const { return host_; }
  [[nodiscard]] const std::vector<TimeSpan>& steps() const { return steps_; }  ///< ProfilerStep#N
  /// N of the last step that begins before a moment; -1: none does.
  [[nodiscard]] std::int64_t step_number(std::int64_t moment) const;
  /// For each of host() the innermost that encloses it, -1: none.
  [[nodiscard]] const std::vector<std::int32_t>& outer() const { return outer_; }
  [[nodiscard]] const std::vector<CollectiveFacts>& collectives() const { return collectives_; }
  [[nodiscard]] const std::map<std::int64_t, std::vector<GpuSpan>>& gpus() const { return gpus_; }
  [[nodiscard]] const std::string& name(std::uint32_t id) const { return names_[id]; }
  /// The call on the host that launched what has this correlation.
  [[nodiscard]] const HostSpan* launch(std::int64_t correlation) const;
  /// The loop itself loads: its DataLoader has no workers.
  [[nodiscard]] bool loads_in_main_process() const { return own_loading_; }
  [[nodiscard]] bool empty() const { return host_.empty() && gpus_.empty(); }
  /// What the profiler itself took, on the host: filling and handing over its buffers.
  [[nodiscard]] const std::vector<TimeSpan>& overhead() const { return overhead_; }
  /// Events without time, or with one that no trace has.
  [[nodiscard]] std::int64_t untimed() const { return untimed_; }

 private:
  std::uint32_t name_id(const std::string& name);
  std::uint32_t thread_id(const ProfilerEvent& event);
  std::int32_t collective_of(const ProfilerEvent& event);
  void take_gpu(const ProfilerEvent& event, GpuWork work, TimeSpan time);
  void take_host(const ProfilerEvent& event, HostWork work, TimeSpan time);
  void take_annotation(const ProfilerEvent& event, TimeSpan time, HostWork otherwise);

  std::vector<HostSpan> host_;
  std::vector<std::int32_t> outer_;
  std::vector<TimeSpan> steps_, overhead_;
  std::vector<std::int64_t> step_numbers_;  ///< of steps_
  std::vector<CollectiveFacts> collectives_;
  std::map<std::int64_t, std::vector<GpuSpan>> gpus_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> name_ids_, thread_ids_;
  std::unordered_map<std::int64_t, std::uint32_t> launches_;  ///< into host_
  std::vector<std::int64_t> correlations_;                    ///< of host_, until finish()
  bool own_loading_ = false;
  std::int64_t untimed_ = 0;
};

/// The span that encloses each on its thread, the innermost; -1: none. `spans` are sorted by their
/// beginning, longer ones first; those that do not nest count as beside each other.
[[nodiscard]] std::vector<std::int32_t> enclosing(const std::vector<HostSpan>& spans);

}  // namespace stoker
