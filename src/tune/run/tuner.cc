#include "tune/run/tuner.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/files.h"
#include "study/definition/values.h"
#include "study/executor/outcome.h"
#include "tune/method/greedy.h"
#include "tune/run/trial_jobs.h"

namespace stoker::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostAttempts = 3;
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
  std::map<std::size_t, const study::TrialRow*> latest;
  for (const study::TrialRow& row : rows) {
    const std::size_t job = job_of_.at(row.id);
    attempts_[job].push_back(row.id);
    if (!later.contains(row.id)) latest[job] = &row;
  }
  // In the order of jobs: each needs the outcomes before it. How many of them were seen when it was
  // asked for follows from the method alone.
  std::size_t seen = 0;
  for (std::size_t k = 0; k < jobs_.size(); ++k) {
    seen = std::max(seen, k + 1 > options_.width ? k + 1 - options_.width : 0);
    const auto waits = [&] { return method_.walk(history(k, seen)).next == Walk::Next::kWait; };
    while (seen < k && jobs_[seen].outcome && waits()) ++seen;
    seen_at_.push_back(seen);
    TRY(take_up(k, *latest.at(k)));
    TRY(take_ended());
  }
  for (const study::TrialRow& row : rows) {
    if (later.contains(row.id)) note_time_of(row);
  }
  return {};
}

Status Tuner::take_up(std::size_t job, const study::TrialRow& row) {
  if (study::is_final(row.state)) {
    ended_.push_back(row);
    return {};
  }
  Live& live = live_[job];
  live.trial = row.id;
  live.reader.emplace(reader_of(row.id));
  return {};
}

CurveReader Tuner::reader_of(std::int64_t trial) const {
  return {study::latest_files(store_.path(), trial), metric_, options_.objective};
}

Curve Tuner::before(std::size_t job, std::int64_t trial) const {
  const Request& request = jobs_[job].request;
  Curve curve;
  if (request.stage == "batch") return curve;  // a measurement, which is made anew
  for (std::size_t i = job; i-- > 0 && request.config != 0;) {
    if (jobs_[i].request.config != request.config || !jobs_[i].outcome) continue;
    curve = jobs_[i].outcome->curve;
    break;
  }
  for (const std::int64_t attempt : attempts_.at(job)) {
    if (attempt == trial) break;
    curve = continued(curve, reader_of(attempt).read()).curve;
  }
  return curve;
}

