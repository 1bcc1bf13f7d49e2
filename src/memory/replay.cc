#include "memory/replay.h"

#include <algorithm>
#include <limits>
#include <map>

namespace stoker {
namespace {

/// The blocks of one buffer: its own of this iteration and the one of the iteration before, which
/// may still be alive when the new one is allocated.
struct Live {
  static constexpr int kNothing = std::numeric_limits<int>::min();
  BlockId block{}, older_block{};
  int born = kNothing, older_born = kNothing;  ///< iteration
  bool skipped = false;
};

/// Where to stop: nowhere, or after an instruction.
constexpr int kNever = std::numeric_limits<int>::max();

class Replayer {
 public:
  Replayer(const Program& program, const ReplayOptions& options)
      : program_(program),
        options_(options),
        allocator_(options.allocator, {options.capacity, options.total}),
        live_(program.buffers.size()) {}

  MemoryOutcome run(int stop_iteration = kNever, std::uint32_t stop_instruction = 0) {
    stop_iteration_ = stop_iteration;
    stop_instruction_ = stop_instruction;
    bool going = execute(program_.setup, Moment::kSetup);
    for (int i = 0; going && i < options_.iterations; ++i) {
      allocator_.reset_peaks();
      const std::int64_t retries = allocator_.stats().retries;
      going = execute(program_.iteration, i);
      if (going) outcome_.iterations.push_back(iteration_memory(retries));
    }
    const AllocatorStats& stats = allocator_.stats();
    outcome_.retries = stats.retries;
    outcome_.device_mallocs = stats.device_mallocs;
    outcome_.device_frees = stats.device_frees;
    const auto& done = outcome_.iterations;
    outcome_.steady =
        !outcome_.failure && done.size() > 1 && repeats(done[done.size() - 2], done.back());
    outcome_.fragmentation = outcome_.reserved_peak - outcome_.allocated_peak;
    return std::move(outcome_);
  }

