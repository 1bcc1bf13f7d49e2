#include "tune/method/history.h"

namespace stoker::tune {

std::string_view name_of(End end) {
  switch (end) {
    case End::kFinished:
      return "finished";
    case End::kReached:
      return "reached";
    case End::kStopped:
      return "stopped";
    case End::kDiverged:
      return "diverged";
    case End::kOutOfMemory:
      return "out_of_memory";
    case End::kTimedOut:
      return "timed_out";
    case End::kFailed:
      return "failed";
    case End::kNotRun:
      return "not_run";
  }
  return "";
}

std::optional<double> Outcome::best() const {
  if (end == End::kDiverged || curve.points.empty()) return std::nullopt;
  if (by_cost) return cost ? std::optional(-cost->value) : std::nullopt;
  return curve.points[best_of(curve.points, curve.points.size())].score;
}

std::optional<std::size_t> History::find(const Request& request) const {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].request == request) return i;
  }
  return std::nullopt;
}

const Outcome* History::outcome(std::size_t job) const {
  if (job >= seen || job >= jobs.size() || !jobs[job].outcome) return nullptr;
  return &*jobs[job].outcome;
}

}  // namespace stoker::tune
