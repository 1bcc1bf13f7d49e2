#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/cuda/allocator_config.h"

namespace stoker {

/// A call stack of a snapshot; 0: none was recorded.
enum class StackId : std::uint32_t {};
inline constexpr StackId kNoStack{0};

struct StackFrame {
  std::string file, function;
  std::int64_t line = 0;
};

enum class TraceAction : std::uint8_t {
  kAlloc,
  kFreeRequested,  ///< the program let go of it
  kFreeCompleted,  ///< no stream uses it any more: it can be had again
  kSegmentAlloc,   ///< cudaMalloc
  kSegmentFree,
  kSegmentMap,  ///< pages of an expandable segment
  kSegmentUnmap,
  kSnapshot,
  kOutOfMemory,
  kOther  ///< marks of the user, of a newer PyTorch
};
[[nodiscard]] std::string_view name_of(TraceAction action);

/// The number of a private pool (of a CUDA graph or a MemPool); (0, 0) is the default pool.
using PoolNumber = std::pair<std::int64_t, std::int64_t>;
inline constexpr PoolNumber kDefaultPool{0, 0};

/// The address of an OOM of which nobody recorded what the device had free.
inline constexpr std::int64_t kUnknownFree = -1;

struct TraceEvent {
  std::int64_t address = 0;  ///< of an OOM: bytes that the device had free, or kUnknownFree
  std::int64_t size =
      0;  ///< bytes: requested ones of alloc and free; of an OOM the rounded request
  std::int64_t time_us = 0;
  StackId stack = kNoStack;
  std::uint16_t stream = 0;  ///< index into Snapshot::streams
  std::uint16_t pool = 0;    ///< index into Snapshot::pools
  TraceAction action = TraceAction::kOther;
};

enum class SnapshotBlockState : std::uint8_t { kAllocated, kPendingFree, kInactive };

struct SnapshotBlock {
  std::int64_t address = 0, size = 0, requested = 0;
  SnapshotBlockState state = SnapshotBlockState::kInactive;
  StackId stack = kNoStack;
};

/// One cudaMalloc, or one unbroken run of mapped pages of an expandable segment.
struct SnapshotSegment {
  std::int64_t device = 0, address = 0, size = 0;
  /// Bytes in use as the allocator itself counted them, to be compared with the blocks.
  std::int64_t allocated = 0;
  std::uint16_t stream = 0, pool = 0;  ///< indices, as in TraceEvent
  bool small = false, expandable = false;
  std::vector<SnapshotBlock> blocks;  ///< by address
};

/// What torch.cuda.memory._dump_snapshot wrote: the allocator's segments at that moment and, if it
/// was recorded (`torch.cuda.memory._record_memory_history`), what had happened before.
struct Snapshot {
  std::vector<SnapshotSegment> segments;        ///< of all devices, by address
  std::vector<std::vector<TraceEvent>> traces;  ///< by device, oldest first
  std::vector<std::int64_t> streams;            ///< CUDA's handles; 0 is the default stream
  std::vector<PoolNumber> pools;                ///< the first is the default pool
  std::vector<StackFrame> frames;
  std::vector<std::vector<std::uint32_t>> stacks;  ///< innermost first: indices into frames
  AllocatorConfig config;
  bool has_settings = false;  ///< else `config` is PyTorch's default
  std::string settings_text;  ///< PYTORCH_ALLOC_CONF as it was
  Diagnostics findings;       ///< what does not fit together

  [[nodiscard]] bool has_trace(std::size_t device) const {
    return device < traces.size() && !traces[device].empty();
  }
  /// Devices that hold segments or were traced.
  [[nodiscard]] std::vector<std::size_t> devices() const;
};

/// `content` is the pickle; `where` names it in errors, which name the key that is missing or
/// wrong.
[[nodiscard]] Result<Snapshot> parse_snapshot(std::string content, const std::string& where);
/// The file, unpacked when its name ends in .gz.
[[nodiscard]] Result<Snapshot> read_snapshot(const std::filesystem::path& path);

}  // namespace stoker
