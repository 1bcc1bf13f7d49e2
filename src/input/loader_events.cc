#include "input/loader_events.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>

#include "input/shared_resource.h"

namespace stoker {
namespace {

/// Batches up to this size draw each sample; the sum of more is near enough to its first three
/// moments.
constexpr std::int64_t kDrawEach = 16;

/// What a job on the cores or the disk belongs to.
enum class Actor : std::uint32_t {
  kWorker,
  kWorkerStart,
  kMainFork,
  kMainLoad,
  kMainReceive,
  kMainHost,
  kPin
};

struct Owner {
  Actor actor;
  int rank, worker;
};

/// Packs an owner into a job id: actor 4 bits, rank 12, worker 16.
std::uint32_t pack(Owner o) {
  return static_cast<std::uint32_t>(o.actor) << 28 | static_cast<std::uint32_t>(o.rank) << 16 |
         static_cast<std::uint32_t>(o.worker);
}
Owner unpack(std::uint32_t id) {
  return {static_cast<Actor>(id >> 28), static_cast<int>(id >> 16 & 0xFFF),
          static_cast<int>(id & 0xFFFF)};
}

struct Worker {
  std::deque<std::int64_t> indices;  ///< batches asked of it, not begun
  std::int64_t current = -1;
  int outstanding = 0;  ///< asked of it and not yet yielded
  bool ready = false;   ///< its process has started
};

enum class MainState { kStarting, kWaiting, kReceiving, kInStep, kDone };

struct Rank {
  std::vector<Worker> workers;
  std::deque<std::int64_t> results;    ///< finished by workers, not received
  std::deque<std::int64_t> pin_queue;  ///< waiting for the pin thread
  std::vector<std::uint8_t> here;      ///< received, not yielded
  std::vector<int> owner;              ///< the worker that each batch was asked of
  std::int64_t pin_current = -1, receiving = -1;
  std::int64_t sent = 0;     ///< next batch to ask for
  std::int64_t yielded = 0;  ///< batches given to the loop
  int next_worker = 0, forked = 0;
  bool host_busy = false;
  MainState state = MainState::kStarting;
  double main_busy = 0, pin_busy = 0;
};

class Player {
 public:
  explicit Player(const LoaderModel& model)
      : model_(model),
        cpu_(model.cores, model.slowdown_per_core, model.oversubscription),
        disk_(model.disk_capacity, 0),
        cost_(model.sample),
        random_(model.seed),
        ranks_(model.ranks),
        arrived_(model.batches, 0) {}

  LoaderTrace play();

 private:
  [[nodiscard]] std::int64_t samples_of(std::int64_t index) const {
    return index + 1 == model_.batches ? model_.last_batch : model_.batch;
  }
  double batch_cpu(std::int64_t index) {
    const std::int64_t n = samples_of(index);
    return cost_.draw(n, random_) + model_.collate_sample * static_cast<double>(n);
  }
  void start_cpu(Owner owner, double work) { cpu_.start(now_, pack(owner), work); }

  void begin();
  void dispatch(Owner owner);
  void fork_next(int r);
  void prime(int r);
  void ask(int r);
  int choose_worker(Rank& rank) const;
  void feed(int r, int w);
  void compute(int r, int w);
  void worker_done(int r, int w);
  void pin_next(int r);
  void fetch(int r);
  void load(int r);
  void receive_next(int r);
  void yield(int r, std::int64_t index);
  void begin_step();
  void end_step();
  void maybe_continue(int r);
  void note(int r);

