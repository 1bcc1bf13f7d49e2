#include "tune/method/problem.h"

#include <fmt/core.h>

#include <algorithm>

namespace stoker::tune {
namespace {

/// Trials that ended alike from which no other is expected to end otherwise: judgement.
constexpr std::size_t kFailedAlike = 3, kWorseAlike = 4;

bool got_worse(const std::vector<Point>& points) {
  const double noise = noise_of(points).value_or(0);
  return points.back().score < points.front().score - 2 * noise &&
         best_of(points, points.size()) == 0;
}

std::string never_told(const Outcome& outcome, const Objective& objective) {
  std::string text = outcome.reason.empty()
                         ? "stoker.report(" + objective.metric + "=...) was never called"
                         : outcome.reason;
  if (!outcome.told.empty()) text += "; it told " + outcome.told;
  return text;
}

std::vector<const Outcome*> seen_trials(const History& history) {
  std::vector<const Outcome*> all;
  for (std::size_t i = 0; i < history.jobs.size(); ++i) {
    const Outcome* outcome = history.outcome(i);
    if (outcome != nullptr && history.jobs[i].request.stage != "batch") all.push_back(outcome);
  }
  return all;
}

/// The best that trials came to which did not reach the target.
std::string missed_target(const std::vector<const Outcome*>& outcomes, const Objective& objective) {
  const Outcome* best = nullptr;
  const auto score = [](const Outcome& o) {
    return o.curve.points[best_of(o.curve.points, o.curve.points.size())].score;
  };
  for (const Outcome* o : outcomes) {
    if (o->curve.points.empty()) continue;
    if (best == nullptr || score(*o) > score(*best)) best = o;
  }
  if (best == nullptr) return "";
  return fmt::format(
      "no trial reached {} {}: the best, trial {}, had {}; give a --target that is "
      "easier to reach, or more steps",
      objective.metric, objective.text(*objective.target), best->trial,
      objective.text(score(*best)));
}

}  // namespace

std::string no_power_of(std::int64_t trial) {
  return fmt::format(
      "no power is known of trial {}: no GPU told its own there (NVML), and none is forecast; say "
      "--model and --gpu for an estimate, or leave out --objective energy",
      trial);
}

std::optional<std::string> wrong_direction(const std::vector<const Outcome*>& outcomes,
                                           const Objective& objective, std::size_t fewest) {
  std::size_t known = 0, worse = 0;
  for (const Outcome* o : outcomes) {
    if (o->end == End::kDiverged || o->curve.points.size() < 3) continue;
    ++known;
    worse += got_worse(o->curve.points) ? 1 : 0;
  }
  if (known < fewest || worse < known) return std::nullopt;
  return fmt::format(
      "{} got worse from first to last in all {} trials, if {} is better: if it is the other way "
      "round, say --direction {}; else give smaller learning rates",
      objective.metric, known, objective.most ? "more" : "less", objective.most ? "min" : "max");
}

std::optional<std::string> early_problem(const History& history, const Objective& objective) {
  const auto seen = seen_trials(history);
  const auto told = [](const Outcome* o) { return !o->curve.points.empty(); };
  if (objective.energy_weight) {
    for (const Outcome* o : seen) {
      if (told(o) && !o->power) return no_power_of(o->trial);
    }
  }
  if (std::ranges::none_of(seen, told)) {
    const auto silent = std::ranges::find_if(seen, [](const Outcome* o) { return o->silent; });
    if (silent != seen.end())
      return fmt::format("no trial told {}: trial {} ended well without it: {}", objective.metric,
                         (*silent)->trial, never_told(**silent, objective));
    if (seen.size() >= kFailedAlike &&
        std::ranges::all_of(seen, [](const Outcome* o) { return o->end == End::kFailed; }))
      return fmt::format("the first {} trials all failed, the last one, trial {}: {}", seen.size(),
                         seen.back()->trial, seen.back()->reason);
  }
  return wrong_direction(seen, objective, kWorseAlike);
}

std::optional<std::string> no_choice(const std::vector<const Outcome*>& outcomes,
                                     const Objective& objective, const Cures& cures) {
  if (outcomes.empty()) return "there is nothing to try";
  if (std::ranges::any_of(outcomes, [](const Outcome* o) { return o->best().has_value(); }))
    return std::nullopt;
  const auto count_of = [&](End end) {
    return static_cast<std::size_t>(
        std::ranges::count_if(outcomes, [&](const Outcome* o) { return o->end == end; }));
  };
  if (count_of(End::kOutOfMemory) == outcomes.size())
    return "every trial ran out of memory: " + cures.smaller_batch;
  const std::size_t diverged = count_of(End::kDiverged);
  const bool any_told = std::ranges::any_of(outcomes, [](const Outcome* o) {
    return o->end != End::kDiverged && !o->curve.points.empty();
  });
  if (diverged > 0 && diverged + count_of(End::kOutOfMemory) == outcomes.size()) {
    const bool ever =
        std::ranges::any_of(outcomes, [](const Outcome* o) { return !o->curve.points.empty(); });
    const std::string what = fmt::format("all {} {} diverged", diverged, cures.tried);
    if (ever) return what + ", " + cures.smaller_rates;
    return fmt::format(
        "{}, and {} was no finite number in any report: look at how it is computed; else {}", what,
        objective.metric, cures.smaller_rates);
  }
  if (objective.by_cost() && any_told) return missed_target(outcomes, objective);
  const auto last =
      std::ranges::find_if(outcomes, [](const Outcome* o) { return o->end != End::kDiverged; });
  return fmt::format("no trial told {}: trial {} {}: {}", objective.metric, (*last)->trial,
                     name_of((*last)->end), never_told(**last, objective));
}

}  // namespace stoker::tune
