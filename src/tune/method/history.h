#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tune/curve/curve.h"
#include "tune/curve/energy.h"

/// What a search has asked for and learnt. A search is a function of it: the same history gives the
/// same next trial, so that a controller that was killed goes on as if it had not been.
namespace stoker::tune {

/// One run of the command that a search asks for.
struct Request {
  std::vector<std::string> values{};  ///< of the user's axes, in their order
  /// "batch", "rates", "refine", "smaller", "final", "search"
  std::string stage{};
  /// Runs of one configuration have one folder for checkpoints, and the later goes on where the
  /// earlier stopped if the script can.
  std::int64_t config = 0;
  double share = 1;      ///< of the data
  double last_step = 0;  ///< at which it is to pause; 0: to its own end
  std::int64_t seed = 0;

  bool operator==(const Request&) const = default;
};

enum class End : std::uint8_t {
  kFinished,  ///< the command came to its own end
  kReached,   ///< it came to the step, or to the target, that was asked for
  kStopped,   ///< a rule said that it has shown enough
  kDiverged,  ///< metric or loss stopped being numbers
  kOutOfMemory,
  kTimedOut,
  kFailed,
  kNotRun  ///< cancelled, or it cannot run here
};
[[nodiscard]] std::string_view name_of(End end);

struct Outcome {
  End end = End::kFinished;
  std::string reason{};
  /// All of the configuration up to where it counts: points after a stop are left out, whether or
  /// not the command ran on.
  Curve curve{};
  std::optional<double> samples_per_s{}, utilisation{};
  std::optional<Power> power{};  ///< of its GPUs, where a search goes by energy
  /// Where a search goes by the cost of reaching a target: that cost; nothing where it did not.
  std::optional<Joules> cost{};
  bool by_cost = false;
  double wall_s = 0;
  double steps = 0;        ///< that it trained itself, without those that it found trained
  bool silent = false;     ///< the command ended well and never told the metric
  std::string told{};      ///< names that it reported in its place: "acc, loss"
  bool restarted = false;  ///< it had a checkpoint folder to go on from, and began anew
  std::int64_t trial = 0;  ///< in the store

  /// The best that it reported, or less its cost; nothing where it reported nothing or diverged.
  [[nodiscard]] std::optional<double> best() const;
};

struct Job {
  Request request;
  std::optional<Outcome> outcome{};  ///< nothing: it runs
};

/// Jobs in the order in which they were asked for. Only the first `seen` outcomes may be looked at:
/// how many that are depends on the order of jobs alone, not on which happened to end first.
struct History {
  std::span<const Job> jobs{};
  std::size_t seen = 0;

  /// The first job of exactly this request.
  [[nodiscard]] std::optional<std::size_t> find(const Request& request) const;
  [[nodiscard]] const Outcome* outcome(std::size_t job) const;
};

}  // namespace stoker::tune
