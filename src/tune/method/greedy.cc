#include "tune/method/greedy.h"

#include <fmt/core.h>

#include "base/ranges.h"
#include "study/definition/values.h"
#include "tune/method/greedy_walk.h"

namespace stoker::tune {

std::optional<std::string> Greedy::probed(const Curve& curve) const {
  constexpr std::size_t kFewestMarks = 10;
  if (curve.marks.size() < kFewestMarks) return std::nullopt;
  const Mark &first = curve.marks.front(), &last = curve.marks.back();
  if (last.step - first.step >= options_.probe_steps)
    return fmt::format("{:.6g} steps measured", last.step - first.step);
  if (last.seconds - first.seconds >= options_.probe_seconds)
    return fmt::format("{:.6g} steps measured in {:.0f} s", last.step - first.step,
                       last.seconds - first.seconds);
  return std::nullopt;
}

std::optional<std::string> Greedy::enough(const History& history, const Request& request,
                                          const Curve& curve, std::size_t count) const {
  if (!searches(request.stage)) return std::nullopt;
  if (auto reason = out_of_patience(curve.points, count, options_.rules, options_.objective))
    return reason;
  // The reference: the best of what was known, at this batch and on this share of the data.
  const Outcome* best = nullptr;
  std::string name;
  const std::size_t rate_at = options_.batches.empty() || !options_.batch_first ? 0 : 1;
  for (std::size_t i = 0; i < history.jobs.size(); ++i) {
    const Outcome* outcome = history.outcome(i);
    const Request& other = history.jobs[i].request;
    if (outcome == nullptr || !searches(other.stage)) continue;
    if (other.share != request.share || !outcome->best()) continue;
    bool same = true;
    for (std::size_t v = 0; v < other.values.size(); ++v)
      same = same && (v == rate_at || other.values[v] == request.values[v]);
    if (!same || (best != nullptr && *outcome->best() <= *best->best())) continue;
    best = outcome;
    name = "lr=" + other.values[rate_at];
  }
  if (best == nullptr) return std::nullopt;
  return will_not_catch_up(curve.points, count, {&best->curve.points, name}, options_.rules,
                           options_.objective);
}

std::optional<double> Greedy::target(const Request& request) const {
  const bool trains = request.stage != "batch" && options_.objective.by_cost();
  return trains ? options_.objective.target : std::nullopt;
}

Walk Greedy::walk(const History& history) const { return GreedyWalk(options_, history).run(); }

}  // namespace stoker::tune
