#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "input/loader/fifo.h"
#include "input/loader/loader_events.h"
#include "input/loader/shared_resource.h"

namespace stoker::loader {

/// What a job on the cores, the disk or the clock belongs to.
enum class Actor : std::uint32_t {
  kWorker,       ///< makes the samples of a batch
  kCollate,      ///< ... and collates it
  kWorkerStart,  ///< a new process
  kMainFork,
  kMainLoad,  ///< without workers: samples and collating
  kMainReceive,
  kMainHost,  ///< launches the step
  kPin,       ///< receives
  kPinCopy,
  kSend,      ///< a worker's feeder thread waits for the interpreter's lock
  kHandover,  ///< a receiver waits for a worker's resource sharer
  kPickle,    ///< a worker's feeder thread turns objects into bytes
  kPipeIn,    ///< ... and writes them into the pipe
  kPipeOut    ///< the receiver reads them out of it
};

struct Owner {
  Actor actor;
  int rank, worker;
};

/// What a worker puts on the result queue: a finished batch, or the word that its stream has ended.
struct Parcel {
  std::int64_t task = -1;
  int worker = 0;
  bool ended = false;
};

struct Task {
  int worker = 0;
  std::int64_t samples = 0;
  SampleWork work{};
  bool here = false;  ///< received, not yielded
  bool gone = false;  ///< yielded
};

struct Worker {
  Fifo<std::int64_t> indices;  ///< tasks asked of it, not begun
  std::int64_t current = -1;
  int outstanding = 0;     ///< asked of it and not yet yielded
  bool ready = false;      ///< its process has started
  bool active = true;      ///< main has not heard that its stream ended
  bool fresh = true;       ///< has made no batch yet
  std::int64_t left = 0;   ///< samples of its stream
  bool streaming = false;  ///< has begun its stream
  bool ended = false;
  bool tells_end = false;  ///< has yet to send word of it
  Fifo<Parcel> sends;      ///< finished, the feeder thread has not yet had its turns
  std::uint32_t send_serial = 0;
  Seconds last_send;
  Seconds began;           ///< its current task
  bool computing = false;  ///< makes samples or collates; waiting for samples is none of it
  Seconds lock_debt;       ///< what its feeder thread kept the lock for meanwhile
  Fifo<Parcel> objects;    ///< sent, not yet through the pipe
};

enum class MainState { kStarting, kWaiting, kReceiving, kInStep, kDone };

struct Rank {
  Rank(const LoaderModel& model, int number)
      : dealer(model.samples, model.first_card + number * model.samples.cards() / model.ranks),
        workers(model.workers),
        active(model.workers) {
    for (const SampleDeck& deck : model.worker_samples) own_dealers.emplace_back(deck, 0);
  }

  Dealer dealer;
  std::vector<Dealer> own_dealers;  ///< of the workers, where their streams differ
  std::vector<Worker> workers;
  std::vector<Task> tasks;  ///< asked for, in that order
  Fifo<Parcel> results;     ///< finished by workers (and the pin thread), not received
  Fifo<Parcel> pin_queue;   ///< waiting for the pin thread
  Parcel pinning, receiving;
  Seconds pinning_since, wanting_since;  ///< for spans
  bool pin_active = false;
  std::int64_t next = 0;     ///< task to be yielded next in order
  std::int64_t yielded = 0;  ///< batches given to the loop
  int next_worker = 0, forked = 0;
  int active = 0;  ///< workers whose streams go on, as main knows
  int ready = 0;   ///< batches finished, not yielded
  bool host_busy = false;
  bool fresh = false;  ///< without workers: has made no batch yet
  Seconds lock_debt;   ///< the pin thread's Python work beside main's own
  Fifo<int> writers;   ///< workers with pickled objects; the first of them writes
  int pipe_ends = 0;   ///< still busy with the parcel in the pipe
  MainState state = MainState::kStarting;
  Seconds main_busy, pin_busy;
  SampleWork loading;      ///< without workers: the current batch
  int handover_from = -1;  ///< worker whose tensors are being handed over
  std::uint32_t handover_serial = 0;
  std::int64_t shared_samples = 0, held_samples = 0;  ///< in shared memory; of them the loop's own
};

/// Plays the DataLoaders of one host, event by event (docs/models/input.md section 3).
class Player {
 public:
  explicit Player(const LoaderModel& model);
  LoaderTrace play();

 private:
  struct Timer {
    Seconds at;
    std::uint32_t owner, serial;
    bool operator>(const Timer& other) const { return at > other.at; }
  };

  void start_cpu(Owner owner, Seconds work);
  void start_first(Owner owner, Seconds work);
  void set_timer(Owner owner, Seconds delay, std::uint32_t serial);

  void begin();
  void dispatch(Owner owner);
  void dispatch_timer(Owner owner, std::uint32_t serial);

  // Workers: loader_workers.cc.
  void fork_next(int r);
  void worker_started(Owner owner);
  void prime(int r);
  void ask(int r);
  [[nodiscard]] int choose_worker(Rank& rank) const;
  void feed(int r, int w);
  void begin_next(int r, int w);
  void tell_end(int r, int w);
  void read(Owner owner, std::int64_t samples);
  void compute(int r, int w);
  void computed(int r, int w);
  void collate(int r, int w);
  void worker_done(int r, int w);
  void send(int r, int w, Parcel parcel);
  void flush_sends(int r, int w);
  void deliver(int r, Parcel parcel);
  void count_workers(int change);

  // Objects on their way through the result queue: loader_pipe.cc.
  void hand_to_feeder(int r, Parcel parcel);
  void pickle_next(int r, int w);
  void pickled(int r, int w);
  void begin_write(int r);
  [[nodiscard]] bool reads_pipe(int r, const Parcel& parcel);
  void pipe_end_done(int r);
  void written(int r);

  // Main process and pin thread: loader_main.cc.
  void pin_next(int r);
  void pin_received(int r);
  void take_received(int r);
  void hand_over(int r, int w);
  void handed_over(int r);
  void pinned(int r);
  void fetch(int r);
  void load(int r);
  void receive_next(int r);
  void received(int r);
  void stream_ended(int r, int w);
  void yield(int r, std::int64_t task);
  void note(int r);
  void keep(int r, LoaderSpan span);
  void begin_step();
  void end_step();
  void maybe_continue(int r);

  const LoaderModel& model_;
  SharedResource cpu_, disk_;
  Seconds now_;
  std::vector<Rank> ranks_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<int> arrived_;           ///< ranks that have batch k (in order of yielding)
  std::vector<std::int64_t> largest_;  ///< samples of batch k, of the rank that has most
  std::int64_t steps_begun_ = 0, steps_done_ = 0;
  Seconds step_began_, step_ends_ = kNeverEnds;
  int workers_busy_ = 0;
  Seconds workers_integral_, workers_since_;
  LoaderTrace trace_;
};

}  // namespace stoker::loader
