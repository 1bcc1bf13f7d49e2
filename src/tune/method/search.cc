#include "tune/method/search.h"

#include <fmt/core.h>

#include "tune/method/search_pass.h"

namespace stoker::tune {

Search::Search(SearchOptions options) : options_(std::move(options)), configs_(options_.configs) {
  if (options_.kind == SearchKind::kWhole) rungs_ = {options_.most_steps};
  else rungs_ = rungs_of(options_.least_steps, options_.most_steps, options_.eta);
  if (options_.all_combinations) {
    listed_ = combinations(options_.space);
    configs_ = static_cast<std::int64_t>(listed_.size());
  }
  if (options_.kind != SearchKind::kHyperband) return;
  brackets_ = hyperband_brackets(rungs_.size(), options_.eta);
  configs_ = 0;
  for (const Bracket& bracket : brackets_) configs_ += bracket.count;
}

Walk Search::walk(const History& history) const {
  SearchPass pass{options_, rungs_, brackets_, listed_, configs_, history};
  return pass.run();
}

std::optional<double> Search::target(const Request& /*request*/) const {
  return options_.objective.by_cost() ? options_.objective.target : std::nullopt;
}

/// Zeus's rule: what has cost twice as much as the cheapest is given up. Power is taken to be the
/// same, so that this goes by time.
std::optional<std::string> Search::past_the_best(const History& history, const Request& request,
                                                 const Curve& curve, std::size_t count) const {
  constexpr double kMostTimes = 2;
  if (!options_.objective.by_cost()) return std::nullopt;
  const Outcome* best = nullptr;
  for (std::size_t i = 0; i < history.jobs.size(); ++i) {
    const Outcome* outcome = history.outcome(i);
    if (outcome == nullptr || history.jobs[i].request.config == request.config) continue;
    if (!outcome->best() || (best != nullptr && *outcome->best() <= *best->best())) continue;
    best = outcome;
  }
  if (best == nullptr) return std::nullopt;
  const double seconds = curve.points[count - 1].seconds, there = best->curve.points.back().seconds;
  if (there <= 0 || seconds <= kMostTimes * there) return std::nullopt;
  return fmt::format("after {:.3g} s it is not at the target, where trial {} was in {:.3g} s",
                     seconds, best->trial, there);
}

std::optional<std::string> Search::enough(const History& history, const Request& request,
                                          const Curve& curve, std::size_t count) const {
  if (options_.kind != SearchKind::kWhole) return std::nullopt;
  if (auto reason = out_of_patience(curve.points, count, options_.rules, options_.objective))
    return reason;
  if (auto reason = past_the_best(history, request, curve, count)) return reason;
  if (!options_.median) return std::nullopt;
  std::vector<const Curve*> others;
  for (std::size_t i = 0; i < history.jobs.size(); ++i) {
    const Outcome* outcome = history.outcome(i);
    if (outcome != nullptr && history.jobs[i].request.config != request.config)
      others.push_back(&outcome->curve);
  }
  return below_median(curve.points, count, others, {.startup = 5, .warm_up = options_.least_steps},
                      options_.objective);
}

}  // namespace stoker::tune
