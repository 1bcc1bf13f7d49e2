// The workers' side of the simulation: how they start, are asked, make batches and send them.
#include <algorithm>
#include <utility>

#include "input/loader/loader_player.h"

namespace stoker::loader {

/// Processes are started one after the other by the main process. A started worker comes up beside
/// the next start, unless it must first read its data set out of the pipe.
void Player::fork_next(int r) {
  Rank& rank = ranks_[r];
  if (rank.forked < model_.workers) {
    const Owner starting{Actor::kWorkerStart, r, rank.forked++};
    if (model_.startup_wait > 0_s) set_timer(starting, model_.startup_wait, 0);
    else start_cpu(starting, model_.startup);
    if (model_.start == LoaderModel::Start::kSerial) return;
    if (rank.forked < model_.workers) return start_cpu({Actor::kMainFork, r, 0}, model_.fork);
  }
  prime(r);
}

void Player::worker_started(Owner owner) {
  Rank& rank = ranks_[owner.rank];
  rank.workers[owner.worker].ready = true;
  feed(owner.rank, owner.worker);
  if (model_.start != LoaderModel::Start::kSerial) return;
  if (rank.forked < model_.workers) {
    start_cpu({Actor::kMainFork, owner.rank, 0}, model_.fork);
  } else {
    prime(owner.rank);
  }
}

void Player::prime(int r) {
  for (int i = 0; i < model_.workers * model_.prefetch; ++i) ask(r);
  fetch(r);
}

/// The next of the workers whose streams go on; in order whatever it has to do already, otherwise
/// the next with fewer tasks than its share of the window.
int Player::choose_worker(Rank& rank) const {
  const int share = rank.active > 0 ? model_.prefetch * model_.workers / rank.active : 0;
  for (int tries = 0; tries < model_.workers; ++tries) {
    const int w = rank.next_worker;
    rank.next_worker = (w + 1) % model_.workers;
    if (!rank.workers[w].active) continue;
    if (model_.in_order || rank.workers[w].outstanding < share) return w;
  }
  return -1;
}

void Player::ask(int r) {
  Rank& rank = ranks_[r];
  const auto number = static_cast<std::int64_t>(rank.tasks.size());
  if (model_.streams.empty() && number >= model_.batches) return;
  const int w = choose_worker(rank);
  if (w < 0) return;
  const bool last = model_.streams.empty() && number + 1 == model_.batches;
  Task task{.worker = w, .samples = last ? model_.last_batch : model_.batch};
  if (model_.streams.empty()) task.work = rank.dealer.deal(task.samples);
  rank.tasks.push_back(task);
  rank.workers[w].indices.push_back(number);
  ++rank.workers[w].outstanding;
  feed(r, w);
}

void Player::count_workers(int change) {
  workers_integral_ += workers_busy_ * (now_ - workers_since_);
  workers_since_ = now_;
  workers_busy_ += change;
}

/// Gives a worker its next task if it is idle.
void Player::feed(int r, int w) {
  begin_next(r, w);
  tell_end(r, w);
}

void Player::tell_end(int r, int w) {
  Worker& worker = ranks_[r].workers[w];
  if (!worker.tells_end) return;
  worker.tells_end = false;
  send(r, w, {.task = -1, .worker = w, .ended = true});
}

void Player::begin_next(int r, int w) {
  Rank& rank = ranks_[r];
  Worker& worker = rank.workers[w];
  if (!worker.ready || worker.ended || worker.current >= 0 || worker.indices.empty()) return;
  worker.current = worker.indices.front();
  worker.indices.pop_front();
  Task& task = rank.tasks[worker.current];
  if (!model_.streams.empty()) {
    task.samples = std::min(task.samples, worker.left);
    worker.left -= task.samples;
    if (task.samples == 0 || (model_.drop_last && task.samples < model_.batch)) {
      worker.current = -1;
      worker.ended = worker.tells_end = true;
      return;
    }
    const auto own = static_cast<std::size_t>(w);
    Dealer& dealer = own < rank.own_dealers.size() ? rank.own_dealers[own] : rank.dealer;
    task.work = dealer.deal(task.samples);
    if (!worker.streaming && own < model_.stream_start.size())
      task.work.wait += model_.stream_start[own];
    worker.streaming = true;
  }
  count_workers(+1);
  worker.began = now_;
  const Owner owner{Actor::kWorker, r, w};
  const Seconds wait = task.work.wait + model_.collate_wait.of(task.samples) +
                       (worker.fresh ? model_.warm_up_wait : 0_s);
  if (wait > 0_s) return set_timer(owner, wait, 0);
  read(owner, task.samples);
}

void Player::compute(int r, int w) {
  Worker& worker = ranks_[r].workers[w];
  const Seconds first = worker.fresh ? model_.warm_up : 0_s;
  worker.fresh = false;
  worker.computing = true;
  start_cpu({Actor::kWorker, r, w}, ranks_[r].tasks[worker.current].work.cpu + first);
}

/// What the feeder thread kept the interpreter's lock for comes on top.
void Player::computed(int r, int w) {
  Worker& worker = ranks_[r].workers[w];
  if (worker.lock_debt > 0_s)
    return start_cpu({Actor::kWorker, r, w}, std::exchange(worker.lock_debt, 0_s));
  collate(r, w);
}

/// The batch is laid out in shared memory when collating begins.
void Player::collate(int r, int w) {
  Rank& rank = ranks_[r];
  const std::int64_t samples = rank.tasks[rank.workers[w].current].samples;
  rank.shared_samples += samples;
  if (r == 0) trace_.peak_samples = std::max(trace_.peak_samples, rank.shared_samples);
  start_cpu({Actor::kCollate, r, w}, model_.collate.of(samples));
}

void Player::worker_done(int r, int w) {
  Rank& rank = ranks_[r];
  const std::int64_t task = rank.workers[w].current;
  keep(r, {LoaderSpan::Kind::kPrepare, w, task, rank.workers[w].began, now_});
  rank.workers[w].current = -1;
  rank.workers[w].computing = false;
  count_workers(-1);
  begin_next(r, w);
  send(r, w, {.task = task, .worker = w});
  tell_end(r, w);
  if (rank.workers[w].current >= 0) return;
  // An idle worker's other threads have the interpreter for themselves.
  flush_sends(r, w);
  if (rank.handover_from == w) handed_over(r);
}

/// The worker's feeder thread takes the parcel; while the worker makes its next batch it waits for
/// its turns at the interpreter's lock.
void Player::send(int r, int w, Parcel parcel) {
  Worker& worker = ranks_[r].workers[w];
  const Seconds delay = model_.lock_wait * model_.send_turns;
  if (worker.current < 0 || delay <= 0_s) {
    flush_sends(r, w);
    return hand_to_feeder(r, parcel);
  }
  worker.sends.push_back(parcel);
  worker.last_send = std::max(worker.last_send, now_) + delay;
  set_timer({Actor::kSend, r, w}, worker.last_send - now_, worker.send_serial);
}

void Player::flush_sends(int r, int w) {
  Worker& worker = ranks_[r].workers[w];
  ++worker.send_serial;
  worker.last_send = now_;
  while (!worker.sends.empty()) {
    const Parcel parcel = worker.sends.front();
    worker.sends.pop_front();
    hand_to_feeder(r, parcel);
  }
}

/// A parcel lies in the result queue.
void Player::deliver(int r, Parcel parcel) {
  Rank& rank = ranks_[r];
  if (!parcel.ended && !model_.pin) ++rank.ready;
  if (model_.pin) {
    rank.pin_queue.push_back(parcel);
    if (!rank.pin_active) pin_next(r);
  } else {
    rank.results.push_back(parcel);
    if (rank.state == MainState::kWaiting) fetch(r);
  }
}

}  // namespace stoker::loader
