#include "snapshot/kineto_memory.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
/// Most bytes of all events together, so that no sum can overflow; what goes beyond is left out and
/// counted.
constexpr std::int64_t kMaxTotal = std::int64_t{1} << 60;

}  // namespace

void KinetoMemorySink::restart() { *this = KinetoMemorySink(); }

void KinetoMemorySink::take(const ProfilerEvent& event) {
  if (event.name != "[memory]") return;
  constexpr std::int64_t kCuda = 1;
  const auto type = event.arg("Device Type");
  if (!type) return void(++broken_);
  if (*type != kCuda) return void(++host_events_);
  KinetoMemoryEvent e;
  e.bytes = std::clamp(event.arg("Bytes").value_or(0), -kMaxTotal, kMaxTotal);
  const std::int64_t moved = std::abs(e.bytes);
  if (moved == 0 || moved > kMaxBytes || moved > kMaxTotal - total_) return void(++broken_);
  total_ += moved;
  e.address = event.arg("Addr").value_or(0);
  const auto total = [&](std::string_view key) -> std::optional<std::int64_t> {
    const auto bytes = event.arg(key);
    return bytes && *bytes >= 0 && *bytes <= kMaxBytes ? bytes : std::nullopt;
  };
  e.total_allocated = total("Total Allocated");
  e.total_reserved = total("Total Reserved");
  auto& events = by_device_[event.arg("Device Id").value_or(0)];
  if (!event.start_ns) ++untimed_;
  constexpr double kNanosAMicro = 1e3;
  e.time_us = event.start_ns   ? static_cast<double>(*event.start_ns) / kNanosAMicro
              : events.empty() ? 0
                               : events.back().time_us;
  events.push_back(e);
}

Result<KinetoMemory> KinetoMemorySink::memory(const TraceReading& reading, const std::string& where,
                                              std::optional<std::int64_t> device) const {
  KinetoMemory memory;
  memory.host_events = host_events_;
  memory.broken_events = broken_;
  memory.untimed_events = untimed_;
  memory.reading = reading;
  const std::vector<KinetoMemoryEvent>* most = nullptr;
  for (const auto& [id, events] : by_device_) {
    const bool better = device ? id == *device : !most || events.size() > most->size();
    if (!better) continue;
    most = &events;
    memory.device = id;
  }
  if (!most && device)
    return fail(ErrorCode::kUnsupported,
                "holds no [memory] events of CUDA device " + std::to_string(*device), where);
  if (!most)
    return fail(ErrorCode::kUnsupported,
                "has no [memory] events of a CUDA device (profile_memory=True records them), nor "
                "operators and kernels as torch.profiler writes them, among its " +
                    with_commas(reading.events) + " events; is it another program's trace?",
                where);
  memory.events = *most;
  for (const auto& [id, events] : by_device_) {
    if (id != memory.device) memory.other_devices += static_cast<std::int64_t>(events.size());
  }
  std::stable_sort(
      memory.events.begin(), memory.events.end(),
      [](const KinetoMemoryEvent& a, const KinetoMemoryEvent& b) { return a.time_us < b.time_us; });
  return memory;
}

Result<KinetoMemory> parse_kineto_memory(std::string_view content, const std::string& where,
                                         std::optional<std::int64_t> device) {
  KinetoMemorySink sink;
  const TraceReading reading = TRY(read_trace_events(content, where, sink));
  return sink.memory(reading, where, device);
}

}  // namespace stoker
