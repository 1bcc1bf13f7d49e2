#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "diagnosis/timeline/job_timeline.h"
#include "diagnosis/timeline/receive_track.h"
#include "diagnosis/timeline/rhythm_track.h"
#include "diagnosis/timeline/stall_track.h"
#include "diagnosis/timeline/worker_track.h"

namespace stoker {

/// What of the machine decides how an interval is read.
struct Surroundings {
  bool throttled = false;  ///< the control group's quota was used up lately
  bool gpu = false;        ///< the job has one
  double sample_s = 0;     ///< seconds between samples, as they were asked for
  bool starting = false;   ///< processes that will be workers have not told their names yet
};

/// One training process with its workers, from sample to sample.
class RankTrack {
 public:
  explicit RankTrack(const ProcessFacts& facts);

  /// What passed until `sample`; `workers` are the samples of its living workers, `facts` those of
  /// all processes by serial.
  struct Passed {
    JobSeconds job;
    WorkerSeconds workers;
    double batches = 0, ready = -1;
  };
  Passed add(std::int64_t at_ns, const ProcessSample& sample,
             const std::vector<const ProcessSample*>& workers,
             const std::vector<ProcessFacts>& facts, const Surroundings& around);

  /// What the loop has told of its steps so far.
  void hear(const Told& told) {
    if (told.kind != 0) out_.told = told;
  }

  /// The process has ended: since its workers did, it ended too.
  void end();

  [[nodiscard]] RankTimeline result() const;

 private:
  /// The loop's time and batches so far.
  struct Mark {
    JobSeconds job;
    double batches = 0;
  };
  void begin_loop();
  void forget_ended(const std::vector<const ProcessSample*>& workers);
  void meet(const std::vector<const ProcessSample*>& workers,
            const std::vector<ProcessFacts>& facts);
  [[nodiscard]] WorkerSeconds pass_workers(const std::vector<const ProcessSample*>& workers,
                                           double seconds);
  [[nodiscard]] JobSeconds states(const ProcessSample& sample, const ThreadSeconds& passed,
                                  double at, double seconds, const Surroundings& around);
  /// The part of the interval from `before` to `at` (seconds) in which the present workers were
  /// being started: the loop then stands in iter() and in its first next().
  [[nodiscard]] double starting_part(double before, double at) const;
  [[nodiscard]] double waits_in(const ThreadSeconds& passed, const ProcessSample& sample) const;
  void count_batches(const ProcessSample& sample, double at, Passed& passed);
  void pass_edge(bool made, const JobSeconds& job);
  void relate(const Passed& passed, double waiting);
  void mark_step();
  void pass_rhythm(std::int64_t at_ns, const ProcessSample& sample, double sample_s);
  /// False while the script imports.
  bool pass_alone(const ProcessSample& sample, const JobSeconds& job, double seconds);
  void hear_of_data(const ProcessSample& sample, const std::vector<const ProcessSample*>& workers);

  RankTimeline out_;
  SleepSplit split_;
  StallTrack stalls_;
  RhythmTrack rhythm_;
  std::vector<Mark> first_steps_;  ///< at the end of each, of a loop whose start was seen
  JobSeconds tail_;                ///< since the last workers ended
  double own_code_ = 0;            ///< answers of libraries that load or compute
  ReceiveTrack receives_, worker_reads_;
  std::size_t generations_seen_ = 0;
  ProcessSample before_;
  bool first_ = true, saving_ = false;
  std::int64_t last_ns_ = 0;
  std::map<std::uint32_t, WorkerTrack> tracks_;
  std::map<std::uint32_t, std::size_t> generation_of_;
  CostSample costs_;
  double asked_ = 0, written_ = 0;      ///< messages, of it and of its workers, while watched
  double asked_before_generation_ = 0;  ///< its messages when the present workers began
  double made_by_generation_ = 0;       ///< messages of the present workers
  double busy_weight_ = 0, computing_ = 0;
  /// Waiting since a worker handed over a batch, which may turn out to be an epoch's end.
  double edge_waits_ = 0;
  std::size_t edge_generations_ = 0;
};

}  // namespace stoker
