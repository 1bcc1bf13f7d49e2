#include "memory/replay/replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "memory/replay/repetitions.h"

namespace stoker {
namespace {

/// The blocks of one buffer: its own of this round and the one of the round before, which may still
/// be alive when the new one is allocated.
struct Live {
  static constexpr int kNothing = std::numeric_limits<int>::min();
  BlockId block{}, older_block{};
  int born = kNothing, older_born = kNothing;  ///< round
  bool skipped = false;
};

/// One execution of a list of instructions. The setup is round -1; iterations and repetitions of
/// passes are numbered in the order in which they run.
struct Round {
  static constexpr int kSetup = -1;
  static constexpr int kNever = std::numeric_limits<int>::max();
  int number = kSetup;
  int iteration = Moment::kSetup;
  int pass = Moment::kTraining;
  bool first = true;  ///< of its kind: When::kFirst
  bool succeeds =
      false;  ///< the round before was of the same kind: what it left behind must be there
};

/// An instruction of a round.
struct Place {
  Round round;
  std::uint32_t instruction = 0;
  std::int64_t time = 0;  ///< how often it was executed in the round before
  [[nodiscard]] Moment moment() const { return {round.iteration, round.pass, instruction, {}}; }
};

/// `Allocator` is a CachingAllocator or a Heap.
template <class Allocator>
class Replayer {
 public:
  Replayer(const Program& program, const ReplayOptions& options, Allocator allocator)
      : program_(program),
        options_(options),
        allocator_(std::move(allocator)),
        live_(program.buffers.size()) {}

  /// Runs everything, or up to and including the place where to stop.
  MemoryOutcome run(const Place* stop = nullptr) {
    if (stop != nullptr) stop_ = *stop;
    else stop_.round.number = Round::kNever;
    if (options_.detail == ReplayDetail::kBreakdown && stop == nullptr) recorder_.emplace(program_);
    run_rounds();
    const IterationMemory all = counts();
    outcome_.retries = all.retries;
    outcome_.device_mallocs = all.device_mallocs;
    outcome_.device_frees = all.device_frees;
    const auto& done = outcome_.iterations;
    outcome_.steady =
        !outcome_.failure && done.size() > 1 && keeps_segments(done[done.size() - 2], done.back());
    // Headers of a heap's chunks may lie in pages that nothing has touched.
    outcome_.fragmentation = std::max(Bytes(0), outcome_.reserved_peak - outcome_.allocated_peak);
    outcome_.peak = with_phase(program_, peak_.moment());
    outcome_.reserved_most = with_phase(program_, reserved_most_.moment());
    if (recorder_) outcome_.timeline = recorder_->take();
    return std::move(outcome_);
  }

  [[nodiscard]] const Place& peak() const { return peak_; }