  const LoaderModel& model_;
  SharedResource cpu_, disk_;
  BatchCost cost_;
  Random random_;
  double now_ = 0;
  std::vector<Rank> ranks_;
  std::vector<int> arrived_;  ///< ranks that have batch k (in order of yielding)
  std::int64_t steps_begun_ = 0, steps_done_ = 0;
  double step_ends_ = std::numeric_limits<double>::infinity();
  int workers_busy_ = 0;
  double workers_integral_ = 0, workers_since_ = 0;
  LoaderTrace trace_;
};

void Player::begin() {
  for (int r = 0; r < model_.ranks; ++r) {
    Rank& rank = ranks_[r];
    rank.workers.resize(model_.workers);
    rank.here.assign(model_.batches, 0);
    rank.owner.assign(model_.batches, 0);
    if (model_.workers > 0 && model_.forks) {
      start_cpu({Actor::kMainFork, r, 0}, model_.fork);
    } else {
      for (Worker& worker : rank.workers) worker.ready = true;
      rank.forked = model_.workers;
      start_cpu({Actor::kMainFork, r, 0}, model_.workers > 0 ? model_.reset : 0);
    }
  }
}

/// Forks are serial in the main process; a forked worker starts up beside the next fork.
void Player::fork_next(int r) {
  Rank& rank = ranks_[r];
  if (rank.forked < model_.workers) {
    start_cpu({Actor::kWorkerStart, r, rank.forked}, model_.startup);
    if (++rank.forked < model_.workers) return start_cpu({Actor::kMainFork, r, 0}, model_.fork);
  }
  prime(r);
}

void Player::prime(int r) {
  for (int i = 0; i < model_.workers * model_.prefetch; ++i) ask(r);
  fetch(r);
}

/// In order: strictly round robin. Otherwise the next worker with room.
int Player::choose_worker(Rank& rank) const {
  for (int tries = 0; tries < model_.workers; ++tries) {
    const int w = rank.next_worker;
    rank.next_worker = (w + 1) % model_.workers;
    if (model_.in_order || rank.workers[w].outstanding < model_.prefetch) return w;
  }
  return -1;
}

void Player::ask(int r) {
  Rank& rank = ranks_[r];
  if (rank.sent >= model_.batches) return;
  const int w = choose_worker(rank);
  if (w < 0) return;
  rank.owner[rank.sent] = w;
  rank.workers[w].indices.push_back(rank.sent++);
  ++rank.workers[w].outstanding;
  feed(r, w);
}

void Player::feed(int r, int w) {
  Worker& worker = ranks_[r].workers[w];
  if (!worker.ready || worker.current >= 0 || worker.indices.empty()) return;
  worker.current = worker.indices.front();
  worker.indices.pop_front();
  workers_integral_ += workers_busy_ * (now_ - workers_since_);
  workers_since_ = now_;
  ++workers_busy_;
  if (model_.disk_per_sample > 0) {
    disk_.start(now_, pack({Actor::kWorker, r, w}),
                model_.disk_per_sample * static_cast<double>(samples_of(worker.current)));
  } else {
    compute(r, w);
  }
}

void Player::compute(int r, int w) {
  start_cpu({Actor::kWorker, r, w}, batch_cpu(ranks_[r].workers[w].current) + model_.worker_batch);
}

void Player::worker_done(int r, int w) {
  Rank& rank = ranks_[r];
  const std::int64_t index = rank.workers[w].current;
  rank.workers[w].current = -1;
  workers_integral_ += workers_busy_ * (now_ - workers_since_);
  workers_since_ = now_;
  --workers_busy_;
  feed(r, w);
  if (model_.pin) {
    rank.pin_queue.push_back(index);
    if (rank.pin_current < 0) pin_next(r);
  } else {
    rank.results.push_back(index);
    if (rank.state == MainState::kWaiting) fetch(r);
  }
}

void Player::pin_next(int r) {
  Rank& rank = ranks_[r];
  if (rank.pin_queue.empty()) return;
  rank.pin_current = rank.pin_queue.front();
  rank.pin_queue.pop_front();
  const double work = model_.receive_batch +
                      model_.receive_sample * static_cast<double>(samples_of(rank.pin_current));
  rank.pin_busy += work;
  start_cpu({Actor::kPin, r, 0}, work);
}

/// The main process wants its next batch.
void Player::fetch(int r) {
  Rank& rank = ranks_[r];
  if (rank.yielded >= model_.batches) {
    rank.state = MainState::kDone;
    return;
  }
  if (model_.workers == 0) {
    rank.state = MainState::kReceiving;
    rank.receiving = rank.yielded;
    if (model_.disk_per_sample > 0) {
      disk_.start(now_, pack({Actor::kMainLoad, r, 0}),
                  model_.disk_per_sample * static_cast<double>(samples_of(rank.receiving)));
      return;
    }
    return load(r);
  }
  if (model_.in_order && rank.here[rank.yielded] != 0) return yield(r, rank.yielded);
  receive_next(r);
}

/// Without workers the main process makes the batch itself.
void Player::load(int r) {
  Rank& rank = ranks_[r];
  const double work = batch_cpu(rank.receiving) + model_.receive_batch +
                      model_.receive_sample * static_cast<double>(samples_of(rank.receiving));
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
  const double work =
      model_.pin ? model_.take_batch
                 : model_.receive_batch +
                       model_.receive_sample * static_cast<double>(samples_of(rank.receiving));
  rank.main_busy += work;
  start_cpu({Actor::kMainReceive, r, 0}, work);
}

/// A batch goes to the training loop; exactly one new one is asked for, before the step.
void Player::yield(int r, std::int64_t index) {
  Rank& rank = ranks_[r];
  const std::int64_t k = rank.yielded++;
  if (model_.workers > 0) {
    --rank.workers[rank.owner[index]].outstanding;
    ask(r);
  }
  if (r == 0) note(0);
  rank.state = MainState::kInStep;
  rank.host_busy = true;
  ++arrived_[k];
  begin_step();
  start_cpu({Actor::kMainHost, r, 0}, model_.host_cpu);
}

void Player::note(int r) {
  const Rank& rank = ranks_[r];
  trace_.yielded.push_back(now_);
  trace_.totals.push_back({cpu_.busy(now_),
                           workers_integral_ + workers_busy_ * (now_ - workers_since_),
                           disk_.busy(now_), rank.main_busy, rank.pin_busy});
}

/// A step runs on all ranks at once: gradients meet, so it starts when the last rank has its batch.
void Player::begin_step() {
  if (steps_begun_ > steps_done_ || steps_begun_ >= model_.batches) return;
  if (arrived_[steps_begun_] < model_.ranks) return;
  ++steps_begun_;
  step_ends_ = now_ + model_.step;
}

void Player::end_step() {
  ++steps_done_;
  trace_.step_end.push_back(now_);
  step_ends_ = std::numeric_limits<double>::infinity();
  begin_step();
  for (int r = 0; r < model_.ranks; ++r) maybe_continue(r);
}

void Player::maybe_continue(int r) {
  Rank& rank = ranks_[r];
  if (rank.state != MainState::kInStep || rank.host_busy) return;
  if (steps_done_ >= rank.yielded - model_.run_ahead) fetch(r);
}

void Player::dispatch(Owner owner) {
  Rank& rank = ranks_[owner.rank];
  switch (owner.actor) {
    case Actor::kWorker:
      return worker_done(owner.rank, owner.worker);
    case Actor::kWorkerStart:
      rank.workers[owner.worker].ready = true;
      return feed(owner.rank, owner.worker);
    case Actor::kMainFork:
      return fork_next(owner.rank);
    case Actor::kMainLoad:
      return yield(owner.rank, rank.receiving);
    case Actor::kMainReceive: {
      if (model_.in_order) {
        rank.here[rank.receiving] = 1;
        return fetch(owner.rank);
      }
      return yield(owner.rank, rank.receiving);
    }
    case Actor::kMainHost:
      rank.host_busy = false;
      return maybe_continue(owner.rank);
    case Actor::kPin: {
      rank.results.push_back(rank.pin_current);
      rank.pin_current = -1;
      pin_next(owner.rank);
      if (rank.state == MainState::kWaiting) fetch(owner.rank);
      return;
    }
  }
}

LoaderTrace Player::play() {
  begin();
  while (true) {
    const double cpu_end = cpu_.next_end(now_);
    const double disk_end = disk_.next_end(now_);
    const double next = std::min({cpu_end, disk_end, step_ends_});
    if (!std::isfinite(next)) break;
    now_ = next;
    if (next == step_ends_) {
      end_step();
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

}  // namespace

BatchCost::BatchCost(const std::vector<double>& distribution) : distribution_(distribution) {
  const auto n = static_cast<double>(distribution.size());
  for (const double x : distribution) mean_ += x / n;
  double square = 0, cube = 0;
  for (const double x : distribution) {
    const double d = x - mean_;
    square += d * d / n;
    cube += d * d * d / n;
  }
  sd_ = std::sqrt(square);
  skew_ = sd_ > 0 ? cube / (square * sd_) : 0;
}

double BatchCost::draw(std::int64_t count, Random& random) const {
  if (distribution_.empty() || count <= 0) return 0;
  const auto n = static_cast<double>(count);
  if (sd_ == 0) return mean_ * n;
  if (count <= kDrawEach) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += distribution_[random.below(distribution_.size())];
    return sum;
  }
  const double z = random.normal();
  const double skewed =
      z + skew_ / std::sqrt(n) / 6 * (z * z - 1);  // Cornish and Fisher's first term
  return std::max(0.0, mean_ * n + sd_ * std::sqrt(n) * skewed);
}

LoaderTrace play_loader(const LoaderModel& model) { return Player(model).play(); }

}  // namespace stoker