Curve Tuner::curve_of(std::size_t job, Live& live) const {
  if (!live.before) live.before = before(job, live.trial);
  return continued(*live.before, live.reader->read()).curve;
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

Result<std::optional<Power>> Tuner::power_of(const study::TrialRow& row) const {
  if (!options_.objective.energy_weight) return std::optional<Power>();
  if (auto measured = measured_power(row.resources)) return measured;
  if (!options_.power_forecast) return std::optional<Power>();
  return options_.power_forecast(row.trial);
}

Result<Outcome> Tuner::outcome_of(std::size_t job, const study::TrialRow& row) const {
  CurveReader reader = reader_of(row.id);
  const Request& request = jobs_[job].request;
  Outcome outcome;
  outcome.trial = row.id;
  outcome.wall_s = row.wall_s.value_or(0);
  outcome.end = end_of(row);
  outcome.reason = row.reason;
  outcome.silent = row.cause == "metric_absent";
  outcome.power = TRY(power_of(row));
  const Curve& read = reader.read();
  if (outcome.silent) outcome.told = reader.told();
  outcome.samples_per_s = rate_of(read, batch_of(store_.study(), request));
  if (const auto found = row.metrics.find("gpu_util"); found != row.metrics.end())
    outcome.utilisation = found->second > 1 ? found->second / 100 : found->second;
  const Curve earlier = before(job, row.id);
  Continued whole = continued(earlier, read);
  outcome.curve = std::move(whole.curve);
  outcome.restarted = whole.restarted;
  // A trial that paused and is there again has its points before the step where it paused.
  if (auto stop = stop_of(job, outcome.curve, 0)) {
    outcome.curve.points.resize(stop->points);
    outcome.end = stop->end;
    outcome.reason = stop->reason;
  } else if (row.cause == "metric_not_finite") {
    outcome.end = End::kDiverged;
  }
  const double found_trained = outcome.restarted ? 0 : earlier.last_step();
  outcome.steps = std::max(outcome.curve.last_step() - found_trained, 0.0);
  outcome.by_cost = options_.objective.by_cost() && request.stage != "batch";
  const auto& points = outcome.curve.points;
  if (outcome.by_cost && outcome.power && !points.empty() &&
      points.back().score >= *options_.objective.target)
    outcome.cost =
        cost_of(*outcome.power, points.back().seconds, *options_.objective.energy_weight);
  return outcome;
}

void Tuner::changed(const study::TrialRow& row) {
  if (study::is_final(row.state)) ended_.push_back(row);
}

/// Trials that ended since the last look; those that were interrupted are to be run again.
Result<bool> Tuner::take_ended() {
  const bool any = !ended_.empty();
  for (const study::TrialRow& row : ended_) {
    const std::size_t job = job_of_.at(row.id);
    live_.erase(job);
    if (was_interrupted(row)) {
      note_time_of(row);
      interrupted_.push_back(row);
    } else {
      jobs_[job].outcome = TRY(outcome_of(job, row));
    }
  }
  ended_.clear();
  return any;
}

void Tuner::note_time_of(const study::TrialRow& row) {
  const std::size_t job = job_of_.at(row.id);
  other_seconds_ += row.wall_s.value_or(0);
  const Curve earlier = before(job, row.id);
  const Continued whole = continued(earlier, reader_of(row.id).read());
  const double found_trained = whole.restarted ? 0 : earlier.last_step();
  other_steps_ += std::max(whole.curve.last_step() - found_trained, 0.0);
}

/// Trials that were interrupted begin again. What is lost again and again says something of its
/// settings, and counts as it ended.
Status Tuner::run_again(std::vector<study::TrialRow>& again) {
  for (const study::TrialRow& row : interrupted_) {
    const std::size_t job = job_of_.at(row.id);
    if (attempts_[job].size() >= kMostAttempts && is_lost(row)) {
      jobs_[job].outcome = TRY(outcome_of(job, row));
      continue;
    }
    // A measurement is made anew, and not gone on with.
    std::error_code ignored;
    if (jobs_[job].request.stage == "batch") fs::remove_all(checkpoints(job), ignored);
    const std::int64_t id = TRY(store_.retry(row.id));
    attempts_[job].push_back(id);
    job_of_[id] = job;
    again.push_back(TRY(store_.trial(id)));
    TRY(take_up(job, again.back()));
  }
  interrupted_.clear();
  return {};
}

Status Tuner::ask_to_stop(Live& live, const std::string& reason) const {
  if (live.stop_asked) return {};
  const study::TrialFiles files = study::latest_files(store_.path(), live.trial);
  std::error_code error;
  if (!fs::exists(files.folder, error)) return {};
  // On a full disk it is asked again at the next look, if there is room by then.
  live.stop_asked = write_file(files.stop(), reason + "\n").has_value();
  return {};
}

Status Tuner::look_at_running() {
  for (auto& [job, live] : live_) {
    if (!over_.empty()) {
      TRY(ask_to_stop(live, std::string(kBudgetReason) + over_));
      continue;
    }
    if (live.stop_asked || !live.reader) continue;
    const Curve curve = curve_of(job, live);
    if (const auto stop = stop_of(job, curve, live.looked_at)) TRY(ask_to_stop(live, stop->reason));
    else live.looked_at = curve.points.size();
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
  attempts_[k].push_back(id);
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

/// A trial that found the disk full is run again where removing checkpoints has made room; else the
/// search ends until its user has.
void Tuner::check_disk() {
  const auto full = std::ranges::find_if(interrupted_, found_disk_full);
  if (full == interrupted_.end() || !over_.empty()) return;
  make_room();
  const fs::path folder = checkpoint_folder(store_.path());
  if (++disk_full_ < kMostAttempts && has_room_for_another(folder)) return;
  over_ = fmt::format(
      "the disk is full that holds {} ({}). Nothing is lost: make room there, or let checkpoints "
      "take less, --checkpoint-space SIZE or --keep-checkpoints N, and go on",
      folder.string(), full->reason.empty() ? "reports may be missing" : full->reason);
}

Result<study::Feed> Tuner::feed() {
  study::Feed feed;
  const bool news = TRY(take_ended());
  check_budget();
  check_disk();
  if (over_.empty()) TRY(run_again(feed.trials));
  TRY(look_at_running());
  while (over_.empty() && !done_ && live_.size() < options_.width) {
    auto row = TRY(next_trial());
    if (!row) break;
    feed.trials.push_back(std::move(*row));
  }
  if (news) tell_decisions();
  feed.finished = done_ || !over_.empty();
  feed.stopped = over_;
  return feed;
}

Status Tuner::finish() {
  if (TRY(take_ended())) tell_decisions();
  return {};
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
  spent.steps = other_steps_;
  const auto gpus = study::as_number(store_.study().resources.gpus).value_or(0);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto running = live_.find(i);
    if (jobs_[i].outcome) {
      const Outcome& outcome = *jobs_[i].outcome;
      spent.seconds += outcome.wall_s;
      spent.restarted += outcome.restarted ? 1 : 0;
      spent.steps += outcome.steps;
    } else if (running != live_.end() && running->second.reader) {
      const Curve& curve = running->second.reader->read();
      if (curve.marks.empty()) continue;
      spent.seconds += curve.marks.back().seconds;
      spent.steps +=
          std::max(curve.last_step() - running->second.before.value_or(Curve{}).last_step(), 0.0);
    }
  }
  spent.gpu_hours = spent.seconds / kSecondsAnHour * gpus;
  for (const Decision& decision : walk().decisions) spent.saved_s += decision.saved_s;
  return spent;
}

}  // namespace stoker::tune
