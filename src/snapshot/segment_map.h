#pragma once

// Internal to the replay: which simulated segment stands for which real one.

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/cuda/allocator.h"

namespace stoker {

class SegmentMap {
 public:
  void add(std::int64_t simulated, std::int64_t real) {
    real_[simulated] = real;
    simulated_[real] = simulated;
  }
  void remove(std::int64_t simulated) {
    const auto found = real_.find(simulated);
    if (found == real_.end()) return;
    simulated_.erase(found->second);
    real_.erase(found);
  }
  /// The real address of a simulated one inside a segment.
  [[nodiscard]] std::optional<std::int64_t> real(std::int64_t simulated) const {
    auto next = real_.upper_bound(simulated);
    if (next == real_.begin()) return std::nullopt;
    --next;
    return next->second + (simulated - next->first);
  }
  /// Where the segment that really begins there begins in the simulation.
  [[nodiscard]] std::optional<std::int64_t> simulated_begin(std::int64_t real) const {
    const auto found = simulated_.find(real);
    return found == simulated_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] bool begins_at(std::int64_t simulated) const { return real_.contains(simulated); }

 private:
  std::map<std::int64_t, std::int64_t> real_;                 ///< by simulated beginning
  std::unordered_map<std::int64_t, std::int64_t> simulated_;  ///< by real beginning
};

[[nodiscard]] constexpr bool gives_back(DeviceEvent::Kind kind) {
  return kind == DeviceEvent::Kind::kFree || kind == DeviceEvent::Kind::kUnmap;
}
/// "cudaMalloc of 20.0 MiB"
[[nodiscard]] std::string text_of(const DeviceEvent& event);
[[nodiscard]] std::string hex_address(std::int64_t address);

/// What the simulator asked of the device (`done`, simulated addresses) against what PyTorch asked
/// (`expected`, real ones). The order within a run of releases does not matter; where a new segment
/// begins is CUDA's choice. Empty when they agree, else what differs first.
[[nodiscard]] std::string compare_device_events(const std::vector<DeviceEvent>& done,
                                                const std::vector<DeviceEvent>& expected,
                                                const SegmentMap& segments,
                                                const CachingAllocator& allocator);

/// Whether a simulated address begins a segment, or a range, that has not been met before.
[[nodiscard]] bool begins_new_segment(const DeviceEvent& done, const SegmentMap& segments,
                                      const CachingAllocator& allocator);

}  // namespace stoker
