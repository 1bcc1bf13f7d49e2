#include "tune/method/search_pass.h"

#include <algorithm>
#include <cmath>

#include "tune/method/problem.h"

namespace stoker::tune {

SearchPass::SearchPass(const SearchOptions& options, const std::vector<double>& rungs,
                       const std::vector<Bracket>& brackets,
                       const std::vector<std::vector<std::string>>& listed, std::int64_t configs,
                       const History& history)
    : options_(options),
      rungs_(rungs),
      brackets_(brackets),
      listed_(listed),
      configs_(configs),
      history_(history) {
  for (std::size_t i = 0; i < history_.jobs.size(); ++i) {
    const Request& asked = history_.jobs[i].request;
    Config& config = known_[asked.config];
    config.values = asked.values;
    ++config.asked;
    if (const Outcome* outcome = history_.outcome(i)) config.latest = outcome;
  }
}

Walk SearchPass::run() {
  if (auto problem = early_problem(history_, options_.objective)) {
    walk_.next = Walk::Next::kStuck;
    walk_.problem = std::move(*problem);
    tell();
    choose();
    return std::move(walk_);
  }
  switch (options_.kind) {
    case SearchKind::kAsha:
      next_of_asha();
      break;
    case SearchKind::kHyperband:
      next_of_hyperband();
      break;
    case SearchKind::kWhole:
      next_of_whole();
      break;
  }
  tell();
  choose();
  return std::move(walk_);
}

Request SearchPass::request(std::int64_t config, std::size_t rung) const {
  Request r;
  r.stage = "search";
  r.config = config;
  r.last_step = rungs_[rung];
  r.seed = options_.seed;
  if (const auto found = known_.find(config); found != known_.end())
    r.values = found->second.values;
  return r;
}

void SearchPass::begin(std::int64_t config, std::size_t rung) {
  walk_.next = options_.sampled ? Walk::Next::kSample : Walk::Next::kRun;
  walk_.request = request(config, rung);
  const auto index = static_cast<std::uint64_t>(config - 1);
  if (!listed_.empty()) walk_.request.values = listed_[index];
  else if (!options_.sampled)
    walk_.request.values = draw(options_.space, static_cast<std::uint64_t>(options_.seed), index);
}

void SearchPass::go_on(std::int64_t config, std::size_t rung) {
  walk_.next = Walk::Next::kRun;
  walk_.request = request(config, rung);
}

std::optional<double> SearchPass::score(const Outcome& outcome, std::size_t rung) const {
  const auto& points = outcome.curve.points;
  if (options_.kind == SearchKind::kWhole) return outcome.best().value_or(-INFINITY);
  for (const Point& point : points) {
    if (rungs_[rung] > 0 && point.step >= rungs_[rung]) return point.score;
  }
  if (outcome.end == End::kReached) return std::nullopt;  // paused below this rung
  if (outcome.end == End::kFinished && !points.empty()) return points.back().score;
  return -INFINITY;
}

std::vector<Ranked> SearchPass::at_rung(std::size_t rung) const {
  std::vector<Ranked> all;
  for (const auto& [id, config] : known_) {
    if (config.latest == nullptr) continue;
    if (const auto value = score(*config.latest, rung))
      all.push_back({static_cast<std::size_t>(id), *value});
  }
  return all;
}

void SearchPass::next_of_asha() {
  for (std::size_t rung = rungs_.size() - 1; rung-- > 0;) {
    const auto config = promotable(at_rung(rung), options_.eta, [&](std::size_t id) {
      const Config& c = known_.at(static_cast<std::int64_t>(id));
      return c.asked == rung + 1 && c.latest != nullptr && c.latest->end == End::kReached;
    });
    if (config) return go_on(static_cast<std::int64_t>(*config), rung + 1);
  }
  const auto begun = static_cast<std::int64_t>(known_.size());
  if (begun < configs_) return begin(begun + 1, 0);
  walk_.next = waits() ? Walk::Next::kWait : Walk::Next::kDone;
}

void SearchPass::next_of_hyperband() {
  std::int64_t before = 0;
  for (const Bracket& bracket : brackets_) {
    std::vector<std::int64_t> running;
    for (std::int64_t i = 1; i <= bracket.count; ++i) running.push_back(before + i);
    before += bracket.count;
    for (std::size_t rung = bracket.first; rung < rungs_.size(); ++rung) {
      const std::size_t place = rung - bracket.first;
      for (const std::int64_t id : running) {
        const auto found = known_.find(id);
        if (found == known_.end()) return begin(id, rung);
        const bool over = found->second.latest != nullptr && found->second.asked == place &&
                          found->second.latest->end != End::kReached;
        if (found->second.asked <= place && !over) return go_on(id, rung);
      }
      if (rung + 1 == rungs_.size()) break;
      std::vector<Ranked> scores;
      for (const std::int64_t id : running) {
        // Where the configuration was asked for more than this rung, it is known at this one.
        const Outcome* latest = known_.at(id).latest;
        const auto value = latest == nullptr ? std::nullopt : score(*latest, rung);
        if (!value) {
          walk_.next = Walk::Next::kWait;
          return;
        }
        scores.push_back({static_cast<std::size_t>(id), *value});
      }
      rank(scores);
      scores.resize(std::max<std::size_t>(promoted(scores.size(), options_.eta), 1));
      running.clear();
      for (const Ranked& one : scores) {
        if (std::isfinite(one.score)) running.push_back(static_cast<std::int64_t>(one.config));
      }
      std::ranges::sort(running);
    }
  }
  walk_.next = waits() ? Walk::Next::kWait : Walk::Next::kDone;
}

void SearchPass::next_of_whole() {
  const auto begun = static_cast<std::int64_t>(known_.size());
  if (begun < configs_) return begin(begun + 1, 0);
  walk_.next = waits() ? Walk::Next::kWait : Walk::Next::kDone;
}

}  // namespace stoker::tune
