#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/figure.h"
#include "diagnosis/timeline/job_timeline.h"

namespace stoker {

enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };
[[nodiscard]] std::string_view name_of(Confidence confidence);

/// One cause of lost time in a run, with what it rests on and what to turn.
struct JobFinding {
  std::string name;      ///< stable identifier, snake_case: "too_few_workers"
  double lost = 0;       ///< share of the job's time that it takes, 0 to 1
  std::string evidence;  ///< one sentence with the figures
  std::string cure;      ///< one sentence that names the setting
  std::string setting;   ///< "num_workers=4"; empty: no single setting cures it
  /// Gain in throughput by the cure, relative (0.55 = +55 %), with its band; nothing where it
  /// cannot be told.
  std::optional<Figure> gain;
  std::string price;  ///< what the cure costs; empty: nothing worth saying
  Confidence confidence = Confidence::kMedium;
};

/// What the loops of a job told of their steps themselves (stoker.Observer, observe_step,
/// stoker.report), all of them together; steps that warmed up are left out.
struct ToldLoop {
  std::int64_t steps = 0;
  double step_s = 0;                 ///< mean, what lies between steps included
  std::optional<double> waits;       ///< share in the loader's next(); only an observation tells
  std::optional<double> validation;  ///< share of validation passes; likewise
  double samples_per_s = 0;          ///< 0: not told
};

/// How much of its time a job without workers loads itself, seen from outside: loading is time on a
/// core there, as the step is.
struct OwnLoading {
  std::optional<double> value;  ///< share of the time; nothing where only bounds are known
  double low = 0, high = 1;
  bool by_code = false;  ///< whose code the main thread runs was seen
};

/// What a run did with its time, and why.
struct JobDiagnosis {
  double seconds = 0;     ///< that were watched
  JobSeconds job;         ///< of all training processes
  double waits = 0;       ///< share of the time that the loop waited for data, as told where it is
  double waits_seen = 0;  ///< that share as seen from outside: blocked, and receiving
  std::optional<ToldLoop> told{};
  std::optional<OwnLoading> own_loading{};  ///< nothing: there are workers, or nothing was seen
  double useful = 1;                        ///< share in which it computed, saved, or used a device
  double batches_per_s = 0;                 ///< of all training processes; 0: not known
  std::vector<JobFinding> findings;         ///< by the time that they cost, largest first
  bool healthy = false;                     ///< nothing worth turning was found
  std::string verdict;                      ///< the sentence that matters first
  std::vector<std::string> notes;           ///< what limits this answer
};

/// The least time that a diagnosis is made from.
inline constexpr double kLeastSeconds = 3;

[[nodiscard]] JobDiagnosis diagnose_job(const JobTimeline& timeline);

}  // namespace stoker
