#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker::study {

/// What varies: one name, or several that vary together. Each row holds a value for each name.
struct Axis {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  /// Where this condition does not hold, the axis has the values `otherwise` alone.
  std::string when{};
  std::vector<std::string> otherwise{};
  std::string place{};  ///< where it was written, for errors

  friend bool operator==(const Axis& a, const Axis& b) {
    return a.names == b.names && a.rows == b.rows && a.when == b.when && a.otherwise == b.otherwise;
  }
};

enum class Goal : std::uint8_t { kUnknown, kMost, kLeast };
/// Which of the values that a trial reports counts.
enum class Take : std::uint8_t { kLast, kBest, kFirst, kMean, kLargest, kSmallest };

struct Metric {
  std::string name;
  /// A regular expression (ECMAScript) whose first group is the value, looked for in each line of
  /// the output; empty: reported by stoker.report.
  std::string pattern{};
  Goal goal = Goal::kUnknown;
  Take take = Take::kLast;
  bool needed = true;  ///< a trial that ends well without it has failed

  bool operator==(const Metric&) const = default;
};

enum class Order : std::uint8_t { kAsWritten, kRandom, kCheapest, kInformative };

/// What a trial takes; texts may hold values of axes. Empty: not said.
struct Resources {
  std::string cores{}, gpus{}, memory{}, time{};
  /// Between the request to end and the end by force.
  std::string grace = "10s";
  /// Slurm's constraint and Kubernetes' image, where they depend on values.
  std::string constraint{}, image{};

  bool operator==(const Resources&) const = default;
};

/// How trials are handed to Slurm.
struct SlurmOptions {
  std::string partition{}, account{}, constraint{}, qos{};
  std::vector<std::string> options{};  ///< more words for #SBATCH lines
  std::string prologue{};              ///< lines of shell before the trial: modules, containers

  bool operator==(const SlurmOptions&) const = default;
};

/// How trials are handed to Kubernetes, each as a Job of one pod. Empty: as the user's context and
/// the cluster have it.
struct KubernetesOptions {
  std::string context{}, name_space{}, image{}, service_account{}, pull_secret{};
  /// A volume claim in which the store lies: mounted at `mount` in pods, and at `here` on this
  /// machine (empty: at the same path). Without one, results are collected from pods' logs.
  std::string claim{}, mount{}, here{};
  std::string folder{};   ///< in which commands start, as pods see it
  std::string program{};  ///< stoker, as pods see it
  std::string gpu_resource = "nvidia.com/gpu";
  std::map<std::string, std::string> node_selector{};  ///< values may hold axes
  std::vector<std::string> tolerate{};                 ///< keys of taints
  std::string prologue{};                              ///< lines of shell before the trial
  double keep_seconds = 86400;                         ///< of a Job that has ended

  bool operator==(const KubernetesOptions&) const = default;
};

/// When to stop before all trials have run; 0: never.
struct Budget {
  std::int64_t failures = 0;  ///< so many trials in a row
  double seconds = 0;         ///< since the study began to run
  double gpu_hours = 0;
  double money = 0, price_of_gpu_hour = 0;

  bool operator==(const Budget&) const = default;
};

/// A study as it was asked for: what a study file or flags say. Texts are templates over the axes,
/// and seed, repeat, trial and folder.
struct Study {
  std::string name{};
  std::vector<std::string> command{};  ///< one word each, or one line for a shell
  bool shell = false;
  std::map<std::string, std::string> environment{};
  std::string folder{};  ///< in which commands start
  std::vector<Axis> axes{};
  std::vector<std::string> conditions{};  ///< all must hold
  std::vector<std::string> exclude{};     ///< none may hold
  std::int64_t repeat = 1;
  std::int64_t seed = 0;  ///< of the first repetition; the next has the next
  std::vector<Metric> metrics{};
  Resources resources{};
  Order order = Order::kAsWritten;
  Budget budget{};
  SlurmOptions slurm{};
  KubernetesOptions kubernetes{};
  /// Settings of `stoker predict` by name, "model" among them: what forecasts of trials are of.
  std::map<std::string, std::string> forecast{};
  std::int64_t output_bytes = 64LL << 20;  ///< of each stream of a trial that are kept

  bool operator==(const Study&) const = default;
};

/// Names that every template may use beside the axes.
inline constexpr const char* kOwnNames[] = {"seed", "repeat", "trial", "folder"};

[[nodiscard]] std::vector<std::string> axis_names(const Study& study);
/// Axes of several values for which neither the command has a place nor its environment, folder or
/// resources: trials that differ in them alone run the same.
[[nodiscard]] std::vector<std::string> unused_axes(const Study& study);

/// Refuses what cannot be run: no command, no axis, names that nothing answers to, an axis without
/// values, two of one name, expressions that are none.
[[nodiscard]] Status check_study(const Study& study);

}  // namespace stoker::study