  /// What is live where the run stopped.
  [[nodiscard]] LiveBytes live_bytes() const {
    LiveBytes result;
    std::map<ModuleId, Bytes> modules;
    std::map<ModuleId, Bytes> activations;
    const auto add = [&](const Buffer& buffer, BlockId block) {
      const Bytes bytes = allocator_.size_of(block);
      result.by_role[static_cast<std::size_t>(buffer.role)] += bytes;
      modules[buffer.module] += bytes;
      if (buffer.role == BufferRole::kActivation) activations[buffer.module] += bytes;
      if (buffer.role == BufferRole::kWorkspace && buffer.optional)
        result.optional_workspaces += bytes;
      result.slack += bytes - buffer.bytes;
    };
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].born != Live::kNothing) add(program_.buffers[i], live_[i].block);
      if (live_[i].older_born != Live::kNothing) add(program_.buffers[i], live_[i].older_block);
    }
    result.by_module = largest_first(modules);
    result.activations = largest_first(activations);
    return result;
  }

 private:
  [[nodiscard]] static std::vector<ModuleBytes> largest_first(
      const std::map<ModuleId, Bytes>& modules) {
    std::vector<ModuleBytes> list;
    list.reserve(modules.size());
    for (const auto& [module, bytes] : modules) list.push_back({module, bytes});
    std::stable_sort(list.begin(), list.end(),
                     [](const ModuleBytes& a, const ModuleBytes& b) { return a.bytes > b.bytes; });
    return list;
  }

  [[nodiscard]] static bool applies(When when, bool first) {
    return when == When::kAlways || (when == When::kFirst) == first;
  }

  void run_rounds() {
    if (!execute(program_.setup, {}, false)) return;
    for (int i = 0; i < options_.iterations; ++i) {
      round_ = {round_.number + 1, i, Moment::kTraining, i == 0, i > 0};
      const auto memory =
          measured(program_.iteration, program_.repeated, i + 1 == options_.iterations);
      if (!memory) return;
      outcome_.iterations.push_back(*memory);
    }
    if (program_.passes.empty()) return;
    for (std::size_t p = 0; p < program_.passes.size(); ++p) {
      if (!run_pass(static_cast<int>(p))) return;
    }
    round_ = {round_.number + 1, options_.iterations, Moment::kTraining, false, false};
    outcome_.resumed = measured(program_.iteration, program_.repeated, false);
  }

  bool run_pass(int pass) {
    const ExtraPass& extra = program_.passes[static_cast<std::size_t>(pass)];
    std::optional<IterationMemory> all;
    for (int i = 0; i < extra.repeats; ++i) {
      round_ = {round_.number + 1, i, pass, i == 0, i > 0};
      const auto memory = measured(extra.instructions, extra.repeated, i + 1 == extra.repeats);
      if (!memory) return false;
      all = all ? joined(*all, *memory) : *memory;
    }
    round_ = {round_.number + 1, extra.repeats, pass, false, false};
    const auto end = measured(extra.end, {}, false);
    if (!end) return false;
    all = all ? joined(*all, *end) : *end;
    outcome_.passes.push_back(*all);
    return true;
  }

  /// Peaks of both, the end of the later one.
  [[nodiscard]] static IterationMemory joined(const IterationMemory& earlier,
                                              const IterationMemory& later) {
    IterationMemory both = later;
    both.allocated_peak = std::max(earlier.allocated_peak, later.allocated_peak);
    both.reserved_peak = std::max(earlier.reserved_peak, later.reserved_peak);
    both.requested_peak = std::max(earlier.requested_peak, later.requested_peak);
    add_counts(both, earlier);
    return both;
  }

  /// Executes a round; absent when it ended early.
  std::optional<IterationMemory> measured(const std::vector<Instruction>& instructions,
                                          const Repeated& repeated, bool recorded) {
    allocator_.reset_peaks();
    const IterationMemory before = counts();
    if (!execute(instructions, repeated, recorded && recorder_.has_value())) return std::nullopt;
    return since(before);
  }

  /// Adds what `more` counted, `times` over.
  static void add_counts(IterationMemory& to, const IterationMemory& more, std::int64_t times = 1) {
    to.retries += more.retries * times;
    to.device_mallocs += more.device_mallocs * times;
    to.device_frees += more.device_frees * times;
    to.fresh += more.fresh * times;
  }

  /// What was counted since the run began, in repetitions that were left out as well; no sizes.
  [[nodiscard]] IterationMemory counts() const {
    const AllocatorStats& stats = allocator_.stats();
    IterationMemory all = unseen_;
    all.retries += stats.retries;
    all.device_mallocs += stats.device_mallocs;
    all.device_frees += stats.device_frees;
    if constexpr (std::is_same_v<Allocator, Heap>) all.fresh += allocator_.fresh();
    return all;
  }

  /// The allocator as it is, and what happened since it had these counts.
  [[nodiscard]] IterationMemory since(const IterationMemory& before) const {
    const AllocatorStats& stats = allocator_.stats();
    IterationMemory now = counts();
    add_counts(now, before, -1);
    now.allocated_peak = stats.allocated_peak;
    now.reserved_peak = stats.reserved_peak;
    now.requested_peak = stats.requested_peak;
    now.allocated_end = stats.allocated;
    now.reserved_end = stats.reserved;
    now.requested_end = stats.requested;
    return now;
  }

  /// A fingerprint of where everything lies, and of the calls to the device so far. Between two
  /// equal ones no segment came or went, so that the free blocks are what the live ones leave, and
  /// the caching allocator looks at nothing else. Absent where it does: small objects that a heap
  /// scatters, the age of cached blocks.
  [[nodiscard]] std::optional<std::uint64_t> places() const {
    if constexpr (std::is_same_v<Allocator, Heap>) {
      return std::nullopt;
    } else {
      if (allocator_.config().garbage_collection_threshold > 0) return std::nullopt;
      const AllocatorStats& stats = allocator_.stats();
      std::uint64_t mixed = 0;
      const auto add = [&](std::int64_t value) {
        mixed = Random(mixed ^ static_cast<std::uint64_t>(value)).next();
      };
      add(stats.device_mallocs);
      add(stats.device_frees);
      for (std::size_t i = 0; i < live_.size(); ++i) {
        const Live& live = live_[i];
        if (live.born == Live::kNothing) continue;
        add(static_cast<std::int64_t>(i));
        add(allocator_.address_of(live.block).count());
        add(live.born == round_.number ? 1 : 0);
        if (live.older_born != Live::kNothing) add(allocator_.address_of(live.older_block).count());
      }
      return mixed;
    }
  }

  bool execute(const std::vector<Instruction>& instructions, const Repeated& repeated,
               bool recorded) {
    if (recorded) {
      recorder_->begin(instructions,
                       round_.pass == Moment::kTraining
                           ? std::string()
                           : program_.passes[static_cast<std::size_t>(round_.pass)].name);
      role_bytes_ = live_bytes().by_role;
    }
    const std::size_t from = repeated.from, to = repeated.to;
    return run_part(instructions, 0, from, recorded) && repeat(instructions, repeated, recorded) &&
           run_part(instructions, to, instructions.size(), recorded);
  }

  /// Once it is known how repetitions go on, whole cycles of them are left out.
  bool repeat(const std::vector<Instruction>& instructions, const Repeated& repeated,
              bool recorded) {
    Repetitions done;
    bool left_out = false;
    std::int64_t left = repeated.times;
    for (time_ = 0; left > 0; ++time_) {
      const IterationMemory before = counts();
      if (!run_part(instructions, repeated.from, repeated.to, recorded && time_ == 0)) return false;
      --left;
      if (left_out) continue;
      const Repetitions::Course course = done.add(since(before), places());
      const auto cycle = static_cast<std::int64_t>(course.cycle);
      if (cycle == 0) continue;
      left_out = true;
      if (!course.proven) outcome_.presumed += left - left % cycle;
      for (const IterationMemory& one : done.last_cycle()) add_counts(unseen_, one, left / cycle);
      left %= cycle;
    }
    time_ = 0;
    return true;
  }

  bool run_part(const std::vector<Instruction>& instructions, std::size_t from, std::size_t to,
                bool recorded) {
    for (auto i = static_cast<std::uint32_t>(from); i < to; ++i) {
      const Instruction& instruction = instructions[i];
      if (applies(instruction.when, round_.first)) {
        switch (instruction.kind) {
          case InstructionKind::kAllocate:
            if (!allocate(instruction.value, i)) return false;
            break;
          case InstructionKind::kFree:
            free_current(instruction.value);
            break;
          case InstructionKind::kFreePrevious:
            free_previous(instruction.value);
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
      if (recorded) record(i);
      if (round_.number == stop_.round.number && i == stop_.instruction && time_ == stop_.time)
        return false;
    }
    return true;
  }

  void record(std::uint32_t instruction) {
    const AllocatorStats& stats = allocator_.stats();
    recorder_->note(instruction, stats.allocated, stats.reserved, role_bytes_);
  }

  bool allocate(std::uint32_t id, std::uint32_t at) {
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
                                       with_phase(program_, Place{round_, at, time_}.moment())};
      return false;
    }
    if (live.born != Live::kNothing) {
      if (live.older_born != Live::kNothing)
        ++outcome_.malformed;  // nobody can free that one any more
      live.older_born = live.born;
      live.older_block = live.block;
    }
    live.born = round_.number;
    live.block = *block;
    role_bytes_[static_cast<std::size_t>(buffer.role)] += allocator_.size_of(*block);
    note_peaks(reserved_before, at);
    return true;
  }

  void note_peaks(Bytes reserved_before, std::uint32_t at) {
    const AllocatorStats& stats = allocator_.stats();
    outcome_.requested_peak = std::max(outcome_.requested_peak, stats.requested);
    if (stats.allocated > outcome_.allocated_peak) {
      outcome_.allocated_peak = stats.allocated;
      peak_ = {round_, at, time_};
    }
    if (stats.reserved > reserved_before && stats.reserved > outcome_.reserved_peak) {
      outcome_.reserved_peak = stats.reserved;
      outcome_.idle_at_reserved_peak = stats.reserved - stats.allocated;
      reserved_most_ = {round_, at, time_};
    }
  }

  void free_block(std::uint32_t id, BlockId block) {
    role_bytes_[static_cast<std::size_t>(program_.buffers[id].role)] -= allocator_.size_of(block);
    allocator_.free(block);
  }

  void free_newest(std::uint32_t id) {
    Live& live = live_[id];
    free_block(id, live.block);
    live.block = live.older_block;
    live.born = std::exchange(live.older_born, Live::kNothing);
  }

  /// kFree means the block of this round; one of an earlier round (or the setup) only if there is
  /// no other.
  void free_current(std::uint32_t id) {
    if (id >= live_.size()) return void(++outcome_.malformed);
    if (live_[id].born == Live::kNothing) return note_missing(id);
    free_newest(id);
  }

  void free_previous(std::uint32_t id) {
    if (id >= live_.size()) return void(++outcome_.malformed);
    Live& live = live_[id];
    if (live.older_born != Live::kNothing && live.older_born < round_.number) {
      free_block(id, live.older_block);
      live.older_born = Live::kNothing;
    } else if (live.born != Live::kNothing && live.born < round_.number) {
      free_newest(id);
    } else if (round_.succeeds) {
      note_missing(id);
    }
  }

  void note_missing(std::uint32_t id) {
    if (program_.buffers[id].bytes.count() > 0 && !live_[id].skipped) ++outcome_.malformed;
  }

  const Program& program_;
  const ReplayOptions& options_;
  Allocator allocator_;
  std::vector<Live> live_;
  MemoryOutcome outcome_;
  Round round_;
  std::int64_t time_ = 0;   ///< as in Place
  IterationMemory unseen_;  ///< counts of repetitions that were left out
  Place stop_, peak_, reserved_most_;
  RoleBytes role_bytes_{};  ///< right while a round is recorded
  std::optional<TimelineRecorder> recorder_;
};

}  // namespace

