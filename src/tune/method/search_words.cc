#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tune/method/noise.h"
#include "tune/method/problem.h"
#include "tune/method/search_pass.h"

namespace stoker::tune {
namespace {

std::size_t rank_of(const std::vector<Ranked>& scores, std::size_t config) {
  std::size_t place = 1, found = scores.size();
  auto ranked = scores;
  rank(ranked);
  for (const Ranked& one : ranked) {
    if (one.config == config) found = place;
    ++place;
  }
  return found;
}

}  // namespace

std::string SearchPass::name(const Config& config) const {
  std::string text;
  for (std::size_t i = 0; i < config.values.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", options_.space[i].name, config.values[i]);
  return text;
}

/// Each outcome in the order of asking, ranked among those before it, so that a line once said
/// stays true.
void SearchPass::tell() {
  std::vector<std::vector<Ranked>> so_far(rungs_.size());
  for (std::size_t i = 0; i < history_.jobs.size() && history_.outcome(i) != nullptr; ++i)
    tell_job(i, so_far);
  if (walk_.next == Walk::Next::kDone) tell_end();
}

void SearchPass::tell_job(std::size_t job, std::vector<std::vector<Ranked>>& so_far) {
  const Request& asked = history_.jobs[job].request;
  const Outcome& outcome = *history_.outcome(job);
  const auto rung =
      static_cast<std::size_t>(std::ranges::find(rungs_, asked.last_step) - rungs_.begin());
  if (rung >= rungs_.size()) return;
  const auto value = score(outcome, rung);
  auto& others = so_far[rung];
  if (value) others.push_back({static_cast<std::size_t>(asked.config), *value});
  const std::string what =
      fmt::format("{}: {}", name(known_.at(asked.config)),
                  value && std::isfinite(*value) ? options_.objective.named_result(*value)
                                                 : std::string(name_of(outcome.end)));
  std::string why = fmt::format("trial {}", outcome.trial);
  if (outcome.end == End::kFinished || outcome.end == End::kReached)
    why += fmt::format(" at step {:.6g}", outcome.curve.last_step());
  else
    why += fmt::format(" {} at step {:.6g}: {}", name_of(outcome.end), outcome.curve.last_step(),
                       outcome.reason);
  const bool last = rung + 1 == rungs_.size();
  if (value)
    why +=
        fmt::format(", rank {} of {} there{}",
                    rank_of(others, static_cast<std::size_t>(asked.config)), others.size(),
                    last ? "" : fmt::format(", cut-off {}", promoted(others.size(), options_.eta)));
  if (outcome.power) why += ", " + outcome.power->text();
  if (outcome.restarted) why += "; it began anew: there was no checkpoint to go on from";
  double saved = 0;
  const double steps = outcome.curve.last_step();
  if (outcome.end == End::kStopped && rungs_.back() > steps && steps > 0)
    saved = outcome.wall_s * (rungs_.back() / steps - 1);
  walk_.decisions.push_back({what, why, saved});
}

/// Where configurations stopped for good, and what their remaining steps would have taken.
void SearchPass::tell_end() {
  for (std::size_t rung = 0; rung + 1 < rungs_.size(); ++rung) {
    const auto scores = at_rung(rung);
    std::size_t stayed = 0;
    double saved = 0;
    for (const auto& [id, config] : known_) {
      if (config.latest == nullptr || config.latest->end != End::kReached) continue;
      const double steps = config.latest->curve.last_step();
      const bool here = score(*config.latest, rung) && !score(*config.latest, rung + 1);
      if (!here || steps <= 0) continue;
      ++stayed;
      const double trained = config.latest->curve.marks.empty()
                                 ? config.latest->wall_s
                                 : config.latest->curve.marks.back().seconds;
      saved += std::max(trained, 0.0) * (rungs_.back() / steps - 1);
    }
    if (stayed > 0)
      walk_.decisions.push_back(
          {fmt::format("{} configurations end at step {:.6g}", stayed, rungs_[rung]),
           fmt::format("their ranks among {} are above the cut-off {}", scores.size(),
                       promoted(scores.size(), options_.eta)),
           saved});
  }
}

std::vector<const Outcome*> SearchPass::latest() const {
  std::vector<const Outcome*> all;
  for (const auto& [id, config] : known_) {
    if (config.latest != nullptr) all.push_back(config.latest);
  }
  return all;
}

bool SearchPass::broke(const Outcome& outcome) {
  return outcome.end == End::kDiverged || outcome.end == End::kOutOfMemory ||
         outcome.end == End::kFailed;
}

/// Between the configurations that came to the last rung that more than one reached.
void SearchPass::tell_noise() {
  for (std::size_t rung = rungs_.size(); rung-- > 0;) {
    std::vector<SettingScores> settings;
    for (const Ranked& one : at_rung(rung)) {
      const Config& config = known_.at(static_cast<std::int64_t>(one.config));
      if (!std::isfinite(one.score) || broke(*config.latest)) continue;
      const double noise =
          options_.objective.by_cost() ? 0 : noise_of(config.latest->curve.points).value_or(0);
      settings.push_back({name(config), {one.score}, noise});
    }
    if (settings.size() < 2) continue;
    const NoiseVerdict verdict =
        judge_noise(std::move(settings), options_.objective, "run both with other seeds");
    if (!verdict.text.empty())
      walk_.decisions.push_back({verdict.nothing_decided ? "the settings cannot be told apart"
                                                         : "the two best cannot be told apart",
                                 verdict.text});
    return;
  }
}

/// The best at the highest rung that anybody reached.
void SearchPass::choose() {
  for (std::size_t rung = rungs_.size(); rung-- > 0 && !walk_.choice;) {
    auto scores = at_rung(rung);
    std::erase_if(scores, [&](const Ranked& one) {
      return !std::isfinite(one.score) ||
             broke(*known_.at(static_cast<std::int64_t>(one.config)).latest);
    });
    if (scores.empty()) continue;
    rank(scores);
    const Config& config = known_.at(static_cast<std::int64_t>(scores[0].config));
    walk_.choice = Choice{config.values, scores[0].score, config.latest->trial};
  }
  if (walk_.next != Walk::Next::kDone) return;
  const auto outcomes = latest();
  auto problem = wrong_direction(outcomes, options_.objective, 2);
  if (!problem && !walk_.choice) {
    problem = no_choice(outcomes, options_.objective,
                        {"settings", "give a smaller batch, or what else takes less memory",
                         "give smaller learning rates, or what else keeps the loss finite"});
    if (!problem) problem = "every setting that began well diverged or failed when it went on";
  }
  if (!problem) return tell_noise();
  walk_.next = Walk::Next::kStuck;
  walk_.problem = std::move(*problem);
}

}  // namespace stoker::tune
