#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/controller/controller.h"
#include "study/store/store.h"
#include "tune/curve/curve_file.h"
#include "tune/method/method.h"
#include "tune/run/checkpoints.h"

namespace stoker::tune {

/// When a search ends before its method does; 0: never. Seconds are those of all trials, added up.
struct TuneBudget {
  double seconds = 0, steps = 0, money = 0;
  double price_of_gpu_hour = 0;
};

struct TunerOptions {
  Objective objective{};
  /// Trials that may be under way when the next is decided on: what they bring is not used for it.
  /// It belongs to the study, so that any number of places to run gives the same trials.
  std::size_t width = 1;
  TuneBudget budget{};
  CheckpointLimits checkpoints{};
  /// Power by forecast, of trials whose GPUs do not tell it; nothing: none is forecast.
  std::function<Result<std::optional<Power>>(const study::TrialValues&)> power_forecast{};
  /// The values of configuration `index`, from 0, by what is known; for Walk::Next::kSample.
  std::function<Result<std::vector<std::string>>(const History& known, std::int64_t index)>
      sample{};
  /// Told of each decision once, and once more when a search is gone on with.
  std::function<void(const Decision&)> decided = [](const Decision&) {};
};

/// What was spent.
struct Spent {
  std::int64_t trials = 0, restarted = 0;
  double seconds = 0, steps = 0, gpu_hours = 0, saved_s = 0;
};

/// Runs a search on a study: feeds its controller with the trials that the method asks for, ends
/// those that have shown enough, and knows after any crash where it was from the store and the
/// trials' folders alone.
class Tuner {
 public:
  Tuner(study::Store& store, const Method& method, TunerOptions options);

  /// Takes up what the store holds. `utilisation` is read from trials' metrics where they have it.
  [[nodiscard]] Status load();
  /// The next trials, and below what became of one: ControllerOptions::feed and ::progress.
  [[nodiscard]] Result<study::Feed> feed();
  void changed(const study::TrialRow& row);
  /// Takes up what ended last, and begins nothing.
  [[nodiscard]] Status finish();

  /// The search as far as it went; its choice is the best so far where it went not to the end.
  [[nodiscard]] Walk walk() const;
  [[nodiscard]] Spent spent() const;
  /// Why it ended early; empty: it did not.
  [[nodiscard]] const std::string& over() const { return over_; }
  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  /// Removes checkpoints of configurations that nothing goes on from; `keep` is a trial's.
  void clean(std::int64_t keep) const;
  /// Removes those that the limits and the disk leave no room for; false: there were none.
  bool make_room() const;

 private:
  struct Live {
    std::int64_t trial = 0;
    std::optional<CurveReader> reader{};
    std::optional<Curve> before{};  ///< once it is known
    std::size_t looked_at = 0;
    bool stop_asked = false;
  };

  [[nodiscard]] History history(std::size_t jobs, std::size_t seen) const;
  [[nodiscard]] std::size_t known() const;
  [[nodiscard]] Status take_up(std::size_t job, const study::TrialRow& row);
  [[nodiscard]] std::optional<Stop> stop_of(std::size_t job, const Curve& curve,
                                            std::size_t from) const;
  [[nodiscard]] Result<Outcome> outcome_of(std::size_t job, const study::TrialRow& row) const;
  [[nodiscard]] Result<std::optional<Power>> power_of(const study::TrialRow& row) const;
  [[nodiscard]] CurveReader reader_of(std::int64_t trial) const;
  /// What a trial of this job went on from: earlier rungs of its configuration, and attempts at the
  /// same job that were interrupted.
  [[nodiscard]] Curve before(std::size_t job, std::int64_t trial) const;
  [[nodiscard]] Curve curve_of(std::size_t job, Live& live) const;
  [[nodiscard]] Status look_at_running();
  [[nodiscard]] Status ask_to_stop(Live& live, const std::string& reason) const;
  [[nodiscard]] Result<std::optional<study::TrialRow>> next_trial();
  [[nodiscard]] Result<bool> take_ended();
  void note_time_of(const study::TrialRow& row);
  [[nodiscard]] Status run_again(std::vector<study::TrialRow>& again);
  void check_budget();
  void check_disk();
  void tell_decisions();
  [[nodiscard]] std::filesystem::path checkpoints(std::size_t job) const;

  study::Store& store_;
  const Method& method_;
  TunerOptions options_;
  study::Metric metric_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> seen_at_;  ///< outcomes that were seen when the job was asked for
  std::map<std::int64_t, std::size_t> job_of_;  ///< by trial
  mutable std::map<std::size_t, Live> live_;
  std::vector<study::TrialRow> ended_;
  std::vector<study::TrialRow> interrupted_;                   ///< to be run again
  std::map<std::size_t, std::vector<std::int64_t>> attempts_;  ///< trials of a job, in their order
  std::size_t told_ = 0, disk_full_ = 0;
  double other_seconds_ = 0, other_steps_ = 0;  ///< of attempts that were interrupted
  std::string over_;
  bool done_ = false;
};

/// The folder of all checkpoints of a study, "tune.db.checkpoints".
[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& store);

}  // namespace stoker::tune
