#include "tune/run/tuner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "study/definition/values.h"
#include "study/executor/outcome.h"
#include "tune/method/greedy.h"
#include "tune/run/checkpoints.h"
#include "tune/run/trial_jobs.h"

namespace stoker::tune {
namespace fs = std::filesystem;
namespace {

constexpr int kMostAttempts = 3;
constexpr double kSecondsAnHour = 3600;

End end_of(const study::TrialRow& row) {
  switch (row.state) {
    case study::TrialState::kDone:
      return row.cause == "stopped" ? End::kStopped : End::kFinished;
    case study::TrialState::kOutOfMemory:
      return End::kOutOfMemory;
    case study::TrialState::kTimedOut:
      return End::kTimedOut;
    case study::TrialState::kCancelled:
    case study::TrialState::kNotRun:
      return End::kNotRun;
    default:
      return End::kFailed;
  }
}

std::optional<double> batch_of(const study::Study& study, const Request& request) {
  const auto names = study::axis_names(study);
  for (std::size_t i = 0; i < request.values.size(); ++i) {
    if (names[i] == "batch") return study::as_number(request.values[i]);
  }
  return std::nullopt;
}

}  // namespace

Tuner::Tuner(study::Store& store, const Method& method, TunerOptions options)
    : store_(store), method_(method), options_(std::move(options)) {
  for (const study::Metric& metric : store_.study().metrics) {
    if (metric.name == options_.objective.metric) metric_ = metric;
  }
}

History Tuner::history(std::size_t jobs, std::size_t seen) const {
  return {std::span(jobs_).first(jobs), seen};
}

std::size_t Tuner::known() const {
  const auto open = std::ranges::find_if(jobs_, [](const Job& job) { return !job.outcome; });
  return static_cast<std::size_t>(open - jobs_.begin());
}

Status Tuner::load() {
  const auto rows = TRY(store_.full_trials());
  std::map<std::int64_t, std::int64_t> later;  // a trial that is run again, and by which
  for (const study::TrialRow& row : rows) {
    if (row.retry_of) later[*row.retry_of] = row.id;
  }
  for (const study::TrialRow& row : rows) {
    if (!row.retry_of) {
      job_of_[row.id] = jobs_.size();
      jobs_.push_back({request_of(row.trial, row.id)});
    } else {
      job_of_[row.id] = job_of_.at(*row.retry_of);
    }
  }
  for (const study::TrialRow& row : rows) {
    const std::size_t job = job_of_.at(row.id);
    ++attempts_[job];
    if (later.contains(row.id)) other_seconds_ += row.wall_s.value_or(0);
    else TRY(take_up(job, row));
  }
  // How many outcomes were seen when each was asked for follows from the method alone.
  std::size_t seen = 0;
  for (std::size_t k = 0; k < jobs_.size(); ++k) {
    seen = std::max(seen, k + 1 > options_.width ? k + 1 - options_.width : 0);
    while (seen < k && method_.walk(history(k, seen)).next == Walk::Next::kWait) ++seen;
    seen_at_.push_back(seen);
  }
  // Outcomes in their order: each needs those before it.
  for (const study::TrialRow& row : ended_) {
    const std::size_t job = job_of_.at(row.id);
    if (!was_interrupted(row)) jobs_[job].outcome = outcome_of(job, row);
  }
  std::erase_if(ended_, [](const study::TrialRow& row) { return !was_interrupted(row); });
  return {};
}

Status Tuner::take_up(std::size_t job, const study::TrialRow& row) {
  if (study::is_final(row.state)) {
    ended_.push_back(row);
    return {};
  }
  Live& live = live_[job];
  live.trial = row.id;
  live.reader.emplace(study::latest_files(store_.path(), row.id), metric_, options_.objective);
  return {};
}

Curve Tuner::before(std::size_t job) const {
  const Request& request = jobs_[job].request;
  if (request.config == 0) return {};
  for (std::size_t i = job; i-- > 0;) {
    if (jobs_[i].request.config == request.config && jobs_[i].outcome)
      return jobs_[i].outcome->curve;
  }
  return {};
}

std::optional<Stop> Tuner::stop_of(std::size_t job, const Curve& curve, std::size_t from) const {
  const Request& request = jobs_[job].request;
  if (request.stage == "batch") {
    const auto* greedy = dynamic_cast<const Greedy*>(&method_);
    if (greedy == nullptr) return std::nullopt;
    if (auto reason = greedy->probed(curve))
      return Stop{curve.points.size(), End::kReached, std::move(*reason)};
    return std::nullopt;
  }
  return first_stop(method_, history(job, seen_at_[job]), request, curve, from);
}

Outcome Tuner::outcome_of(std::size_t job, const study::TrialRow& row) const {
  CurveReader reader(study::latest_files(store_.path(), row.id), metric_, options_.objective);
  const Request& request = jobs_[job].request;
  Outcome outcome;
  outcome.trial = row.id;
  outcome.wall_s = row.wall_s.value_or(0);
  outcome.end = end_of(row);
  outcome.reason = row.reason;
  const Curve& read = reader.read();
  outcome.samples_per_s = rate_of(read, batch_of(store_.study(), request));
  if (const auto found = row.metrics.find("gpu_util"); found != row.metrics.end())
    outcome.utilisation = found->second > 1 ? found->second / 100 : found->second;
  Continued whole = continued(before(job), read);
  outcome.curve = std::move(whole.curve);
  outcome.restarted = whole.restarted;
  // A trial that paused and is there again has its points before the step where it paused.
  if (auto stop = stop_of(job, outcome.curve, 0)) {
    outcome.curve.points.resize(stop->points);
    outcome.end = stop->end;
    outcome.reason = stop->reason;
  } else if (outcome.end == End::kFailed && row.cause == "metric_not_finite") {
    outcome.end = End::kDiverged;
  }
  if (row.cause == "metric_not_finite" && outcome.end == End::kFinished)
    outcome.end = End::kDiverged;
  return outcome;
}

void Tuner::changed(const study::TrialRow& row) {
  if (study::is_final(row.state)) ended_.push_back(row);
}

/// Trials that ended since the last look; those that were interrupted are run again.
Result<bool> Tuner::ended_rows(std::vector<study::TrialRow>& again) {
  const bool any = !ended_.empty();
  for (const study::TrialRow& row : ended_) {
    const std::size_t job = job_of_.at(row.id);
    live_.erase(job);
    if (!was_interrupted(row)) {
      jobs_[job].outcome = outcome_of(job, row);
      continue;
    }
    other_seconds_ += row.wall_s.value_or(0);
    if (attempts_[job] >= kMostAttempts && row.state != study::TrialState::kCancelled &&
        row.cause != "stopped") {
      jobs_[job].outcome = outcome_of(job, row);
      continue;
    }
    const std::int64_t id = TRY(store_.retry(row.id));
    ++attempts_[job];
    job_of_[id] = job;
    again.push_back(TRY(store_.trial(id)));
    TRY(take_up(job, again.back()));
  }
  ended_.clear();
  return any;
}

Status Tuner::ask_to_stop(Live& live, const std::string& reason) const {
  if (live.stop_asked) return {};
  const study::TrialFiles files = study::latest_files(store_.path(), live.trial);
  std::error_code error;
  if (!fs::exists(files.folder, error)) return {};
  live.stop_asked = true;
  return write_file(files.stop(), reason + "\n");
}

Status Tuner::look_at_running() {
  for (auto& [job, live] : live_) {
    if (!over_.empty()) {
      TRY(ask_to_stop(live, std::string(kBudgetReason) + over_));
      continue;
    }
    if (live.stop_asked || !live.reader) continue;
    const Curve curve = continued(before(job), live.reader->read()).curve;
    if (const auto stop = stop_of(job, curve, live.looked_at)) TRY(ask_to_stop(live, stop->reason));
    live.looked_at = curve.points.size();
  }
  return {};
}

Result<std::optional<study::TrialRow>> Tuner::next_trial() {
  const std::size_t k = jobs_.size(), known_now = known();
  std::size_t seen = seen_at_.empty() ? 0 : seen_at_.back();
  seen = std::max(seen, k + 1 > options_.width ? k + 1 - options_.width : 0);
  if (seen > known_now) return std::optional<study::TrialRow>();
  Walk walk = method_.walk(history(k, seen));
  while (walk.next == Walk::Next::kWait && seen < known_now)
    walk = method_.walk(history(k, ++seen));
  if (walk.next == Walk::Next::kWait) return std::optional<study::TrialRow>();
  if (walk.next == Walk::Next::kSample) {
    walk.request.values = TRY(options_.sample(history(k, seen), walk.request.config - 1));
    walk.next = Walk::Next::kRun;
  }
  if (walk.next != Walk::Next::kRun) {
    done_ = known_now == k;  // what runs yet may still be better
    return std::optional<study::TrialRow>();
  }
  make_room();
  const auto all = static_cast<std::int64_t>(TRY(store_.trials()).size());
  const std::int64_t id = TRY(store_.add(trial_of(walk.request, all + 1)));
  job_of_[id] = k;
  jobs_.push_back({walk.request});
  seen_at_.push_back(seen);
  ++attempts_[k];
  auto row = TRY(store_.trial(id));
  TRY(take_up(k, row));
  return std::optional(std::move(row));
}

void Tuner::check_budget() {
  const TuneBudget& budget = options_.budget;
  if (!over_.empty() || (budget.seconds == 0 && budget.steps == 0 && budget.money == 0)) return;
  const Spent now = spent();
  if (budget.seconds > 0 && now.seconds >= budget.seconds)
    over_ = fmt::format("the {:.6g} s of trials are used up", budget.seconds);
  if (budget.steps > 0 && now.steps >= budget.steps)
    over_ = fmt::format("the {:.6g} steps are used up", budget.steps);
  if (budget.money > 0 && now.gpu_hours * budget.price_of_gpu_hour >= budget.money)
    over_ = fmt::format("the money, {:.6g}, is used up", budget.money);
}

void Tuner::tell_decisions() {
  const std::vector<Decision> decisions = walk().decisions;
  for (; told_ < decisions.size(); ++told_) options_.decided(decisions[told_]);
}

Result<study::Feed> Tuner::feed() {
  study::Feed feed;
  const bool news = TRY(ended_rows(feed.trials));
  check_budget();
  TRY(look_at_running());
  while (over_.empty() && !done_ && live_.size() < options_.width) {
    auto row = TRY(next_trial());
    if (!row) break;
    feed.trials.push_back(std::move(*row));
  }
  if (news) tell_decisions();
  feed.finished = done_ || !over_.empty();
  return feed;
}

Walk Tuner::walk() const {
  Walk walk = method_.walk(history(jobs_.size(), known()));
  if (walk.choice) return walk;
  for (const Job& job : jobs_) {
    if (!job.outcome || job.request.stage == "batch" || !job.outcome->best()) continue;
    if (walk.choice && *walk.choice->score >= *job.outcome->best()) continue;
    walk.choice = Choice{job.request.values, job.outcome->best(), job.outcome->trial};
  }
  return walk;
}

Spent Tuner::spent() const {
  Spent spent;
  spent.trials = static_cast<std::int64_t>(job_of_.size());
  spent.seconds = other_seconds_;
  const auto gpus = study::as_number(store_.study().resources.gpus).value_or(0);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto running = live_.find(i);
    if (jobs_[i].outcome) {
      const Outcome& outcome = *jobs_[i].outcome;
      spent.seconds += outcome.wall_s;
      spent.restarted += outcome.restarted ? 1 : 0;
      const double earlier = outcome.restarted ? 0 : before(i).last_step();
      spent.steps += std::max(outcome.curve.last_step() - earlier, 0.0);
    } else if (running != live_.end() && running->second.reader) {
      const Curve& curve = const_cast<CurveReader&>(*running->second.reader).read();
      if (curve.marks.empty()) continue;
      spent.seconds += curve.marks.back().seconds;
      spent.steps += std::max(curve.last_step() - before(i).last_step(), 0.0);
    }
  }
  spent.gpu_hours = spent.seconds / kSecondsAnHour * gpus;
  for (const Decision& decision : walk().decisions) spent.saved_s += decision.saved_s;
  return spent;
}

