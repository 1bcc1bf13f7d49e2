#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "diagnosis/timeline/job_timeline.h"

/// A made-up job, for tests.
namespace stoker::test_job {

/// What a thread does of its time; the rest it sleeps in `asleep`.
struct Doing {
  double cpu = 0, queued = 0;
  WaitKind asleep = WaitKind::kPoll;
};

/// A training process with workers that do the same all the time, sampled ten times a second.
struct MadeJob {
  Doing loop{0.3, 0, WaitKind::kPoll};
  std::vector<Doing> workers;
  double batches_per_s = 10;
  double seconds = 20;
  double cores = 8, foreign = 0;
  double quota = 0, throttled_share = 0;  ///< of periods
  double written_per_s = 0;               ///< by the loop's thread
  double memory_per_s = 0;                ///< growth of the training process
  double read_per_s = 0;                  ///< by the training process
  double shm_full = 0;                    ///< share of /dev/shm
  double pressure = 0;                    ///< share of the time that somebody waits for a core
  double disk_per_s = 0;                  ///< bytes that workers read from a disk, together
  double calls_per_s = 0;                 ///< calls of read(2) by each worker
  double reads_a_batch = 0;               ///< calls of read(2) by the training process for a batch
  double given_back_at = 1e9;             ///< seconds from which a quarter of its memory is left
  double helpers_cpu = 0;                 ///< of a worker's other threads
  double epoch = 0;                       ///< seconds until workers are started anew; 0: never
  double first_batch = 0;                 ///< seconds from then until one has a batch
  double last_batch = 1e9;  ///< seconds from such a start until the last batch is made
  bool python = true;
  /// Shares that the loop itself tells: of its steps in next(), and of validation; below 0:
  /// nothing.
  double told_waits = -1, told_validation = 0;
  double told_batch = 8;
  double pause_every = 0, pause = 0;  ///< seconds: the loop then asks for no batch and computes
  double group_quota = 0;             ///< that a later sample of the machine tells
  CodeCounts code_per_s{};            ///< answers by whose code the main thread runs
  double beside = 0;                  ///< cores that the main process's other threads use
  bool start_seen = false;            ///< the first workers started while watched
  GpuSample gpu{};                    ///< with busy_percent: the job has this one all the time

  [[nodiscard]] JobTimeline play(const std::function<void(Sample&)>& change = {}) const {
    JobTimeline timeline;
    WatchFacts facts;
    facts.cores = quota > 0 ? quota : cores;
    facts.processors = static_cast<std::int64_t>(cores);
    facts.quota = quota;
    timeline.set_facts(facts);
    ProcessFacts main;
    main.serial = 1;
    main.pid = 100;
    main.role = ProcessRole::kTraining;
    main.python = python;
    main.started_ns = -1;
    timeline.learn({main});
    State s;
    for (s.tick = 0; s.tick <= static_cast<int>(seconds * kRate); ++s.tick) {
      Sample sample = next(s, timeline);
      if (change) change(sample);
      timeline.add(sample);
    }
    return timeline;
  }

 private:
  static constexpr int kRate = 10;
  static constexpr std::int64_t kStep = 1'000'000'000 / kRate;

  struct State {
    int tick = 0;
    ProcessSample main;
    std::vector<ProcessSample> crew;
    std::vector<double> owed;
    HostSample host;
    double asked = 0, born = 0;
    std::uint32_t serial = 1;
  };

  static void pass(const Doing& doing, ProcessSample& p) {
    p.leader.cpu_ns += static_cast<std::int64_t>(doing.cpu * kStep);
    p.leader.queued_ns += static_cast<std::int64_t>(doing.queued * kStep);
    const double awake = doing.cpu + doing.queued;
    for (int look = 0; look < 5; ++look)
      p.looks.add(look < static_cast<int>(awake * 5 + 1e-9) ? WaitKind::kRunning : doing.asleep);
  }

  void tell(double at, Told& told) const {
    if (told_waits < 0) return;
    const double training = at * (1 - told_validation);
    told.kind = static_cast<std::int64_t>(ToldKind::kObservation);
    told.steps = static_cast<std::int64_t>(training * batches_per_s);
    told.ns = static_cast<std::int64_t>(training * 1e9);
    told.wait_ns = static_cast<std::int64_t>(training * told_waits * 1e9);
    told.samples = static_cast<std::int64_t>(static_cast<double>(told.steps) * told_batch);
    told.validation_ns = static_cast<std::int64_t>(at * told_validation * 1e9);
  }

