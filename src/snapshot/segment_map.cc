#include "snapshot/segment_map.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace stoker {
namespace {

using Kind = DeviceEvent::Kind;

void sort_runs_of_releases(std::vector<DeviceEvent>& events) {
  for (auto from = events.begin(); from != events.end();) {
    auto to = from;
    while (to != events.end() && gives_back(to->kind) == gives_back(from->kind)) ++to;
    if (gives_back(from->kind)) {
      std::sort(from, to,
                [](const DeviceEvent& a, const DeviceEvent& b) { return a.address < b.address; });
    }
    from = to;
  }
}

}  // namespace

std::string hex_address(std::int64_t address) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(address));
  return buffer;
}

std::string text_of(const DeviceEvent& event) {
  constexpr const char* kNames[] = {"cudaMalloc of ", "cudaFree of ", "mapping of ",
                                    "unmapping of "};
  return kNames[static_cast<std::size_t>(event.kind)] + human_bytes(event.bytes);
}

bool begins_new_segment(const DeviceEvent& done, const SegmentMap& segments,
                        const CachingAllocator& allocator) {
  if (done.kind == Kind::kMalloc) return true;
  if (done.kind != Kind::kMap) return false;
  const auto range = allocator.range_of(done.address);
  return !range || !segments.begins_at(range->count());
}

std::string compare_device_events(const std::vector<DeviceEvent>& done,
                                  const std::vector<DeviceEvent>& expected,
                                  const SegmentMap& segments, const CachingAllocator& allocator) {
  std::vector<DeviceEvent> real = done, wanted = expected;
  for (DeviceEvent& event : real) {
    if (begins_new_segment(event, segments, allocator)) {
      event.address = Bytes{-1};
    } else if (const auto address = segments.real(event.address.count())) {
      event.address = Bytes{*address};
    }
  }
  sort_runs_of_releases(real);
  sort_runs_of_releases(wanted);
  for (std::size_t i = 0; i < std::max(real.size(), wanted.size()); ++i) {
    if (i >= real.size()) {
      return "PyTorch asked the device for the " + text_of(wanted[i]) + ", the simulator did not";
    }
    if (i >= wanted.size()) {
      return "the simulator asked the device for the " + text_of(real[i]) + ", PyTorch did not";
    }
    if (real[i].address.count() == -1) real[i].address = wanted[i].address;
    if (real[i] != wanted[i]) {
      return "PyTorch: " + text_of(wanted[i]) + " at " + hex_address(wanted[i].address.count()) +
             "; the simulator: " + text_of(real[i]) + " at " + hex_address(real[i].address.count());
    }
  }
  return {};
}

}  // namespace stoker
