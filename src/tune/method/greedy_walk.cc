#include "tune/method/greedy_walk.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/ranges.h"
#include "tune/method/problem.h"

namespace stoker::tune {
namespace {

std::string rate_text(double rate) { return fmt::format("{:.4g}", rate); }

/// The grid from its middle outwards: a good one early is what the others are compared with.
std::vector<std::size_t> from_the_middle(std::size_t count) {
  std::vector<std::size_t> order;
  const std::size_t middle = count / 2;
  order.push_back(middle);
  for (std::size_t d = 1; order.size() < count; ++d) {
    if (middle + d < count) order.push_back(middle + d);
    if (d <= middle) order.push_back(middle - d);
  }
  return order;
}

}  // namespace

Walk GreedyWalk::run() {
  if (auto problem = early_problem(history_, options_.objective)) {
    stuck(std::move(*problem));
    return walk_;
  }
  for (const Job& job : history_.jobs) {
    if (searches(job.request.stage) && job.outcome && job.outcome->end == End::kFinished)
      longest_ = std::max(longest_, job.outcome->curve.last_step());
  }
  if (!options_.batches.empty()) {
    if (!choose_batches()) return walk_;
  } else {
    batches_ = {""};
  }
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    out_of_memory_ = false;
    if (choose_rate(batches_[i])) break;
    if (!out_of_memory_) return walk_;
    walk_.next = Walk::Next::kDone;
    if (i + 1 < batches_.size()) {
      walk_.decisions.push_back(
          {fmt::format("batch {} instead of {}", batches_[i + 1], batches_[i]),
           fmt::format("training ran out of memory at {}", batches_[i])});
      continue;
    }
    stuck(
        options_.batches.empty()
            ? "every trial ran out of memory: give the command a smaller batch"
            : fmt::format("even batch {} runs out of memory: give smaller ones, --batch {:.0f},...",
                          batches_[i], number_of(batches_[i]) / 2));
    return walk_;
  }
  return walk_;
}

bool GreedyWalk::stuck(std::string problem) {
  walk_.next = Walk::Next::kStuck;
  walk_.problem = std::move(problem);
  return false;
}

bool GreedyWalk::requested(const Request& request) {
  if (history_.find(request)) return true;
  walk_.next = Walk::Next::kRun;
  walk_.request = request;
  return false;
}

const Outcome* GreedyWalk::result(const Request& request) {
  if (!requested(request)) return nullptr;
  const Outcome* outcome = history_.outcome(*history_.find(request));
  if (outcome == nullptr) walk_.next = Walk::Next::kWait;
  return outcome;
}

Request GreedyWalk::request(const std::string& batch, const std::string& rate,
                            const std::string& stage, int repetition) const {
  Request r;
  const std::string first = options_.batch_first ? batch : rate,
                    second = options_.batch_first ? rate : batch;
  if (!options_.batches.empty() && !options_.rates.empty()) r.values = {first, second};
  else r.values = {options_.batches.empty() ? rate : batch};
  r.stage = stage;
  r.share = searches(stage) ? options_.share : 1;
  r.seed = options_.seed + repetition;
  return r;
}

bool GreedyWalk::choose_rate(const std::string& batch) {
  if (options_.rates.empty()) {
    if (!options_.final_run) {
      walk_.choice = Choice{request(batch, "", "final", 0).values, {}, 0};
      return true;
    }
    return final_run(batch, Rate{"", 0, {}, {}});
  }
  std::vector<Rate> rates;
  for (const std::string& value : options_.rates) rates.push_back({value, number_of(value)});
  if (!grid(batch, rates) || !judge_grid(rates)) return false;
  if (!undecided_ && (!widen(batch, rates) || !refine(batch, rates))) return false;
  Rate winner = rates[*best(rates)];
  walk_.decisions.push_back(
      {"lr " + winner.value, fmt::format("best of {} learning rates: {}", rates.size(),
                                         options_.objective.named_result(*winner.score))});
  std::string chosen = batch;
  choose(chosen, winner);
  if (!undecided_ && !shrink(chosen, winner)) return false;
  return !options_.final_run || final_run(chosen, winner);
}

void GreedyWalk::choose(const std::string& batch, const Rate& winner) {
  const auto seed = std::ranges::max_element(
      winner.outcomes, {}, [](const Outcome* o) { return o->best().value_or(-INFINITY); });
  walk_.choice =
      Choice{request(batch, winner.value, "rates", 0).values, winner.score, (*seed)->trial};
}

