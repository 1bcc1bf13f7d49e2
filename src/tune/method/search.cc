#include "tune/method/search.h"

#include <cmath>

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

std::optional<std::string> Search::enough(const History& history, const Request& request,
                                          const Curve& curve, std::size_t count) const {
  if (options_.kind != SearchKind::kWhole) return std::nullopt;
  if (auto reason = out_of_patience(curve.points, count, options_.rules, options_.objective))
    return reason;
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
