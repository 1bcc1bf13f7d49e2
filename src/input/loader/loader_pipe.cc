// Objects on their way through the result queue of the simulation: a worker's feeder thread pickles
// them and writes them into the one pipe of the loader, which holds less than such a batch, so that
// writer and receiver are at it together.
#include "input/loader/loader_player.h"

namespace stoker::loader {

/// A worker's feeder thread sends its parcels one after the other.
void Player::hand_to_feeder(int r, Parcel parcel) {
  if (!model_.sends_objects()) return deliver(r, parcel);
  Worker& worker = ranks_[r].workers[parcel.worker];
  worker.objects.push_back(parcel);
  if (worker.objects.size() == 1) pickle_next(r, parcel.worker);
}

/// Pickling keeps the interpreter's lock: a worker that makes its next batch by Python stands still
/// meanwhile, and one that waits for its samples does not.
void Player::pickle_next(int r, int w) {
  Rank& rank = ranks_[r];
  Worker& worker = rank.workers[w];
  if (worker.objects.empty()) return;
  const Parcel& parcel = worker.objects.front();
  if (parcel.ended) return pickled(r, w);
  const Seconds work = model_.pickle.of(rank.tasks[parcel.task].samples);
  if (worker.computing) worker.lock_debt += model_.lock_share * work;
  start_cpu({Actor::kPickle, r, w}, work);
}

void Player::pickled(int r, int w) {
  Rank& rank = ranks_[r];
  rank.writers.push_back(w);
  if (rank.writers.size() == 1) begin_write(r);
}

/// The receiver sees a message as soon as its first bytes are in the pipe.
void Player::begin_write(int r) {
  Rank& rank = ranks_[r];
  const Parcel parcel = rank.workers[rank.writers.front()].objects.front();
  deliver(r, parcel);
  if (parcel.ended) written(r);
}

/// Whether the receiver has to read objects first: both ends are busy until they are through.
bool Player::reads_pipe(int r, const Parcel& parcel) {
  Rank& rank = ranks_[r];
  if (!model_.sends_objects()) return false;
  const Seconds work = model_.pipe.of(rank.tasks[parcel.task].samples);
  if (model_.pin) rank.pin_busy += work;
  else rank.main_busy += work;
  rank.pipe_ends = 2;
  start_first({Actor::kPipeIn, r, parcel.worker}, work);
  start_first({Actor::kPipeOut, r, parcel.worker}, work);
  return true;
}

void Player::pipe_end_done(int r) {
  Rank& rank = ranks_[r];
  if (--rank.pipe_ends > 0) return;
  written(r);
  if (model_.pin) return pin_received(r);
  take_received(r);
}

/// The pipe is free for the next writer, and the feeder thread for its next parcel.
void Player::written(int r) {
  Rank& rank = ranks_[r];
  const int w = rank.writers.front();
  rank.writers.pop_front();
  rank.workers[w].objects.pop_front();
  // A parcel that comes while the next writer begins is taken up as it comes.
  const bool more = !rank.workers[w].objects.empty();
  if (!rank.writers.empty()) begin_write(r);
  if (more) pickle_next(r, w);
}

}  // namespace stoker::loader
