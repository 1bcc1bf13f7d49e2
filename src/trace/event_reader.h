#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "trace/trace_origin.h"

namespace stoker {

/// One entry of `traceEvents` (Chrome's trace format, as torch.profiler writes it).
struct ProfilerEvent {
  std::string name, category, phase;
  std::string process, thread;  ///< numbers as text: some writers put words there
  /// Nanoseconds since the trace's own beginning of time; the file gives microseconds.
  std::optional<std::int64_t> start_ns, duration_ns;
  /// Members of `args` that are numbers, rounded; quoted numbers too.
  std::vector<std::pair<std::string, std::int64_t>> args;
  /// Members of `args` that name a collective or its group, as they are written.
  std::vector<std::pair<std::string, std::string>> texts;

  [[nodiscard]] std::optional<std::int64_t> arg(std::string_view key) const;
  /// Empty: it has none.
  [[nodiscard]] std::string_view text(std::string_view key) const;
};

/// Takes the events of a trace in the order of the file.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// What was taken so far is void: the file is read again, its damage repaired.
  virtual void restart() = 0;
  virtual void take(const ProfilerEvent& event) = 0;
};

/// Most that a trace may hold once unpacked: profiles of a few steps, since larger ones are cut by
/// the profiler's schedule.
inline constexpr Bytes kMostTrace{4LL << 30};

/// How the reading went.
struct TraceReading {
  std::int64_t events = 0;          ///< of any kind
  std::int64_t damaged_places = 0;  ///< events that are no JSON at all, passed over
  std::int64_t repaired = 0;        ///< places that were no JSON: inf, NaN, escapes that it has not
  bool cut = false;                 ///< the file ends early
  TraceOrigin origin{};
};

/// `content` is the trace as JSON; `where` names it in errors. Event by event, never as a tree.
[[nodiscard]] Result<TraceReading> read_trace_events(std::string_view content,
                                                     const std::string& where, TraceSink& sink);
/// The file, unpacked where it is gzip.
[[nodiscard]] Result<TraceReading> read_trace_file(const std::filesystem::path& path,
                                                   TraceSink& sink);

}  // namespace stoker
