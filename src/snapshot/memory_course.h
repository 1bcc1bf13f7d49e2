#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/snapshot.h"

/// What a chart of a snapshot needs besides one moment: memory over the trace, and how full each
/// segment is.
namespace stoker {

/// Bytes that one line of the user's code holds, over MemoryCourse::event.
struct HolderCourse {
  std::string where;
  std::vector<Bytes> bytes;
};

/// Memory of one device over its trace. Of each stretch of events the moment is kept at which most
/// was in use, so that no peak is lost; blocks count as whole ones, without slack.
struct MemoryCourse {
  std::vector<std::int64_t> event;    ///< after which each point holds, from 0
  std::vector<HolderCourse> holders;  ///< in the order in which they were asked for, then others
  std::vector<Bytes> reserved;
  std::vector<std::int64_t> failures;  ///< events that ran out of memory
};

/// `holders` are lines as user_line writes them; empty without a trace.
[[nodiscard]] MemoryCourse memory_course(const Snapshot& snapshot, std::size_t device,
                                         const std::vector<std::string>& holders,
                                         std::size_t points);

/// A part of a segment.
struct SegmentPart {
  enum class Kind : std::uint8_t { kInUse, kPending, kIdle };
  Kind kind = Kind::kIdle;
  std::int64_t offset = 0, size = 0;
  std::string where;  ///< line that holds it; empty: idle
};

/// One segment at a moment.
struct SegmentFill {
  std::int64_t address = 0, size = 0;
  std::int64_t idle = 0, largest_idle = 0;
  int idle_pieces = 0;
  std::uint16_t stream = 0, pool = 0;
  bool expandable = false;
  std::vector<SegmentPart> parts;  ///< by offset, without gaps
};

/// The segments after event `event` of the trace (-1: before it), those with most idle bytes first.
/// Behind the last event they are those of the snapshot itself.
[[nodiscard]] std::vector<SegmentFill> segments_at(const Snapshot& snapshot, std::size_t device,
                                                   std::int64_t event);

}  // namespace stoker
