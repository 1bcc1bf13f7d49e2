#include "diagnosis/timeline/rank_track.h"

#include <algorithm>
#include <cmath>

#include "diagnosis/timeline/times.h"

namespace stoker {
namespace {

/// Workers that start within so many seconds of each other belong to one epoch's loader: spawned
/// ones start one after the other.
constexpr double kSameGeneration = 3;
/// The main thread writes a checkpoint when it writes so many bytes a second: logs stay far below.
constexpr double kSavingRate = 8e6;
/// ... and goes on saving while it waits for storage for more than this share of an interval.
constexpr double kStillSaving = 0.3;
/// With no more than this many workers making batches, the loop waits for one of them.
constexpr double kOneAtWork = 1.3;
/// Messages of both sides from which their ratio is trusted.
constexpr double kEnoughMessages = 8;
/// Steps that warm up: the first ten, of fewer than fifty a fifth (`stoker observation` counts so).
constexpr std::size_t kWarmUp = 10;
constexpr double kWarmPart = 0.2;
/// A script that has been found so often in libraries that load or compute has imported them.
constexpr double kBegun = 10;

WorkerSeconds scaled(WorkerSeconds w, double factor) {
  for (double* part :
       {&w.cpu, &w.helpers_cpu, &w.queued, &w.idle, &w.storage, &w.sleeps, &w.locked, &w.alive})
    *part *= factor;
  return w;
}

}  // namespace

RankTrack::RankTrack(const ProcessFacts& facts) {
  out_.serial = facts.serial;
  out_.pid = facts.pid;
  out_.rank = facts.rank;
}

/// Importing and building the model is no part of the loop.
void RankTrack::begin_loop() {
  out_.start_up = out_.job.all();
  out_.job = {};
  out_.leader = {};
  out_.others_cpu = out_.others_queued = 0;
  out_.alone = {};
  out_.read_chars = out_.read_calls = out_.read_bytes = 0;
  out_.from = at_seconds(last_ns_);
  first_steps_.clear();
  busy_weight_ = computing_ = 0;
}

void RankTrack::forget_ended(const std::vector<const ProcessSample*>& workers) {
  const auto ended = [&](const auto& entry) {
    return std::ranges::none_of(
        workers, [&](const ProcessSample* worker) { return worker->serial == entry.first; });
  };
  std::erase_if(tracks_, ended);
  std::erase_if(generation_of_, ended);
}

void RankTrack::meet(const std::vector<const ProcessSample*>& workers,
                     const std::vector<ProcessFacts>& facts) {
  // Where one of the present workers has ended, those that begin are the next epoch's.
  const auto alive = std::ranges::count_if(workers, [&](const ProcessSample* worker) {
    const auto found = generation_of_.find(worker->serial);
    return found != generation_of_.end() && found->second + 1 == out_.generations.size();
  });
  bool whole = !out_.generations.empty() && alive == out_.generations.back().workers;
  for (const ProcessSample* worker : workers) {
    if (tracks_.contains(worker->serial)) continue;
    const double started = at_seconds(facts[worker->serial - 1].started_ns);
    const bool born_here = started > 0;
    const bool joins = whole && !out_.generations.empty() &&
                       started - out_.generations.back().to < kSameGeneration &&
                       started - out_.generations.back().from <
                           kSameGeneration * (1 + out_.generations.back().workers);
    if (!joins && out_.generations.empty() && born_here) begin_loop();
    if (!joins) {
      Generation fresh;
      fresh.from = std::max(0.0, started);
      fresh.seen_from_start = born_here;
      fresh.first_batch = -1;
      out_.generations.push_back(fresh);
      forget_ended(workers);
      asked_before_generation_ = first_ || !born_here ? 0 : static_cast<double>(before_.messages);
      made_by_generation_ = 0;
      whole = true;
    }
    // Until it is known when the workers end, `to` is when the last of them began.
    out_.generations.back().to = std::max(out_.generations.back().to, started);
    ++out_.generations.back().workers;
    tracks_.emplace(worker->serial, WorkerTrack(*worker, born_here));
    generation_of_[worker->serial] = out_.generations.size() - 1;
  }
  out_.workers_now = static_cast<int>(workers.size());
  out_.workers_most = std::max(out_.workers_most, out_.workers_now);
}

WorkerSeconds RankTrack::pass_workers(const std::vector<const ProcessSample*>& workers,
                                      double seconds) {
  WorkerSeconds all;
  for (const ProcessSample* worker : workers) {
    WorkerTrack& track = tracks_.at(worker->serial);
    all += track.add(*worker, seconds, costs_);
    written_ += track.grown();
    out_.read_chars += track.read().chars;
    out_.read_calls += track.read().calls;
    out_.read_bytes += track.read().bytes;
    if (generation_of_.at(worker->serial) + 1 == out_.generations.size())
      made_by_generation_ += track.grown();
  }
  return all;
}

double RankTrack::waits_in(const ThreadSeconds& passed, const ProcessSample& sample) const {
  if (out_.workers_now == 0) return 0;
  double waits =
      passed.in(WaitKind::kPoll) + passed.in(WaitKind::kPipe) + passed.in(WaitKind::kSocket);
  // Behind a pin thread the loop sleeps on that thread's queue, which is a lock.
  const bool pin = sample.pin_looks.all() > 0;
  if (pin) waits += passed.in(WaitKind::kFutex);
  return waits;
}

double RankTrack::starting_part(double before, double at) const {
  if (out_.generations.empty() || at <= before) return 0;
  const Generation& now = out_.generations.back();
  if (!now.seen_from_start || now.first_batch >= 0) return 0;
  // The first batch came at some time within the interval in which it was seen.
  const double from = std::max(before, now.from);
  const double to = made_by_generation_ > 0 ? (from + at) / 2 : at;
  return std::clamp((to - from) / (at - before), 0.0, 1.0);
}

JobSeconds RankTrack::states(const ProcessSample& sample, const ThreadSeconds& passed, double at,
                             double seconds, const Surroundings& around) {
  JobSeconds job;
  const double waits = waits_in(passed, sample);
  job[JobState::kWaitsForData] += waits;

  const double written = grown(before_.leader_written_chars, sample.leader_written_chars);
  // A checkpoint that was written to the page cache is waited for until the disk has it.
  const double storage = passed.in(WaitKind::kDisk) + passed.in(WaitKind::kNetworkStorage);
  const bool saves =
      written > kSavingRate * seconds || (saving_ && storage > kStillSaving * seconds);
  if (saves && !saving_) ++out_.saves;
  saving_ = saves;
  out_.written += written;
  job[saves ? JobState::kSaves : JobState::kComputes] += passed.cpu;
  job[saves ? JobState::kSaves : JobState::kReads] += storage;
  job[around.throttled ? JobState::kThrottled : JobState::kWaitsForCore] += passed.queued;

  const bool pin = sample.pin_looks.all() > 0;
  const bool with_workers = out_.workers_now > 0;
  if (!with_workers) {
    // Between two epochs the workers of the last are gone, and those of the next on their way.
    const bool between = around.starting || out_.workers_most > 0;
    job[between ? JobState::kStartsWorkers : JobState::kTalks] +=
        passed.in(WaitKind::kPoll) + passed.in(WaitKind::kPipe) + passed.in(WaitKind::kSocket);
  }
  if (!with_workers || !pin) {
    // A lock is held by threads of its own that compute, by the GPU, or by neither.
    const JobState lock = sample.busy_threads > 0 ? JobState::kComputes
                          : around.gpu            ? JobState::kWaitsForDevice
                                                  : JobState::kWaitsForThread;
    job[lock] += passed.in(WaitKind::kFutex);
  }
  job[JobState::kWaitsForDevice] += passed.in(WaitKind::kDevice);
  job[JobState::kSleeps] += passed.in(WaitKind::kTimer);
  job[JobState::kTalks] += passed.in(WaitKind::kChild);
  double elsewhere =
      passed.in(WaitKind::kStopped) + passed.in(WaitKind::kOther) + passed.in(WaitKind::kUnknown);
  if (around.throttled) {
    // Newer kernels take a throttled thread out of the run queue: it is found ready, and its time
    // is neither on a core nor waiting for one.
    const double ready = static_cast<double>(sample.looks.of(WaitKind::kRunning)) -
                         static_cast<double>(before_.looks.of(WaitKind::kRunning));
    const double looks =
        static_cast<double>(sample.looks.all()) - static_cast<double>(before_.looks.all());
    const double unseen =
        looks > 0 ? std::max(0.0, ready / looks * seconds - passed.cpu - passed.queued) : 0;
    for (JobState from : {JobState::kWaitsForData, JobState::kTalks, JobState::kSleeps,
                          JobState::kWaitsForThread}) {
      const double part = passed.all_asleep() > 0 ? job[from] / passed.all_asleep() : 0;
      const double moved = std::min(job[from], unseen * part);
      job[from] -= moved;
      job[JobState::kThrottled] += moved;
    }
  }
  job[JobState::kElsewhere] += elsewhere;
  // Forking is time on a core, and waiting for it too, but none of the step's.
  const double starting = starting_part(at - seconds, at);
  for (JobState from : {JobState::kWaitsForData, JobState::kComputes, JobState::kWaitsForCore,
                        JobState::kTalks, JobState::kSleeps, JobState::kWaitsForThread}) {
    const double moved = job[from] * starting;
    job[from] -= moved;
    job[JobState::kStartsWorkers] += moved;
  }
  return job;
}

void RankTrack::count_batches(const ProcessSample& sample, double at, Passed& passed) {
  const double asked = grown(before_.messages, sample.messages);
  asked_ += asked;
  passed.batches = asked;
  out_.batches += asked;
  if (asked_ >= kEnoughMessages && written_ >= kEnoughMessages)
    out_.messages_a_batch = std::max(1.0, std::round(written_ / asked_));
  if (out_.generations.empty()) return;
  Generation& now = out_.generations.back();
  now.batches += asked;
  if (now.first_batch < 0 && made_by_generation_ > 0) now.first_batch = at - now.from;
  if (out_.workers_now == 0 || static_cast<double>(sample.messages) <= 0) return;
  const double made = made_by_generation_ / out_.messages_a_batch;
  const double in_flight = static_cast<double>(sample.messages) - asked_before_generation_ - made;
  // What workers made before the watch began is not known.
  if (!now.seen_from_start) return;
  out_.window = std::max(out_.window, in_flight);
  passed.ready = std::max(0.0, out_.window - in_flight);
}

/// What a loop waits after the last batch of its old workers is for their end and for the new ones.
/// That it was the last shows when new ones begin.
void RankTrack::pass_edge(bool made, const JobSeconds& job) {
  if (out_.generations.size() != edge_generations_) {
    const double moved = std::min(edge_waits_, out_.job[JobState::kWaitsForData]);
    // The first workers follow nobody.
    if (edge_generations_ > 0) {
      out_.job[JobState::kWaitsForData] -= moved;
      out_.job[JobState::kStartsWorkers] += moved;
    }
    edge_generations_ = out_.generations.size();
    edge_waits_ = 0;
  } else if (made) {
    edge_waits_ = 0;
  } else {
    edge_waits_ += job[JobState::kWaitsForData];
  }
}

/// A loop asks for a window of batches at once, and then for one with each step.
void RankTrack::mark_step() {
  if (out_.generations.size() != 1 || !out_.generations.front().seen_from_start) return;
  const double done = out_.batches - out_.window;
  while (first_steps_.size() < kWarmUp && done > static_cast<double>(first_steps_.size()))
    first_steps_.push_back({out_.job, out_.batches});
}

void RankTrack::pass_rhythm(std::int64_t at_ns, const ProcessSample& sample, double sample_s) {
  const double gap = sample_s / static_cast<double>(kKeptLooks + 1);
  for (std::size_t i = 0; i < kKeptLooks; ++i) {
    // Without looks in between, what is faster than samples cannot be told from what is slower.
    if (sample.look_at_ns[i] <= last_ns_ || sample.look_at_ns[i] >= at_ns) continue;
    rhythm_.add(at_seconds(sample.look_at_ns[i]), at_seconds(sample.look_cpu_ns[i]), gap);
    if (i + 1 == kKeptLooks) rhythm_.add(at_seconds(at_ns), at_seconds(sample.leader.cpu_ns), gap);
  }
}

bool RankTrack::pass_alone(const ProcessSample& sample, const JobSeconds& job, double seconds) {
  const auto grown_by = [&](std::size_t i) { return grown(before_.code[i], sample.code[i]); };
  for (const CodeKind kind : {CodeKind::kData, CodeKind::kMath, CodeKind::kDevice})
    own_code_ += grown_by(static_cast<std::size_t>(kind));
  const bool asked = sample.code != CodeCounts{};
  // Importing is none of the loop's time.
  if (asked && own_code_ < kBegun) {
    out_.from = at_seconds(last_ns_);
    return false;
  }
  AloneTimeline& alone = out_.alone;
  const double cpu = job[JobState::kComputes] + job[JobState::kSaves];
  alone.seconds += seconds;
  // It waits for a core while it loads as often as it does in the step.
  alone.queued += job[JobState::kWaitsForCore] + job[JobState::kThrottled];
  alone.cpu += cpu;
  alone.reads += job[JobState::kReads];
  const double others = grown_seconds(before_.others.cpu_ns, sample.others.cpu_ns);
  alone.beside +=
      std::min(cpu, others / std::max<double>(1, static_cast<double>(sample.busy_threads)));
  for (std::size_t i = 0; i < kCodeKinds; ++i) alone.code[i] += grown_by(i);
  return true;
}

void RankTrack::end() {
  // A loop that goes on without workers for long is one.
  constexpr double kMostEnd = 10;
  if (out_.workers_most == 0 || tail_.all() > kMostEnd) return;
  JobSeconds left = out_.job;
  for (std::size_t i = 0; i < kJobStates; ++i) left.in[i] = std::max(0.0, left.in[i] - tail_.in[i]);
  if (left.all() > 0) out_.job = left;
  tail_ = {};
}

void RankTrack::relate(const Passed& passed, double waiting) {
  const double seconds = passed.job.all();
  if (seconds <= 0 || waiting <= 0 || out_.workers_now == 0) return;
  out_.while_waiting += scaled(passed.workers, waiting / seconds);
  out_.waiting_with_workers += waiting;
  if (out_.workers_now > 1 && passed.workers.making() / seconds <= kOneAtWork)
    out_.waits_for_one += waiting;
}

RankTrack::Passed RankTrack::add(std::int64_t at_ns, const ProcessSample& sample,
                                 const std::vector<const ProcessSample*>& workers,
                                 const std::vector<ProcessFacts>& facts,
                                 const Surroundings& around) {
  meet(workers, facts);
  Passed passed;
  const double seconds = grown_seconds(last_ns_, at_ns);
  if (!first_ && seconds > 0) {
    const ThreadSeconds leader =
        split_.between(before_.leader, sample.leader, before_.looks, sample.looks, seconds);
    out_.leader += leader;
    out_.pin_thread = out_.pin_thread || sample.pin_looks.all() > 0;
    const double written_before = written_, worker_calls_before = out_.read_calls;
    passed.workers = pass_workers(workers, seconds);
    out_.workers += passed.workers;
    passed.job = states(sample, leader, at_seconds(at_ns), seconds, around);
    out_.job += passed.job;
    pass_edge(written_ > written_before, passed.job);
    out_.others_cpu += grown_seconds(before_.others.cpu_ns, sample.others.cpu_ns);
    out_.others_queued += grown_seconds(before_.others.queued_ns, sample.others.queued_ns);
    busy_weight_ += leader.cpu * static_cast<double>(sample.busy_threads);
    computing_ += leader.cpu;
    count_batches(sample, at_seconds(at_ns), passed);
    mark_step();
    pass_rhythm(at_ns, sample, around.sample_s);
    if (workers.empty()) tail_ += passed.job;
    else tail_ = {};
    relate(passed, passed.job[JobState::kWaitsForData]);
    stalls_.add(passed.batches, out_.window, out_.generations.size() != generations_seen_,
                passed.job);
    generations_seen_ = out_.generations.size();
    if (workers.empty()) {
      // Beside workers it reads their batches, before and after them its libraries.
      if (pass_alone(sample, passed.job, seconds) && out_.workers_most == 0) {
        out_.read_chars += grown(before_.read_chars, sample.read_chars);
        out_.read_calls += grown(before_.read_calls, sample.read_calls);
        out_.read_bytes += grown(before_.read_bytes, sample.read_bytes);
      }
    } else {
      receives_.add(passed.batches, grown(before_.read_calls, sample.read_calls));
      worker_reads_.add(passed.batches, out_.read_calls - worker_calls_before);
    }
  }
  hear(sample.told);
  hear_of_data(sample, workers);
  before_ = sample;
  last_ns_ = at_ns;
  first_ = false;
  return passed;
}

/// The last that was seen; workers hold the same files as a rule, so that one of them counts.
void RankTrack::hear_of_data(const ProcessSample& sample,
                             const std::vector<const ProcessSample*>& workers) {
  const auto take = [&](const ProcessSample& p) {
    if (p.data_bytes <= 0) return;
    out_.data_bytes = static_cast<double>(p.data_bytes);
    out_.data_cached = static_cast<double>(p.data_cached);
  };
  take(sample);
  for (const ProcessSample* worker : workers) take(*worker);
}

RankTimeline RankTrack::result() const {
  RankTimeline out = out_;
  out.busy_threads = computing_ > 0 ? busy_weight_ / computing_ : 0;
  out.stalled = stalls_.seconds();
  out.longest_stall = stalls_.longest();
  out.rhythm = rhythm_.rhythm();
  out.loop_batches = out.batches;
  const double steps = out.batches - out.window;
  const auto warm = static_cast<std::size_t>(
      std::clamp(std::ceil(steps * kWarmPart), 0.0, static_cast<double>(first_steps_.size())));
  if (warm > 0) {
    const Mark& mark = first_steps_[warm - 1];
    for (std::size_t i = 0; i < kJobStates; ++i)
      out.job.in[i] = std::max(0.0, out.job.in[i] - mark.job.in[i]);
    out.loop_batches -= mark.batches;
    out.warm = true;
  }
  out.usual_step = stalls_.usual();
  out.stalls = stalls_.count();
  out.around_saves = stalls_.around_saves();
  out.judged = stalls_.judged();
  out.reads_a_batch = receives_.reads_a_batch();
  out.worker_reads_a_batch = worker_reads_.reads_a_batch();
  for (const auto& [serial, track] : tracks_) {
    if (generation_of_.at(serial) + 1 == out_.generations.size())
      out.each_worker.push_back(track.total());
  }
  for (const MessageCost& cost : costs_.all()) {
    const double batches = std::max(1.0, std::round(cost.messages / out_.messages_a_batch));
    // Batches that were made between two samples are told together, and count as many as they are.
    constexpr double kMostTogether = 16;
    const auto times = static_cast<std::size_t>(std::min(kMostTogether, batches));
    out.costs.insert(out.costs.end(), times, {cost.cpu / batches, cost.wait / batches});
  }
  return out;
}

}  // namespace stoker
