#include "input/loader/loader_events.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "input/loader/loader_player.h"

namespace stoker {
namespace loader {
namespace {

/// A burst of CPU time of a process that sleeps most of the time is served at once up to this
/// length: the longest slice of Linux' scheduler (kernel/sched/fair.c, sysctl_sched_base_slice:
/// 0.7 ms times 1 + log2 of the CPUs, 8 at most). Measured too: a process that wakes beside six
/// busy ones on two cores runs after 0.08 ms (docs/models/input.md).
constexpr Seconds kBurst = 2.8e-3_s;

/// Packs an owner into a job id: actor 4 bits, rank 12, worker 16.
std::uint32_t pack(Owner o) {
  return static_cast<std::uint32_t>(o.actor) << 28 | static_cast<std::uint32_t>(o.rank) << 16 |
         static_cast<std::uint32_t>(o.worker);
}
Owner unpack(std::uint32_t id) {
  return {static_cast<Actor>(id >> 28), static_cast<int>(id >> 16 & 0xFFF),
          static_cast<int>(id & 0xFFFF)};
}

}  // namespace

Player::Player(const LoaderModel& model)
    : model_(model),
      cpu_(model.cores, model.slowdown_per_core, model.oversubscription, model.quota),
      disk_(model.disk_capacity, 0) {
  ranks_.reserve(model.ranks);
  for (int r = 0; r < model.ranks; ++r) ranks_.emplace_back(model, r);
}

void Player::start_cpu(Owner owner, Seconds work) { cpu_.start(now_, pack(owner), work); }

void Player::start_first(Owner owner, Seconds work) {
  cpu_.start(now_, pack(owner), work,
             work <= kBurst ? SharedResource::Class::kFirst : SharedResource::Class::kEven);
}

void Player::set_timer(Owner owner, Seconds delay, std::uint32_t serial) {
  timers_.push({now_ + delay, pack(owner), serial});
}

void Player::begin() {
  for (int r = 0; r < model_.ranks; ++r) {
    Rank& rank = ranks_[r];
    for (std::size_t w = 0; w < rank.workers.size(); ++w) {
      if (w < model_.streams.size()) rank.workers[w].left = model_.streams[w];
    }
    if (model_.workers > 0 && model_.start != LoaderModel::Start::kRunning) {
      start_cpu({Actor::kMainFork, r, 0}, model_.fork + model_.server + model_.sampler);
      continue;
    }
    for (Worker& worker : rank.workers) {
      worker.ready = true;
      worker.fresh = false;
    }
    rank.forked = model_.workers;
    rank.fresh = model_.workers == 0 && model_.start != LoaderModel::Start::kRunning;
    start_cpu({Actor::kMainFork, r, 0}, model_.sampler + (model_.workers > 0 ? model_.reset : 0_s));
  }
}

void Player::dispatch(Owner owner) {
  const int r = owner.rank;
  Rank& rank = ranks_[r];
  switch (owner.actor) {
    case Actor::kWorker:
      return computed(r, owner.worker);
    case Actor::kCollate:
      return worker_done(r, owner.worker);
    case Actor::kWorkerStart:
      return worker_started(owner);
    case Actor::kMainFork:
      return fork_next(r);
    case Actor::kMainLoad:
      return yield(r, 0);
    case Actor::kMainReceive:
      if (model_.pin) return received(r);
      return hand_over(r, rank.receiving.worker);
    case Actor::kMainHost:
      if (rank.lock_debt > 0_s) return start_cpu(owner, std::exchange(rank.lock_debt, 0_s));
      rank.host_busy = false;
      return maybe_continue(r);
    case Actor::kPin:
      return hand_over(r, rank.pinning.worker);
    case Actor::kPinCopy:
      return pinned(r);
    case Actor::kPickle:
      return pickled(r, owner.worker);
    case Actor::kPipeIn:
    case Actor::kPipeOut:
      return pipe_end_done(r);
    case Actor::kSend:
    case Actor::kHandover:
      return;
  }
}

void Player::dispatch_timer(Owner owner, std::uint32_t serial) {
  Rank& rank = ranks_[owner.rank];
  switch (owner.actor) {
    case Actor::kWorker:
      return read(owner, rank.tasks[rank.workers[owner.worker].current].samples);
    case Actor::kMainLoad:
      return read(owner, rank.receiving.task);
    case Actor::kWorkerStart:
      return start_cpu(owner, model_.startup);
    case Actor::kSend: {
      Worker& worker = rank.workers[owner.worker];
      if (serial != worker.send_serial || worker.sends.empty()) return;
      const Parcel parcel = worker.sends.front();
      worker.sends.pop_front();
      return hand_to_feeder(owner.rank, parcel);
    }
    case Actor::kHandover:
      if (serial == rank.handover_serial && rank.handover_from >= 0) handed_over(owner.rank);
      return;
    default:
      return;
  }
}

LoaderTrace Player::play() {
  begin();
  while (true) {
    const Seconds cpu_end = cpu_.next_end(now_);
    const Seconds disk_end = disk_.next_end(now_);
    const Seconds timer = timers_.empty() ? kNeverEnds : std::max(now_, timers_.top().at);
    const Seconds next = std::min({cpu_end, disk_end, timer, step_ends_});
    if (!std::isfinite(next.count())) break;
    if (model_.stop_after > 0 && steps_done_ >= model_.stop_after) break;
    now_ = next;
    if (next == step_ends_) {
      end_step();
    } else if (next == timer) {
      const Timer due = timers_.top();
      timers_.pop();
      dispatch_timer(unpack(due.owner), due.serial);
    } else if (next == cpu_end) {
      dispatch(unpack(cpu_.finish(now_)));
    } else {
      const Owner owner = unpack(disk_.finish(now_));
      if (owner.actor == Actor::kWorker) {
        compute(owner.rank, owner.worker);
      } else {
        load(owner.rank);
      }
    }
  }
  return std::move(trace_);
}

void Player::read(Owner owner, std::int64_t samples) {
  if (model_.disk_per_sample > 0_s) {
    disk_.start(now_, pack(owner), model_.disk_per_sample * static_cast<double>(samples));
  } else if (owner.actor == Actor::kWorker) {
    compute(owner.rank, owner.worker);
  } else {
    load(owner.rank);
  }
}

}  // namespace loader

LoaderTrace play_loader(const LoaderModel& model) { return loader::Player(model).play(); }

}  // namespace stoker