  /// What is live where the run stopped.
  [[nodiscard]] LiveBytes live_bytes() const {
    LiveBytes result;
    std::map<ModuleId, Bytes> modules;
    const auto add = [&](const Buffer& buffer, BlockId block) {
      const Bytes bytes = allocator_.size_of(block);
      result.by_role[static_cast<std::size_t>(buffer.role)] += bytes;
      modules[buffer.module] += bytes;
      result.slack += bytes - buffer.bytes;
    };
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].born != Live::kNothing) add(program_.buffers[i], live_[i].block);
      if (live_[i].older_born != Live::kNothing) add(program_.buffers[i], live_[i].older_block);
    }
    for (const auto& [module, bytes] : modules) result.by_module.push_back({module, bytes});
    std::stable_sort(result.by_module.begin(), result.by_module.end(),
                     [](const ModuleBytes& a, const ModuleBytes& b) { return a.bytes > b.bytes; });
    return result;
  }

 private:
  [[nodiscard]] static bool applies(When when, int iteration) {
    return when == When::kAlways || (when == When::kFirst) == (iteration <= 0);
  }

  [[nodiscard]] static bool repeats(const IterationMemory& before, const IterationMemory& after) {
    return before.reserved_peak == after.reserved_peak &&
           before.reserved_end == after.reserved_end &&
           before.requested_peak == after.requested_peak &&
           before.requested_end == after.requested_end && before.retries == after.retries;
  }

  bool execute(const std::vector<Instruction>& instructions, int iteration) {
    const auto count = static_cast<std::uint32_t>(instructions.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const Instruction& instruction = instructions[i];
      if (applies(instruction.when, iteration)) {
        switch (instruction.kind) {
          case InstructionKind::kAllocate:
            if (!allocate(instruction.value, iteration, i)) return false;
            break;
          case InstructionKind::kFree:
            free_current(instruction.value);
            break;
          case InstructionKind::kFreePrevious:
            free_previous(instruction.value, iteration);
            break;
          case InstructionKind::kEmptyCache:
            allocator_.empty_cache();
            break;
          case InstructionKind::kLaunch:
          case InstructionKind::kSynchronize:
          case InstructionKind::kBucketReady:
          case InstructionKind::kAwaitCommunication:
            break;
        }
      }
      if (iteration == stop_iteration_ && i == stop_instruction_) return false;
    }
    return true;
  }

  bool allocate(std::uint32_t id, int iteration, std::uint32_t at) {
    if (id >= live_.size()) return ++outcome_.malformed, true;
    const Buffer& buffer = program_.buffers[id];
    Live& live = live_[id];
    if (buffer.bytes.count() <= 0 || live.skipped) return true;
    const Bytes reserved_before = allocator_.stats().reserved;
    const auto block = allocator_.allocate(buffer.bytes, buffer.stream);
    if (!block) {
      if (buffer.optional) {
        live.skipped = true;
        outcome_.skipped.push_back(BufferId{id});
        return true;
      }
      outcome_.failure = ReplayFailure{block.error(), BufferId{id}, buffer.role, buffer.module,
                                       moment(iteration, at)};
      return false;
    }
    if (live.born != Live::kNothing) {
      if (live.older_born != Live::kNothing)
        ++outcome_.malformed;  // nobody can free that one any more
      live.older_born = live.born;
      live.older_block = live.block;
    }
    live.born = iteration;
    live.block = *block;
    note_peaks(reserved_before, iteration, at);
    return true;
  }

  void note_peaks(Bytes reserved_before, int iteration, std::uint32_t at) {
    const AllocatorStats& stats = allocator_.stats();
    outcome_.requested_peak = std::max(outcome_.requested_peak, stats.requested);
    if (stats.allocated > outcome_.allocated_peak) {
      outcome_.allocated_peak = stats.allocated;
      outcome_.peak.iteration = iteration;
      outcome_.peak.instruction = at;
    }
    if (stats.reserved > reserved_before && stats.reserved > outcome_.reserved_peak) {
      outcome_.reserved_peak = stats.reserved;
      outcome_.idle_at_reserved_peak = stats.reserved - stats.allocated;
    }
  }

  /// kFree means the block of this iteration; one of an earlier iteration (or the setup) only if
  /// there is no other.
  void free_current(std::uint32_t id) {
    if (id >= live_.size()) return void(++outcome_.malformed);
    Live& live = live_[id];
    if (live.born == Live::kNothing) return note_missing(id);
    allocator_.free(live.block);
    live.block = live.older_block;
    live.born = std::exchange(live.older_born, Live::kNothing);
  }

  void free_previous(std::uint32_t id, int iteration) {
    if (id >= live_.size()) return void(++outcome_.malformed);
    Live& live = live_[id];
    if (live.older_born != Live::kNothing && live.older_born < iteration) {
      allocator_.free(live.older_block);
      live.older_born = Live::kNothing;
    } else if (live.born != Live::kNothing && live.born < iteration) {
      allocator_.free(live.block);
      live.block = live.older_block;
      live.born = std::exchange(live.older_born, Live::kNothing);
    } else if (iteration > 0) {
      note_missing(id);
    }
  }

  void note_missing(std::uint32_t id) {
    if (program_.buffers[id].bytes.count() > 0 && !live_[id].skipped) ++outcome_.malformed;
  }

  [[nodiscard]] IterationMemory iteration_memory(std::int64_t retries_before) const {
    const AllocatorStats& stats = allocator_.stats();
    return {
        stats.allocated_peak, stats.reserved_peak, stats.requested_peak,          stats.allocated,
        stats.reserved,       stats.requested,     stats.retries - retries_before};
  }

 public:
  [[nodiscard]] Moment moment(int iteration, std::uint32_t at) const {
    Moment result{iteration, at, {}};
    if (iteration < 0) return result;
    for (std::size_t i = at; i < program_.iteration.size(); ++i) {
      const Instruction& instruction = program_.iteration[i];
      if (instruction.kind != InstructionKind::kLaunch ||
          instruction.value >= program_.kernels.size())
        continue;
      result.phase = program_.kernels[instruction.value].phase;
      break;
    }
    return result;
  }

 private:
  const Program& program_;
  const ReplayOptions& options_;
  CachingAllocator allocator_;
  std::vector<Live> live_;
  MemoryOutcome outcome_;
  int stop_iteration_ = kNever;
  std::uint32_t stop_instruction_ = 0;
};

}  // namespace

MemoryOutcome replay(const Program& program, const ReplayOptions& options) {
  Replayer replayer(program, options);
  MemoryOutcome outcome = replayer.run();
  outcome.peak = replayer.moment(outcome.peak.iteration, outcome.peak.instruction);
  if (options.detail == ReplayDetail::kBreakdown && outcome.allocated_peak.count() > 0) {
    Replayer again(program, options);
    (void)again.run(outcome.peak.iteration, outcome.peak.instruction);
    outcome.live = again.live_bytes();
  }
  return outcome;
}

Bytes smallest_capacity(const Program& program, const ReplayOptions& options) {
  ReplayOptions trial = options;
  trial.detail = ReplayDetail::kVerdict;
  trial.capacity.reset();
  const std::int64_t step = kLargeRounding.count();
  std::int64_t fails =
      -1;  // in steps: even nothing may be enough, for a program that allocates nothing
  std::int64_t fits = (replay(program, trial).reserved_peak.count() + step - 1) / step;
  while (fits - fails > 1) {
    const std::int64_t middle = fails + (fits - fails) / 2;
    trial.capacity = Bytes{middle * step};
    (replay(program, trial).fits() ? fits : fails) = middle;
  }
  return Bytes{fits * step};
}

Bytes outside_bytes(const Program& program) {
  Bytes sum;
  for (const OutsideMemory& part : program.outside) sum += part.bytes;
  return sum;
}

}  // namespace stoker