  void start_workers(State& s, JobTimeline& timeline) const {
    s.crew.clear();
    s.born = s.tick / double{kRate};
    std::vector<ProcessFacts> facts;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      ProcessFacts f;
      f.serial = ++s.serial;
      f.pid = 100 + f.serial;
      f.owner = 1;
      f.role = ProcessRole::kWorker;
      f.python = python;
      f.started_ns = s.tick > 0 ? s.tick * kStep : (start_seen ? 1 : -1);
      facts.push_back(f);
      ProcessSample p;
      p.serial = f.serial;
      s.crew.push_back(p);
    }
    s.owed.assign(workers.size(), 0);
    timeline.learn(facts);
  }

  [[nodiscard]] Sample next(State& s, JobTimeline& timeline) const {
    const double at = s.tick / double{kRate};
    const bool edge = epoch > 0 && s.tick % static_cast<int>(epoch * kRate) == 0;
    if (s.tick == 0 || edge) start_workers(s, timeline);
    const bool starting = at - s.born < first_batch || at - s.born > last_batch;
    s.main.serial = 1;
    pass(loop, s.main);
    const bool pausing = pause > 0 && std::fmod(at, pause_every) >= pause_every - pause;
    if (!pausing) s.asked += batches_per_s / kRate;
    tell(at, s.main.told);
    s.main.messages = static_cast<std::int64_t>(s.asked);
    s.main.leader_written_chars += static_cast<std::int64_t>(written_per_s / kRate);
    s.main.read_chars += static_cast<std::int64_t>(read_per_s / kRate);
    s.main.anonymous = 500'000'000 + static_cast<std::int64_t>(memory_per_s * at);
    if (at >= given_back_at) s.main.anonymous /= 4;
    for (std::size_t i = 0; i < kCodeKinds; ++i)
      s.main.code[i] = static_cast<std::int64_t>(static_cast<double>(code_per_s[i]) * at);
    s.main.others.cpu_ns += static_cast<std::int64_t>(beside * kStep);
    s.main.busy_threads = static_cast<std::int64_t>(std::ceil(beside));
    s.main.read_calls = static_cast<std::int64_t>(s.asked * reads_a_batch);
    Sample sample;
    sample.at_ns = s.tick * kStep;
    sample.processes.push_back(s.main);
    for (std::size_t i = 0; i < s.crew.size(); ++i) {
      pass(workers[i], s.crew[i]);
      s.crew[i].others.cpu_ns += static_cast<std::int64_t>(helpers_cpu * kStep);
      if (!starting) s.owed[i] += batches_per_s / kRate / static_cast<double>(workers.size());
      s.crew[i].messages = static_cast<std::int64_t>(s.owed[i]);
      s.crew[i].read_bytes =
          static_cast<std::int64_t>(disk_per_s * at / static_cast<double>(workers.size()));
      s.crew[i].read_calls = static_cast<std::int64_t>(calls_per_s * at);
      sample.processes.push_back(s.crew[i]);
    }
    if (gpu.busy_percent >= 0) sample.gpus.push_back(gpu);
    sample.has_host = s.tick % kRate == 0;
    if (sample.has_host) {
      double own = loop.cpu;
      for (const Doing& worker : workers) own += worker.cpu + helpers_cpu;
      HostSample& h = s.host;
      h.busy_ns = static_cast<std::int64_t>((own + foreign) * at * 1e9);
      h.periods = static_cast<std::int64_t>(at * 10);
      h.throttled_periods = static_cast<std::int64_t>(at * 10 * throttled_share);
      h.cpu_pressure_ns = static_cast<std::int64_t>(pressure * at * 1e9);
      h.disk_read_bytes = static_cast<std::int64_t>(disk_per_s * at);
      h.memory_available = 8'000'000'000;
      h.shared_memory_most = 64 << 20;
      if (group_quota > 0 && at > 1) {
        h.quota_milli = static_cast<std::int64_t>(group_quota * 1000);
        h.cores_milli = h.quota_milli;
      }
      h.shared_memory = static_cast<std::int64_t>(shm_full * (64 << 20));
      sample.host = h;
    }
    return sample;
  }
};

}  // namespace stoker::test_job
