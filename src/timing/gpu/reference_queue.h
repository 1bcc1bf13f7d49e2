#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "program/program.h"

/// A reference implementation of the launch queue, for tests: it knows no formula, only what
/// happens in each tick of a clock. Slow, and nothing is shared with launch_queue.cc.
namespace stoker::timing_test {

struct ReferenceAction {
  enum Kind { kWork, kLaunch, kFollow, kSynchronize, kAwait } kind = kWork;
  long time = 0;  ///< ticks of work, or of the kernel
  Stream stream = Stream::kCompute;
  int after = -1;  ///< kernel (number of the launch) that must have ended; kAwait: for the host
};

class ReferenceQueue {
 public:
  ReferenceQueue(std::vector<ReferenceAction> actions, std::size_t depth)
      : actions_(std::move(actions)), depth_(depth) {
    for (const ReferenceAction& a : actions_) {
      if (a.kind != ReferenceAction::kLaunch && a.kind != ReferenceAction::kFollow) continue;
      queues_[static_cast<std::size_t>(a.stream)].push_back(kernels_.size());
      kernels_.push_back({a, false, false, false, 0, 0});
    }
    run();
  }

  [[nodiscard]] long host() const { return host_end_; }
  [[nodiscard]] long end_of(Stream s) const {
    const auto& queue = queues_[static_cast<std::size_t>(s)];
    return queue.empty() ? 0 : kernels_[queue.back()].end;
  }
  [[nodiscard]] long end_of_kernel(std::size_t k) const { return kernels_[k].end; }
  [[nodiscard]] long starved(Stream s) const { return starved_[static_cast<std::size_t>(s)]; }

 private:
  struct Running {
    ReferenceAction action;
    bool issued, started, ended;
    long begin, end;
  };

  [[nodiscard]] bool over(int kernel) const {
    return kernel < 0 || kernels_[static_cast<std::size_t>(kernel)].ended;
  }
  [[nodiscard]] bool all_ended() const {
    for (const Running& k : kernels_) {
      if (k.issued && !k.ended) return false;
    }
    return true;
  }

  /// The host does what it can do at this instant; true when it did something.
  bool step_host() {
    if (next_ == actions_.size() || now_ < busy_until_) return false;
    const ReferenceAction& a = actions_[next_];
    switch (a.kind) {
      case ReferenceAction::kWork:
        busy_until_ = now_ + a.time;
        break;
      case ReferenceAction::kLaunch:
        if (launches_.size() >= depth_ && !kernels_[launches_[launches_.size() - depth_]].ended)
          return false;
        launches_.push_back(issued_);
        kernels_[issued_++].issued = true;
        break;
      case ReferenceAction::kFollow:
        kernels_[issued_++].issued = true;
        break;
      case ReferenceAction::kSynchronize:
        if (!all_ended()) return false;
        break;
      case ReferenceAction::kAwait:
        if (!over(a.after)) return false;
        break;
    }
    ++next_;
    host_end_ = busy_until_ > now_ ? busy_until_ : now_;
    return true;
  }

  bool step_streams() {
    bool changed = false;
    for (const auto& queue : queues_) {
      for (std::size_t i = 0; i < queue.size(); ++i) {
        Running& k = kernels_[queue[i]];
        if (k.ended) continue;
        const bool mine = i == 0 || kernels_[queue[i - 1]].ended;
        if (!k.started && k.issued && mine && over(k.action.after)) {
          k.started = changed = true;
          k.begin = now_;
        }
        if (k.started && now_ >= k.begin + k.action.time) {
          k.ended = changed = true;
          k.end = now_;
          continue;
        }
        break;
      }
    }
    return changed;
  }

  /// Streams whose next kernel only waits to be issued.
  void count_starving() {
    for (std::size_t s = 0; s < queues_.size(); ++s) {
      for (std::size_t i = 0; i < queues_[s].size(); ++i) {
        const Running& k = kernels_[queues_[s][i]];
        if (k.ended) continue;
        if (!k.issued && over(k.action.after)) ++starved_[s];
        break;
      }
    }
  }

  void run() {
    for (;; ++now_) {
      for (bool more = true; more;) {
        more = step_streams();
        while (step_host()) more = true;
      }
      if (next_ == actions_.size() && now_ >= busy_until_ && all_ended()) return;
      count_starving();
    }
  }

  std::vector<ReferenceAction> actions_;
  std::size_t depth_;
  std::vector<Running> kernels_;
  std::array<std::vector<std::size_t>, 4> queues_;
  std::array<long, 4> starved_{};
  std::vector<std::size_t> launches_;  ///< kernels that took a place in the queue
  std::size_t next_ = 0, issued_ = 0;
  long now_ = 0, busy_until_ = 0, host_end_ = 0;
};

}  // namespace stoker::timing_test
