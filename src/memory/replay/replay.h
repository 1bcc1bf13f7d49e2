#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "memory/cuda/allocator.h"
#include "memory/cuda/allocator_config.h"
#include "memory/glibc/heap.h"
#include "memory/replay/moment.h"
#include "memory/replay/timeline.h"
#include "program/program.h"

namespace stoker {

/// How much a replay finds out. A search needs the verdict, a report the rest.
enum class ReplayDetail : std::uint8_t {
  kVerdict,   ///< fits or not, peaks
  kBreakdown  ///< also what was live at the peak (runs the program up to there a second time), and
              ///< the timeline
};

struct ReplayOptions {
  /// The optimizer's state is born in the first and the segments settle in the second; a third
  /// shows that they did. One iteration alone is wrong by a factor.
  int iterations = 3;
  AllocatorConfig allocator{};
  /// A CPU's heap in place of CUDA's caching allocator: reserved bytes are then resident ones.
  std::optional<HeapRules> heap{};
  /// What the allocator can get from the device, memory outside it already taken off; absent: the
  /// unconstrained peak is asked for.
  std::optional<Bytes> capacity{};
  /// The device's total memory, for `memory_fraction`; absent: the capacity.
  std::optional<Bytes> total{};
  ReplayDetail detail = ReplayDetail::kBreakdown;
};

/// The allocation that failed.
struct ReplayFailure {
  OutOfMemory numbers;
  BufferId buffer{};
  BufferRole role = BufferRole::kTemporary;
  ModuleId module{};
  Moment moment;
};

struct IterationMemory {
  Bytes allocated_peak, reserved_peak, requested_peak;
  Bytes allocated_end, reserved_end, requested_end;
  std::int64_t retries = 0;
  std::int64_t device_mallocs = 0, device_frees = 0;  ///< as in AllocatorStats
  Bytes fresh{};  ///< of a heap: pages got anew from the operating system (Heap::fresh)
};

struct ModuleBytes {
  ModuleId module{};
  Bytes bytes;
};

/// The live blocks at the moment of the allocated peak (whole blocks, slack included).
struct LiveBytes {
  RoleBytes by_role{};
  std::vector<ModuleBytes> by_module;    ///< largest first
  std::vector<ModuleBytes> activations;  ///< those alone, largest first
  /// Workspaces that the library could do without (cuDNN's); the rest are kept for
  /// ever (cuBLAS's).
  Bytes optional_workspaces;
  Bytes slack;  ///< bytes of blocks beyond what was requested
};

/// What a replay found. Without capacity `reserved_peak` (plus what lies outside the allocator) is
/// what nvidia-smi would show; with it, `fits` is the verdict. The two are never mixed: under a
/// capacity the peaks are those of a run that may have given its cache back (`retries`).
struct MemoryOutcome {
  std::optional<ReplayFailure> failure;
  [[nodiscard]] bool fits() const { return !failure; }

  /// Over everything: setup, iterations, passes.
  Bytes allocated_peak, reserved_peak, requested_peak;
  Moment peak;           ///< first time of the allocated peak
  Moment reserved_most;  ///< when the reserved bytes first reached their peak
  LiveBytes live;        ///< at `peak`; empty with kVerdict
  Timeline timeline;     ///< of the last iteration and the passes; empty with kVerdict
  /// reserved_peak - allocated_peak: with the live bytes at the peak it adds up to the reserved
  /// peak.
  Bytes fragmentation;
  /// reserved - allocated at the moment when reserved first reached its peak. Large where segments
  /// are added after the activations are gone (the optimizer's temporaries, too large for what is
  /// cached).
  Bytes idle_at_reserved_peak;
  std::int64_t retries = 0;                 ///< > 0: runs only by giving the cache back
  std::vector<IterationMemory> iterations;  ///< completed ones, before the passes
  std::vector<IterationMemory> passes;      ///< completed ones, each over its repetitions
  std::optional<IterationMemory> resumed;   ///< the iteration after the passes
  /// Repetitions of micro-batches that were left out although nothing proves that they would have
  /// changed nothing: those before them had kept their segments for long.
  std::int64_t presumed = 0;
  /// The last iteration reserved and requested what the one before it did. Allocated bytes may
  /// still alternate by the slack of a few blocks.
  bool steady = false;
  std::vector<BufferId> skipped;  ///< optional workspaces that did not fit: the library did without
  /// As in AllocatorStats; those of repetitions that the replay leaves out are counted as well.
  std::int64_t device_mallocs = 0, device_frees = 0;
  /// Frees without an allocation, allocations without the free of an earlier one, ids out of range:
  /// a defect of the Program. Ignored, counted.
  std::int64_t malformed = 0;
};

/// Where the allocated peak lies, in words: "forward, iteration 2", "optimizer step", "validation,
/// batch 64"; "first iteration, backward" when no later one needs as much.
[[nodiscard]] std::string peak_words(const Program& program, const MemoryOutcome& outcome);

/// Runs the setup, then the iterations, then the passes and one more iteration through the caching
/// allocator, or the heap.
///
/// An optional workspace that does not fit is skipped, in this and in all later iterations: cuDNN
/// catches the failure, takes another algorithm and remembers it. The attempt has given the cache
/// back by then, and counts as a retry. Buffers of zero bytes take nothing.
[[nodiscard]] MemoryOutcome replay(const Program& program, const ReplayOptions& options = {});

/// Whether the program runs under `options.capacity` by its sizes alone, without a replay: even if
/// the caching allocator never used a block again, the segments of all allocations of the run would
/// fit. False says nothing; it is that of a heap, of expandable segments and of a memory fraction.
[[nodiscard]] bool surely_fits(const Program& program, const ReplayOptions& options);

/// The smallest capacity, in steps of 2 MiB, at which the program runs; just below it it does not.
/// Bisects the simulation between nothing and the unconstrained peak. `options.capacity` and
/// the memory fraction are ignored: what is needed does not depend on what is allowed.
[[nodiscard]] Bytes smallest_capacity(const Program& program, const ReplayOptions& options = {});

/// Sum of what the program needs outside the allocator (context, libraries, communication buffers).
[[nodiscard]] Bytes outside_bytes(const Program& program);

}  // namespace stoker