bool GreedyWalk::run_rate(const std::string& batch, Rate& rate, const std::string& stage) {
  return run_rates(batch, {&rate}, stage);
}

bool GreedyWalk::run_rates(const std::string& batch, std::vector<Rate*> rates,
                           const std::string& stage) {
  for (const Rate* rate : rates) {
    for (int r = 0; r < options_.repeat; ++r) {
      const Request wanted = request(batch, rate->value, stage, r);
      if (!requested(wanted)) {
        // Memory does not depend on the learning rate: what is known of one holds for all.
        for (const Rate* other : rates) {
          const auto job = history_.find(request(batch, other->value, stage, 0));
          const Outcome* known = job ? history_.outcome(*job) : nullptr;
          if (known != nullptr && known->end == End::kOutOfMemory) return !(out_of_memory_ = true);
        }
        return false;
      }
    }
  }
  for (Rate* rate : rates) {
    double sum = 0;
    bool all = true;
    rate->outcomes.clear();
    for (int r = 0; r < options_.repeat; ++r) {
      const Outcome* outcome = result(request(batch, rate->value, stage, r));
      if (outcome == nullptr) return false;
      if (outcome->end == End::kOutOfMemory) return !(out_of_memory_ = true);
      rate->outcomes.push_back(outcome);
      all = all && outcome->best();
      sum += outcome->best().value_or(0);
    }
    if (all) rate->score = sum / options_.repeat;
    tell(*rate, stage);
  }
  return true;
}

double GreedyWalk::saved(const Outcome& outcome) const {
  const double steps = outcome.curve.last_step();
  if (outcome.end != End::kStopped && outcome.end != End::kDiverged) return 0;
  return steps > 0 && longest_ > steps ? outcome.wall_s * (longest_ / steps - 1) : 0;
}

void GreedyWalk::tell(const Rate& rate, const std::string& stage) {
  std::string why;
  double not_spent = 0;
  for (const Outcome* outcome : rate.outcomes) {
    not_spent += saved(*outcome);
    if (outcome->end == End::kFinished) continue;
    why += fmt::format("{}trial {} {} at step {:.6g}: {}", why.empty() ? "" : "; ", outcome->trial,
                       name_of(outcome->end), outcome->curve.last_step(), outcome->reason);
  }
  if (why.empty()) why = fmt::format("trial {} ran to its end", rate.outcomes.front()->trial);
  walk_.decisions.push_back({fmt::format("lr {}: {}", rate.value,
                                         rate.score ? options_.objective.named_result(*rate.score)
                                                    : options_.objective.metric + " none") +
                                 (stage == "refine"    ? ", beside the best"
                                  : stage == "smaller" ? ", with a smaller batch"
                                                       : ""),
                             why, not_spent});
}

std::optional<std::size_t> GreedyWalk::best(const std::vector<Rate>& rates) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i].score && (!best || *rates[i].score > *rates[*best].score)) best = i;
  }
  return best;
}

bool GreedyWalk::grid(const std::string& batch, std::vector<Rate>& rates) {
  std::vector<Rate*> order;
  for (const std::size_t i : from_the_middle(rates.size())) order.push_back(&rates[i]);
  return run_rates(batch, order, "rates");
}

SettingScores GreedyWalk::scores_of(std::string name, const Rate& rate) const {
  SettingScores scores{std::move(name), {}, 0};
  for (const Outcome* o : rate.outcomes) {
    if (!o->best()) continue;
    scores.scores.push_back(*o->best());
    if (!options_.objective.by_cost())
      scores.noise = std::max(scores.noise, noise_of(o->curve.points).value_or(0));
  }
  return scores;
}

bool GreedyWalk::judge_grid(const std::vector<Rate>& rates) {
  std::vector<const Outcome*> outcomes;
  for (const Rate& rate : rates)
    outcomes.insert(outcomes.end(), rate.outcomes.begin(), rate.outcomes.end());
  if (!best(rates)) {
    auto problem = no_choice(
        outcomes, options_.objective,
        {options_.repeat == 1 ? "learning rates" : "trials", "give the command a smaller batch",
         fmt::format("the smallest, {}, too: give smaller ones, --lr {}..{}", rates.front().value,
                     rate_text(rates.front().rate / 1e4), rates.front().value)});
    return stuck(problem ? std::move(*problem)
                         : "no learning rate came to a result with each of its seeds: " +
                               outcomes.back()->reason);
  }
  if (auto problem = wrong_direction(outcomes, options_.objective, 2))
    return stuck(std::move(*problem));
  std::vector<SettingScores> scores;
  for (const Rate& rate : rates) {
    if (rate.score) scores.push_back(scores_of("lr " + rate.value, rate));
  }
  const NoiseVerdict verdict = judge_noise(scores, options_.objective);
  undecided_ = verdict.nothing_decided;
  if (!verdict.text.empty())
    walk_.decisions.push_back({verdict.nothing_decided ? "the learning rates cannot be told apart"
                                                       : "the two best cannot be told apart",
                               verdict.text});
  return true;
}

