#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/definition/study.h"
#include "study/definition/trials.h"
#include "study/trial/trial_result.h"
#include "study/trial/trial_state.h"

namespace stoker {
class Database;
}

namespace stoker::study {

/// A trial as the store keeps it.
struct TrialRow {
  std::int64_t id = 0;  ///< from 1, in the order in which they are to run
  TrialValues trial;
  TrialState state = TrialState::kWaiting;
  std::string cause{}, reason{};
  std::string job{};  ///< what the executor calls it
  std::optional<std::int64_t> exit_code{}, signal{}, retry_of{};
  std::optional<double> submitted{}, started{}, ended{}, wall_s{};
  std::string host{}, tail{};
  std::map<std::string, double> metrics{}, resources{};
  /// What was forecast before it ran, by the names of metrics and resources; NAME_low and NAME_high
  /// are the ends of its 90 % band.
  std::map<std::string, double> forecast{};
  /// The forecast as corrected by what finished trials taught, when this one began or was left out.
  std::map<std::string, double> corrected{};
};

/// A change that the store wrote down: a state with why, or that a trial was lost or is run again.
struct StudyEvent {
  double time = 0;
  std::int64_t trial = 0;
  std::string what;
};

/// The one file that holds a study: docs/reference/study-store.md. Each call is one transaction: it
/// has happened or it has not, whatever dies when. States that are final never change; the database
/// itself refuses that. One process writes, any number may read.
class Store {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  /// Whether there is a store: a file whose maker died before its tables were there is none.
  [[nodiscard]] static Result<bool> exists(const std::filesystem::path& path);
  /// Refused where there is a store already.
  [[nodiscard]] static Result<Store> create(const std::filesystem::path& path, const Study& study,
                                            const std::vector<TrialValues>& trials);
  [[nodiscard]] static Result<Store> open(const std::filesystem::path& path, Access access);

  [[nodiscard]] const Study& study() const { return study_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] Result<std::map<TrialState, std::int64_t>> counts() const;
  /// Trials without their metrics and resources, by id; all of them without a state.
  [[nodiscard]] Result<std::vector<TrialRow>> trials(
      std::optional<TrialState> state = std::nullopt) const;
  /// All trials with everything but their points.
  [[nodiscard]] Result<std::vector<TrialRow>> full_trials() const;
  [[nodiscard]] Result<TrialRow> trial(std::int64_t id) const;
  [[nodiscard]] Result<std::vector<MetricPoint>> points(std::int64_t trial) const;
  /// What all trials reported of one metric on their way, by trial; of more than two million values
  /// the first.
  [[nodiscard]] Result<std::map<std::int64_t, std::vector<MetricPoint>>> curves(
      const std::string& metric) const;
  [[nodiscard]] Result<std::vector<StudyEvent>> events() const;

  /// Another trial behind those that there are, waiting; its id.
  [[nodiscard]] Result<std::int64_t> add(const TrialValues& trial);
  /// A waiting trial is handed over. `job`: what the executor will call it, where that is known.
  [[nodiscard]] Status submitted(std::int64_t id, const std::string& job);
  [[nodiscard]] Status named(std::int64_t id, const std::string& job);
  [[nodiscard]] Status running(std::int64_t id, const std::string& host);
  /// Back to waiting: it is certain that nobody ran it.
  [[nodiscard]] Status withdrawn(std::int64_t id, const std::string& why);
  [[nodiscard]] Status ended(std::int64_t id, const TrialResult& result);
  /// Once, before it is handed over.
  [[nodiscard]] Status forecast(std::int64_t id, const std::map<std::string, double>& figures);
  /// Once, when it begins or is left out.
  [[nodiscard]] Status corrected(std::int64_t id, const std::map<std::string, double>& figures);
  [[nodiscard]] Status not_run(std::int64_t id, const std::string& reason,
                               const std::string& cause = "");
  /// A new trial with the values of a final one, which stays as it is. Its id.
  [[nodiscard]] Result<std::int64_t> retry(std::int64_t id);
  /// Whatever anybody wants to keep with the study.
  [[nodiscard]] Status note(const std::string& key, const std::string& value);
  [[nodiscard]] Result<std::optional<std::string>> noted(const std::string& key) const;

  Store(Store&&) noexcept;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store& operator=(Store&&) = delete;
  ~Store();

 private:
  Store(std::filesystem::path path, std::unique_ptr<Database> database);
  [[nodiscard]] Status transaction(const std::function<Status()>& work) const;
  [[nodiscard]] Status change(std::int64_t id, TrialState to, const std::string& from,
                              const std::string& set, const std::vector<std::string>& values,
                              const std::string& event) const;
  [[nodiscard]] Status event(std::int64_t trial, const std::string& what) const;
  [[nodiscard]] Status load_study();
  [[nodiscard]] Result<std::vector<TrialRow>> rows(const std::string& where) const;

  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
  Study study_;
};

/// Causes of trials that are not run for what is forecast of them.
inline constexpr const char* kDoesNotFit = "does_not_fit";
inline constexpr const char* kDominated = "dominated";

/// Seconds since 1970.
[[nodiscard]] double now_seconds();

}  // namespace stoker::study
