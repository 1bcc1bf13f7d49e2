#include "snapshot/growth.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "snapshot/live_memory.h"

namespace stoker {
namespace {

/// Fewer cycles may be one step's parts.
constexpr std::int64_t kFewestCycles = 5;
/// Blocks of so large a part of the cycles stay, where a line leaves some of each.
constexpr double kMostCycles = 0.6;
/// A fall of this part of the deepest one is a cycle's, and not a temporary's.
constexpr double kFall = 0.5;
/// Falls below say nothing: blocks of PyTorch's small pool come and go.
constexpr std::int64_t kLeastFall = 1 << 20;

/// Bytes that the program holds after each event, above those at the trace's beginning.
std::vector<std::int64_t> held_after(const std::vector<TraceEvent>& trace, std::size_t events) {
  std::vector<std::int64_t> held(events);
  std::unordered_map<std::int64_t, std::int64_t> live;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < events; ++i) {
    const TraceEvent& e = trace[i];
    if (e.action == TraceAction::kAlloc) {
      live[e.address] = e.size;
      now += e.size;
    } else if (e.action == TraceAction::kFreeRequested || e.action == TraceAction::kFreeCompleted) {
      if (const auto found = live.find(e.address); found != live.end()) {
        now -= found->second;
        live.erase(found);
      }
    }
    held[i] = now;
  }
  return held;
}

/// Where memory is lowest between two falls: the first event of each cycle but the first.
std::vector<std::size_t> cycle_starts(const std::vector<std::int64_t>& held) {
  std::int64_t high = 0, deepest = 0;
  for (const std::int64_t now : held) {
    high = std::max(high, now);
    deepest = std::max(deepest, high - now);
  }
  std::vector<std::size_t> starts;
  if (deepest < kLeastFall) return starts;
  const auto fall = static_cast<std::int64_t>(kFall * static_cast<double>(deepest));
  high = 0;
  std::int64_t low = 0;
  std::size_t low_at = 0;
  bool fallen = false;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const std::int64_t now = held[i];
    if (!fallen) {
      high = std::max(high, now);
      if (high - now < fall) continue;
      fallen = true;
      low = now, low_at = i;
    } else if (now < low) {
      low = now, low_at = i;
    } else if (now - low >= fall) {
      starts.push_back(low_at + 1);
      fallen = false;
      high = now;
    }
  }
  return starts;
}

}  // namespace

std::vector<GrowingHolder> growing_holders(const Snapshot& snapshot, std::size_t device,
                                           std::int64_t end) {
  std::vector<GrowingHolder> growing;
  if (!snapshot.has_trace(device)) return growing;
  const std::vector<TraceEvent>& trace = snapshot.traces[device];
  const std::size_t events =
      end < 0 ? trace.size() : std::min(trace.size(), static_cast<std::size_t>(end) + 1);
  const std::vector<std::size_t> starts = cycle_starts(held_after(trace, events));
  // What lies before the first is the start of the run, what lies behind the last goes on.
  const std::int64_t whole = static_cast<std::int64_t>(starts.size()) - 1;
  if (whole < kFewestCycles) return growing;
  std::map<std::int64_t, std::size_t> live;
  for (std::size_t i = 0; i < events; ++i) {
    const TraceEvent& e = trace[i];
    if (e.action == TraceAction::kAlloc) live[e.address] = i;
    if (e.action == TraceAction::kFreeRequested || e.action == TraceAction::kFreeCompleted)
      live.erase(e.address);
  }
  struct Stayed {
    std::int64_t bytes = 0, blocks = 0;
    std::set<std::size_t> cycles;
  };
  std::map<std::string, Stayed> by_line;
  for (const auto& [address, event] : live) {
    if (event < starts.front() || event >= starts.back()) continue;
    Stayed& stayed = by_line[user_line(snapshot, trace[event].stack)];
    stayed.bytes += trace[event].size;
    ++stayed.blocks;
    stayed.cycles.insert(
        static_cast<std::size_t>(std::ranges::upper_bound(starts, event) - starts.begin()));
  }
  for (const auto& [where, stayed] : by_line) {
    const auto cycles = static_cast<std::int64_t>(stayed.cycles.size());
    if (static_cast<double>(cycles) < kMostCycles * static_cast<double>(whole)) continue;
    growing.push_back({where, Bytes(stayed.bytes), stayed.blocks, cycles, whole});
  }
  std::ranges::stable_sort(
      growing, [](const GrowingHolder& a, const GrowingHolder& b) { return a.bytes > b.bytes; });
  return growing;
}

}  // namespace stoker