bool GreedyWalk::widen(const std::string& batch, std::vector<Rate>& rates) {
  constexpr int kMostWider = 2;
  if (rates.size() < 2) return true;
  for (int i = 0; i < kMostWider; ++i) {
    const auto winner = best(rates);
    if (!winner || (*winner != 0 && *winner + 1 != rates.size())) return true;
    const bool low = *winner == 0;
    const double ratio =
        low ? rates[0].rate / rates[1].rate : rates.back().rate / rates[rates.size() - 2].rate;
    const double rate = (low ? rates[0].rate : rates.back().rate) * ratio;
    if (!(rate > 0) || !std::isfinite(rate) || rate > 1e3) return true;
    Rate wider{shortest(number_of(rate_text(rate))), rate};
    walk_.decisions.push_back(
        {"lr " + wider.value + " as well",
         fmt::format("the best, {}, is at the end of the grid", rates[*winner].value)});
    rates.insert(low ? rates.begin() : rates.end(), wider);
    if (!run_rate(batch, low ? rates.front() : rates.back(), "rates")) return false;
  }
  return true;
}

bool GreedyWalk::refine(const std::string& batch, std::vector<Rate>& rates) {
  if (options_.refine <= 0) return true;
  std::size_t winner = *best(rates);
  const double width = rates[winner].rate / 2;
  for (int trials = 0; trials < options_.refine;) {
    // The neighbours of the best at half of the grid's winner, where they are not known yet.
    const double at = rates[winner].rate;
    bool asked = false;
    for (const double rate : {at + width, at - width}) {
      const bool known = std::ranges::any_of(
          rates, [&](const Rate& r) { return std::fabs(r.rate - rate) <= 1e-6 * rate; });
      if (rate <= width * 1e-3 || known || trials >= options_.refine) continue;
      Rate beside{rate_text(rate), rate};
      if (!run_rate(batch, beside, "refine")) return false;
      rates.push_back(std::move(beside));
      asked = true;
      ++trials;
      if (*best(rates) != winner) break;  // better on this side: the other need not be looked at
    }
    const std::size_t now = *best(rates);
    if (now == winner && !asked) break;
    if (now == winner) {
      walk_.decisions.push_back({"lr " + rates[winner].value + " is bracketed",
                                 fmt::format("{} above and below it are worse", rate_text(width))});
      return true;
    }
    winner = now;
  }
  return true;
}

bool GreedyWalk::final_run(const std::string& batch, const Rate& winner) {
  for (const Outcome* outcome : winner.outcomes) {
    const bool whole = outcome->end == End::kFinished || outcome->end == End::kReached;
    if (options_.share != 1 || !whole) continue;
    walk_.decisions.push_back({fmt::format("trial {} is the whole run", outcome->trial),
                               outcome->end == End::kReached ? "it came to the target on all data"
                                                             : "it ran on all data to its end",
                               outcome->wall_s});
    return true;
  }
  const Outcome* outcome = result(request(batch, winner.value, "final", 0));
  if (outcome == nullptr) return false;
  if (outcome->end == End::kOutOfMemory) return !(out_of_memory_ = true);
  const auto score = outcome->best();
  walk_.choice = Choice{request(batch, winner.value, "final", 0).values, score, outcome->trial};
  if (outcome->end != End::kFinished && outcome->end != End::kReached) {
    walk_.decisions.push_back(
        {fmt::format("the whole run, trial {}, {}", outcome->trial, name_of(outcome->end)),
         outcome->reason});
    return true;
  }
  if (!score)
    return stuck(fmt::format("the whole run, trial {}, never {} {}", outcome->trial,
                             options_.objective.by_cost() ? "came to the target of" : "told",
                             options_.objective.metric));
  walk_.decisions.push_back({"the whole run: " + options_.objective.named_result(*score),
                             fmt::format("trial {} in {:.3g} s", outcome->trial, outcome->wall_s)});
  return true;
}

}  // namespace stoker::tune
