// The main process of the simulation: receiving, pinning, yielding, stepping.
#include <algorithm>

#include "input/loader/loader_player.h"

namespace stoker::loader {

void Player::pin_next(int r) {
  Rank& rank = ranks_[r];
  rank.pin_active = !rank.pin_queue.empty();
  if (!rank.pin_active) return;
  rank.pinning = rank.pin_queue.front();
  rank.pin_queue.pop_front();
  if (rank.pinning.ended) return pinned(r);
  rank.pinning_since = now_;
  if (!reads_pipe(r, rank.pinning)) pin_received(r);
}

/// The pin thread has a batch's bytes.
void Player::pin_received(int r) {
  Rank& rank = ranks_[r];
  const std::int64_t samples = rank.tasks[rank.pinning.task].samples;
  const Seconds python = model_.receive.of(samples);
  rank.pin_busy += python + model_.pin_copy.of(samples);
  // Both threads run Python in one interpreter: what one does, the other waits for.
  if (rank.host_busy) rank.lock_debt += python;
  start_first({Actor::kPin, r, 0}, python);
}

/// Each tensor of a received batch is fetched from a thread of the worker that made it, which needs
/// turns at that worker's interpreter.
void Player::hand_over(int r, int w) {
  Rank& rank = ranks_[r];
  rank.handover_from = w;
  ++rank.handover_serial;
  const Seconds delay = model_.lock_wait * model_.handover_turns;
  if (delay <= 0_s || rank.workers[w].current < 0) return handed_over(r);
  set_timer({Actor::kHandover, r, w}, delay, rank.handover_serial);
}

void Player::handed_over(int r) {
  Rank& rank = ranks_[r];
  rank.handover_from = -1;
  if (!model_.pin) return received(r);
  start_cpu({Actor::kPinCopy, r, 0}, model_.pin_copy.of(rank.tasks[rank.pinning.task].samples));
}

void Player::pinned(int r) {
  Rank& rank = ranks_[r];
  rank.results.push_back(rank.pinning);
  if (!rank.pinning.ended) {
    keep(r, {LoaderSpan::Kind::kPin, 0, rank.pinning.task, rank.pinning_since, now_});
    ++rank.ready;
    rank.shared_samples -= rank.tasks[rank.pinning.task].samples;
  }
  pin_next(r);
  if (rank.state == MainState::kWaiting) fetch(r);
}

/// The main process wants its next batch.
void Player::fetch(int r) {
  Rank& rank = ranks_[r];
  if (rank.state == MainState::kInStep) rank.wanting_since = now_;
  if (model_.workers == 0) {
    if (rank.yielded >= model_.batches) {
      rank.state = MainState::kDone;
      return;
    }
    rank.state = MainState::kReceiving;
    const std::int64_t samples =
        rank.yielded + 1 == model_.batches ? model_.last_batch : model_.batch;
    rank.receiving.task = samples;
    rank.loading = rank.dealer.deal(samples);
    const Owner owner{Actor::kMainLoad, r, 0};
    const Seconds wait = rank.loading.wait + model_.collate_wait.of(samples) +
                         (rank.fresh ? model_.warm_up_wait : 0_s);
    if (wait > 0_s) return set_timer(owner, wait, 0);
    return read(owner, samples);
  }
  const auto asked = static_cast<std::int64_t>(rank.tasks.size());
  while (rank.next < asked) {
    const Task& task = rank.tasks[rank.next];
    if (!task.gone && (task.here || rank.workers[task.worker].active)) break;
    ++rank.next;
  }
  if (rank.next >= asked) {
    rank.state = MainState::kDone;
  } else if (rank.tasks[rank.next].here) {
    yield(r, rank.next);
  } else {
    receive_next(r);
  }
}

/// Without workers the main process makes the batch itself.
void Player::load(int r) {
  Rank& rank = ranks_[r];
  const std::int64_t samples = rank.receiving.task;
  const Seconds first = rank.fresh ? model_.warm_up : 0_s;
  rank.fresh = false;
  const Seconds work =
      rank.loading.cpu + first + model_.collate.of(samples) + model_.pin_copy.of(samples);
  rank.main_busy += work;
  start_cpu({Actor::kMainLoad, r, 0}, work);
}

void Player::receive_next(int r) {
  Rank& rank = ranks_[r];
  if (rank.results.empty()) {
    rank.state = MainState::kWaiting;
    return;
  }
  rank.state = MainState::kReceiving;
  rank.receiving = rank.results.front();
  rank.results.pop_front();
  if (rank.receiving.ended) return stream_ended(r, rank.receiving.worker);
  if (model_.pin || !reads_pipe(r, rank.receiving)) take_received(r);
}

/// The training thread has a batch's bytes, or takes what the pin thread has received.
void Player::take_received(int r) {
  Rank& rank = ranks_[r];
  const Seconds work =
      model_.pin ? model_.take : model_.receive.of(rank.tasks[rank.receiving.task].samples);
  rank.main_busy += work;
  start_first({Actor::kMainReceive, r, 0}, work);
}

void Player::received(int r) {
  Rank& rank = ranks_[r];
  Task& task = rank.tasks[rank.receiving.task];
  task.here = true;
  if (model_.in_order) return fetch(r);
  yield(r, rank.receiving.task);
}

/// A stop does not free the other tasks of that worker: they stay counted, and one task more is
/// asked of the others.
void Player::stream_ended(int r, int w) {
  Worker& worker = ranks_[r].workers[w];
  if (worker.active) --ranks_[r].active;
  worker.active = false;
  ask(r);
  fetch(r);
}

/// A batch goes to the training loop; exactly one new one is asked for, before the step.
void Player::yield(int r, std::int64_t number) {
  Rank& rank = ranks_[r];
  const auto k = static_cast<std::size_t>(rank.yielded++);
  keep(r, {LoaderSpan::Kind::kWait, 0, static_cast<std::int64_t>(k), rank.wanting_since, now_});
  if (r == 0) note(0);
  if (model_.workers > 0) {
    Task& task = rank.tasks[number];
    task.gone = true;
    task.here = false;
    --rank.ready;
    if (!model_.pin) {  // the loop lets go of its last batch
      rank.shared_samples -= rank.held_samples;
      rank.held_samples = task.samples;
    }
    --rank.workers[task.worker].outstanding;
    ask(r);
  }
  rank.state = MainState::kInStep;
  rank.host_busy = true;
  if (arrived_.size() <= k) {
    arrived_.resize(k + 1, 0);
    largest_.resize(k + 1, 0);
  }
  ++arrived_[k];
  const std::int64_t samples =
      model_.workers > 0 ? rank.tasks[number].samples : rank.receiving.task;
  largest_[k] = std::max(largest_[k], samples);
  begin_step();
  start_cpu({Actor::kMainHost, r, 0}, model_.host_cpu);
}

void Player::note(int r) {
  const Rank& rank = ranks_[r];
  trace_.yielded.push_back(now_);
  trace_.ready.push_back(rank.ready);
  trace_.totals.push_back({cpu_.busy(now_),
                           workers_integral_ + workers_busy_ * (now_ - workers_since_),
                           disk_.busy(now_), rank.main_busy, rank.pin_busy});
}

void Player::keep(int r, LoaderSpan span) {
  if (r == 0 && model_.keep_spans && span.to > span.from) trace_.spans.push_back(span);
}

/// A step runs on all ranks at once: gradients meet, so it starts when the last rank has its batch.
void Player::begin_step() {
  if (steps_begun_ > steps_done_) return;
  if (steps_begun_ >= static_cast<std::int64_t>(arrived_.size())) return;
  if (arrived_[steps_begun_] < model_.ranks) return;
  step_began_ = now_;
  step_ends_ = now_ + model_.step_of(largest_[steps_begun_++]);
}

void Player::end_step() {
  keep(0, {LoaderSpan::Kind::kStep, 0, steps_done_, step_began_, now_});
  ++steps_done_;
  trace_.step_end.push_back(now_);
  step_ends_ = kNeverEnds;
  begin_step();
  for (int r = 0; r < model_.ranks; ++r) maybe_continue(r);
}

void Player::maybe_continue(int r) {
  Rank& rank = ranks_[r];
  if (rank.state != MainState::kInStep || rank.host_busy) return;
  if (steps_done_ >= rank.yielded - model_.run_ahead) fetch(r);
}

}  // namespace stoker::loader