fs::path Tuner::checkpoints(std::size_t job) const {
  const auto row = std::ranges::find_if(job_of_, [&](const auto& e) { return e.second == job; });
  const std::int64_t own = row == job_of_.end() ? 0 : row->first;
  const std::int64_t config = jobs_[job].request.config > 0 ? jobs_[job].request.config : own;
  return checkpoint_folder(store_.path()) / std::to_string(config);
}

/// Before another trial begins: checkpoints that nothing goes on from go, and where the rest takes
/// more than it may, or the disk is nearly full, those of the worst; such a trial begins anew.
void Tuner::make_room() const {
  std::vector<Checkpoint> all;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const bool needed = jobs_[i].request.config > 0 || jobs_[i].request.stage == "final";
    const auto& outcome = jobs_[i].outcome;
    if (!outcome) continue;
    const bool may_go_on = needed && outcome->end == End::kReached;
    const fs::path folder = checkpoints(i);
    std::erase_if(all, [&](const Checkpoint& c) { return c.folder == folder; });
    all.push_back({folder, outcome->best().value_or(-INFINITY), may_go_on, false});
  }
  for (Checkpoint& one : all) {
    for (const auto& [job, live] : live_) one.in_use = one.in_use || checkpoints(job) == one.folder;
  }
  free_checkpoints(all, options_.checkpoint_bytes);
}

void Tuner::clean(std::int64_t keep) const {
  const auto kept = job_of_.find(keep);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (kept != job_of_.end() && checkpoints(i) == checkpoints(kept->second)) continue;
    std::error_code ignored;
    fs::remove_all(checkpoints(i), ignored);
  }
}

fs::path checkpoint_folder(const fs::path& store) { return store.string() + ".checkpoints"; }

}  // namespace stoker::tune
