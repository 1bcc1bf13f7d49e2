#include "observe/proc/roles.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace stoker {
namespace {

/// PyTorch 2.5 and later name their workers (torch/utils/data/_utils/worker.py).
constexpr std::string_view kWorkerName = "pt_data_worker";

constexpr std::array<std::string_view, 2> kHelpers{"multiprocessing.resource_tracker",
                                                   "multiprocessing.forkserver"};
constexpr std::string_view kForkServer = "multiprocessing.forkserver";
/// A spawned worker imports PyTorch before it says what it is.
constexpr std::int64_t kNamedWithin = 20'000'000'000;
constexpr std::string_view kSpawned = "multiprocessing.spawn";
constexpr std::array<std::string_view, 8> kLaunchers{"torchrun",
                                                     "torch.distributed.run",
                                                     "torch.distributed.launch",
                                                     "accelerate launch",
                                                     "deepspeed",
                                                     "mpirun",
                                                     "torch/distributed/run.py",
                                                     "horovodrun"};

bool mentions(const std::string& command, const auto& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return command.find(word) != std::string::npos; });
}

/// The processes of a job with what is asked of them again and again.
class Family {
 public:
  Family(std::vector<ProcessFacts>& all, std::int64_t now_ns) : all_(all), now_ns_(now_ns) {
    for (ProcessFacts& one : all_) by_serial_[one.serial] = &one;
    named_workers_ = std::ranges::any_of(all_, [](const ProcessFacts& p) { return is_named(p); });
  }

  void assign() {
    for (ProcessFacts& one : all_) one.role = first_guess(one), one.owner = 0;
    for (ProcessFacts& one : all_) {
      if (one.role == ProcessRole::kTraining && only_waits(one)) one.role = ProcessRole::kLauncher;
    }
    if (!has(ProcessRole::kTraining)) take_first();
    for (ProcessFacts& one : all_) {
      if (one.role != ProcessRole::kWorker) continue;
      one.owner = training_above(one);
      // A worker of nobody is a training process of a kind that is not known here.
      if (one.owner == 0) one.role = ProcessRole::kHelper;
    }
  }

 private:
  [[nodiscard]] static bool is_named(const ProcessFacts& p) {
    return p.name.starts_with(kWorkerName);
  }
  [[nodiscard]] const ProcessFacts* parent_of(const ProcessFacts& p) const {
    const auto found = by_serial_.find(p.parent);
    return found == by_serial_.end() ? nullptr : found->second;
  }
  [[nodiscard]] bool has(ProcessRole role) const {
    return std::ranges::any_of(all_, [&](const ProcessFacts& p) { return p.role == role; });
  }

  [[nodiscard]] ProcessRole first_guess(const ProcessFacts& p) const {
    if (is_named(p)) return ProcessRole::kWorker;
    // A rank that was spawned looks as a spawned worker does, until it has workers of its own.
    if (p.command.find(kForkServer) == std::string::npos && p.python && has_named_worker(p))
      return ProcessRole::kTraining;
    const ProcessFacts* parent = parent_of(p);
    const bool forked = parent != nullptr && parent->python && p.command == parent->command;
    if (forked && parent->command.find(kForkServer) != std::string::npos)
      return named_workers_ ? ProcessRole::kHelper : ProcessRole::kWorker;
    if (mentions(p.command, kHelpers)) return ProcessRole::kHelper;
    if (mentions(p.command, kLaunchers) && p.rank < 0) return ProcessRole::kLauncher;
    if (!p.python) return python_below(p) ? ProcessRole::kLauncher : ProcessRole::kHelper;
    // Older PyTorch forks workers that nothing names: they look as their parent does.
    if (forked && p.command.find(kSpawned) == std::string::npos)
      return named_workers_ ? ProcessRole::kHelper : ProcessRole::kWorker;
    if (forked) return ProcessRole::kWorker;
    const bool spawned = p.command.find(kSpawned) != std::string::npos;
    // What has been a rank is one while its next epoch's workers are on their way.
    const bool known = p.role == ProcessRole::kTraining;
    if (spawned && !known && now_ns_ - p.started_ns < kNamedWithin) return ProcessRole::kHelper;
    return ProcessRole::kTraining;
  }

  [[nodiscard]] bool has_named_worker(const ProcessFacts& p) const {
    return std::ranges::any_of(
        all_, [&](const ProcessFacts& q) { return q.parent == p.serial && is_named(q); });
  }

  [[nodiscard]] bool python_below(const ProcessFacts& p) const {
    return std::ranges::any_of(all_, [&](const ProcessFacts& q) {
      if (!q.python) return false;
      for (const ProcessFacts* at = parent_of(q); at != nullptr; at = parent_of(*at)) {
        if (at == &p) return true;
      }
      return false;
    });
  }

  /// It started training processes, and has no workers of its own.
  [[nodiscard]] bool only_waits(const ProcessFacts& p) const {
    bool trains = false;
    for (const ProcessFacts& q : all_) {
      if (q.parent != p.serial) continue;
      if (q.role == ProcessRole::kWorker) return false;
      trains = trains || q.role == ProcessRole::kTraining || q.role == ProcessRole::kLauncher;
    }
    return trains;
  }

  /// Nothing is Python: what was asked for is taken for the job itself.
  void take_first() {
    ProcessFacts* last = nullptr;
    for (ProcessFacts& one : all_) {
      if (one.role == ProcessRole::kWorker) continue;
      if (last == nullptr || one.parent == last->serial) last = &one;
    }
    if (last != nullptr) last->role = ProcessRole::kTraining;
  }

  [[nodiscard]] std::uint32_t training_above(const ProcessFacts& p) const {
    for (const ProcessFacts* at = parent_of(p); at != nullptr; at = parent_of(*at)) {
      if (at->role == ProcessRole::kTraining) return at->serial;
    }
    return 0;
  }

  std::vector<ProcessFacts>& all_;
  std::int64_t now_ns_;
  std::map<std::uint32_t, const ProcessFacts*> by_serial_;
  bool named_workers_ = false;
};

}  // namespace

std::string_view name_of(ProcessRole role) {
  switch (role) {
    case ProcessRole::kTraining:
      return "training";
    case ProcessRole::kWorker:
      return "worker";
    case ProcessRole::kLauncher:
      return "launcher";
    default:
      return "helper";
  }
}

void assign_roles(std::vector<ProcessFacts>& processes, std::int64_t now_ns) {
  Family(processes, now_ns).assign();
}

}  // namespace stoker