std::string peak_words(const Program& program, const MemoryOutcome& outcome) {
  if (outcome.allocated_peak.count() == 0) return "nowhere: nothing is allocated";
  std::string words = words_of(program, outcome.peak);
  if (outcome.peak.in_setup() || outcome.peak.pass != Moment::kTraining ||
      outcome.peak.iteration != 0 || outcome.iterations.size() < 2)
    return words;
  // The first time of a peak that comes again says nothing about the first iteration.
  const Bytes later = std::max_element(outcome.iterations.begin() + 1, outcome.iterations.end(),
                                       [](const IterationMemory& a, const IterationMemory& b) {
                                         return a.allocated_peak < b.allocated_peak;
                                       })
                          ->allocated_peak;
  if (later == outcome.allocated_peak) return words;
  return "first iteration" + (words.empty() ? "" : ", " + words);
}

namespace {

/// `make` makes an allocator that nothing was asked of.
template <class MakeAllocator>
MemoryOutcome replay_with(const Program& program, const ReplayOptions& options,
                          const MakeAllocator& make) {
  Replayer replayer(program, options, make());
  MemoryOutcome outcome = replayer.run();
  if (options.detail == ReplayDetail::kBreakdown && outcome.allocated_peak.count() > 0) {
    Replayer again(program, options, make());
    (void)again.run(&replayer.peak());
    outcome.live = again.live_bytes();
  }
  return outcome;
}

}  // namespace

MemoryOutcome replay(const Program& program, const ReplayOptions& options) {
  const DeviceMemory memory{options.capacity, options.total};
  if (options.heap)
    return replay_with(program, options, [&] { return Heap(*options.heap, memory); });
  return replay_with(program, options, [&] { return CachingAllocator(options.allocator, memory); });
}

Bytes outside_bytes(const Program& program) {
  Bytes sum;
  for (const OutsideMemory& part : program.outside) sum += part.bytes;
  return sum;
}

}  // namespace stoker
