#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "memory/cuda/allocator_config.h"
#include "trace/event_reader.h"

namespace stoker {

/// One `[memory]` event of torch.profiler (`profile_memory=True`) on a CUDA device. Its bytes are
/// those of the whole block: rounded, with its slack.
struct KinetoMemoryEvent {
  std::int64_t bytes = 0;    ///< negative: a free
  std::int64_t address = 0;  ///< 0: traces of 2021 do not tell
  /// After the event, whole blocks; absent in traces of 2021.
  std::optional<std::int64_t> total_allocated, total_reserved;
  double time_us = 0;
};

/// The memory events of one device, by time.
struct KinetoMemory {
  std::int64_t device = 0;
  std::vector<KinetoMemoryEvent> events;
  std::int64_t other_devices = 0;   ///< events of other CUDA devices, left out
  std::int64_t host_events = 0;     ///< of the host's allocator, left out
  std::int64_t broken_events = 0;   ///< of no or absurd bytes, left out
  std::int64_t untimed_events = 0;  ///< without a readable time: taken where they stand in the file
  TraceReading reading;
};

/// Keeps the memory events of a trace, of every device.
class KinetoMemorySink final : public TraceSink {
 public:
  void restart() override;
  void take(const ProfilerEvent& event) override;
  [[nodiscard]] bool empty() const { return by_device_.empty(); }
  /// The device with the most events when none is named.
  [[nodiscard]] Result<KinetoMemory> memory(const TraceReading& reading, const std::string& where,
                                            std::optional<std::int64_t> device = {}) const;

 private:
  std::map<std::int64_t, std::vector<KinetoMemoryEvent>> by_device_;
  std::int64_t host_events_ = 0, broken_ = 0, untimed_ = 0, total_ = 0;
};

/// `content` is the trace as JSON; `where` names it in errors. The device with the most events when
/// none is named.
[[nodiscard]] Result<KinetoMemory> parse_kineto_memory(std::string_view content,
                                                       const std::string& where,
                                                       std::optional<std::int64_t> device = {});

/// What the trace alone says, without a simulation.
struct KinetoSummary {
  std::int64_t allocations = 0, frees = 0;
  std::int64_t freed_from_before = 0;  ///< frees of blocks that were allocated before the trace
  Bytes bytes_from_before;
  std::int64_t kept = 0;  ///< allocated and not freed within the trace
  /// Most that was allocated above the beginning of the trace, and after which event.
  Bytes rise;
  std::int64_t peak_event = -1;
  std::optional<Bytes> allocated_peak, reserved_peak;  ///< where the trace has totals
  std::int64_t total_mismatches = 0;  ///< events whose total is not the one before plus their bytes
};
[[nodiscard]] KinetoSummary summarize(const KinetoMemory& memory);

struct KinetoComparisonOptions {
  AllocatorConfig allocator;
  /// The trace is played this often in a row, so that the simulator comes to rest as the training
  /// had; the last time is compared.
  int passes = 3;
};

/// The trace's sequence in the simulator, against what the trace says.
struct KinetoComparison {
  std::int64_t allocations = 0;
  /// Allocations for which the simulator hands out a block of exactly the trace's size.
  std::int64_t same_size = 0;
  /// Events after which the simulator's allocated bytes have moved as the trace's total has; of
  /// those events that have a total.
  std::int64_t same_total = 0, with_total = 0;
  /// Allocations that reuse, in the trace, an address freed within it; of these, those for which
  /// the simulator reuses the address freed by the same event.
  std::int64_t reuses = 0, same_reuse = 0;
  /// cudaMalloc calls of the last pass: none, when the simulator has come to rest.
  std::int64_t late_segments = 0;
  Bytes reserved;  ///< by the simulator for the traced blocks alone
  std::optional<Bytes> traced_reserved;
};
[[nodiscard]] KinetoComparison compare_with_kineto(const KinetoMemory& memory,
                                                   const KinetoComparisonOptions& options = {});

}  // namespace stoker
