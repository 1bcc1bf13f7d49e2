#include "study/controller/controller.h"

#include <algorithm>
#include <ctime>
#include <deque>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "study/definition/trials.h"
#include "study/executor/outcome.h"
#include "study/trial/no_writing.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

constexpr double kWaitSeconds = 0.25;  // a wish is heard so soon

double clock_now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// One run of a controller over a study.
class Controller {
 public:
  Controller(Store& store, Executor& executor, const ControllerOptions& options)
      : store_(store), executor_(executor), options_(options) {}

  Result<RunSummary> run() {
    TRY(recover());
    for (const TrialRow& row : TRY(store_.trials(TrialState::kWaiting))) waiting_.push_back(row);
    TRY(begun());
    if (options_.guide != nullptr) options_.guide->arrange(waiting_);
    bool cancelled = false;
    for (;;) {
      const Wish wish = options_.wish();
      if (wish == Wish::kLeave) return stopped("left; trials that run go on");
      if (wish == Wish::kCancel && !cancelled) executor_.cancel_all();
      cancelled = cancelled || wish == Wish::kCancel;
      if (wish != Wish::kGoOn && summary_.stopped.empty()) summary_.stopped = "interrupted";
      if (summary_.stopped.empty()) summary_.stopped = TRY(over_budget());
      if (summary_.stopped.empty()) TRY(take_feed());
      if (summary_.stopped.empty()) TRY(start_some());
      const bool no_more = waiting_.empty() && fed_;
      if (active_.empty() && (no_more || !summary_.stopped.empty())) break;
      for (const TrialNews& news : TRY(executor_.news(kWaitSeconds))) TRY(take(news));
    }
    summary_.complete = waiting_.empty() && fed_ && !cancelled;
    return summary_;
  }

 private:
  Result<RunSummary> stopped(std::string why) {
    summary_.stopped = std::move(why);
    return summary_;
  }

  /// Trials that an earlier controller handed over.
  Status recover() {
    for (const TrialState state :
         {TrialState::kSubmitted, TrialState::kRunning, TrialState::kPaused}) {
      for (const TrialRow& row : TRY(store_.trials(state))) {
        const TrialFiles files = latest_files(store_.path(), row.id);
        const auto command = command_of(store_.study(), row.trial, row.id, files.folder.string());
        executor_.adopt(row, files, command ? command->needs : Needs{});
        active_[row.id] = row;
        if (command) active_gpus_[row.id] = command->needs.gpus;
      }
    }
    return {};
  }

  Status take_feed() {
    const Feed feed = TRY(options_.feed());
    fed_ = feed.finished;
    waiting_.insert(waiting_.end(), feed.trials.begin(), feed.trials.end());
    summary_.stopped = feed.stopped;
    if (!feed.stopped.empty()) executor_.take_back();
    return {};
  }

  Status begun() {
    if (const auto before = TRY(store_.noted("begun"))) {
      earlier_ = std::max(0.0, now_seconds() - std::strtod(before->c_str(), nullptr));
      return {};
    }
    return store_.note("begun", std::to_string(now_seconds()));
  }

  /// Since the study began, by a clock that nobody sets as far as this run goes.
  [[nodiscard]] double elapsed() const { return earlier_ + clock_now() - started_; }

  Status start_some() {
    const auto most = static_cast<std::size_t>(options_.at_most);
    std::size_t passed_over = 0;
    while (passed_over < waiting_.size() && (most == 0 || active_.size() < most)) {
      if (options_.wish() != Wish::kGoOn) break;
      TrialRow row = waiting_.front();
      waiting_.pop_front();
      const TrialFiles files = latest_files(store_.path(), row.id);
      const auto command = command_of(store_.study(), row.trial, row.id, files.folder.string());
      if (!command) {
        TRY(refuse(row, command.error().text()));
        continue;
      }
      if (const auto never = executor_.impossible(command->needs)) {
        TRY(refuse(row, *never));
        continue;
      }
      if (const auto needless = left_out(row)) {
        TRY(store_.corrected(row.id, options_.guide->expected(row)));
        TRY(refuse(row, *needless, kDominated));
        continue;
      }
      if (!executor_.has_room(command->needs)) {
        // A smaller one behind it may fit; the order among equals stays.
        later_.push_back(std::move(row));
        if (++passed_over > kLookAhead) break;
        continue;
      }
      TRY(start(std::move(row), files, *command));
    }
    waiting_.insert(waiting_.begin(), later_.begin(), later_.end());
    later_.clear();
    return hand_over();
  }

  /// What was gathered goes to the executor. What it refuses waits again.
  Status hand_over() {
    const Status flushed = executor_.flush();
    for (const auto& [id, job] : executor_.take_names()) {
      TRY(store_.named(id, job));
      std::erase(gathered_, id);
    }
    const std::vector<std::int64_t> refused = flushed ? std::vector<std::int64_t>() : gathered_;
    gathered_.clear();
    for (const std::int64_t id : refused) {
      TRY(Claim::withdraw(latest_files(store_.path(), id)));
      TRY(store_.withdrawn(id, flushed.error().text()));
      active_.erase(id);
    }
    return flushed;
  }

  /// Attempts at one trial find what those before them kept; the name is of the first.
  Result<std::string> checkpoints_of(const TrialRow& row) {
    std::int64_t first = row.id;
    for (auto before = row.retry_of; before; before = TRY(store_.trial(first)).retry_of)
      first = *before;
    return files_of(store_.path(), first).folder.filename().string() + "-checkpoints";
  }

  [[nodiscard]] std::optional<std::string> left_out(const TrialRow& row) const {
    return options_.guide == nullptr ? std::nullopt : options_.guide->leave_out(row);
  }

  Status refuse(TrialRow& row, const std::string& why, const std::string& cause = "") {
    TRY(store_.not_run(row.id, why, cause));
    row.state = TrialState::kNotRun;
    row.reason = why;
    row.cause = cause;
    if (options_.guide != nullptr) options_.guide->ended(row);
    options_.progress(row);
    return {};
  }

  Status start(TrialRow row, const TrialFiles& files, const TrialCommand& command) {
    std::error_code error;
    fs::create_directories(files.folder, error);
    if (error) return no_writing("made", files.folder, error.value());
    const Study& study = store_.study();
    TrialSpec spec;
    spec.trial = row.id;
    spec.words = command.words;
    spec.environment = command.environment;
    spec.folder = command.folder;
    spec.needs = command.needs;
    spec.metrics = study.metrics;
    spec.output_bytes = study.output_bytes;
    spec.checkpoints = TRY(checkpoints_of(row));
    if (options_.guide != nullptr) TRY(store_.corrected(row.id, options_.guide->expected(row)));
    // Written down before it is done: what dies in between is found again by its claim.
    TRY(store_.submitted(row.id, ""));
    auto job = executor_.start(row.id, files, spec);
    if (!job) {
      // Nothing was started, and nothing may start later.
      TRY(Claim::withdraw(files));
      TRY(store_.withdrawn(row.id, job.error().text()));
      return tl::unexpected(job.error());
    }
    row.state = TrialState::kSubmitted;
    row.job = *job;
    if (job->empty()) gathered_.push_back(row.id);
    active_gpus_[row.id] = command.needs.gpus;
    active_[row.id] = std::move(row);
    return {};
  }

  Status take(const TrialNews& news) {
    const auto found = active_.find(news.trial);
    if (found == active_.end()) return {};
    TrialRow& row = found->second;
    switch (news.kind) {
      case TrialNews::Kind::kRunning:
        TRY(store_.running(news.trial, news.host));
        row.state = TrialState::kRunning;
        options_.progress(row);
        return {};
      case TrialNews::Kind::kRequeued:
        return {};
      case TrialNews::Kind::kWithdrawn:
        TRY(store_.withdrawn(news.trial, news.why));
        row.state = TrialState::kWaiting;
        waiting_.push_front(std::move(row));
        active_.erase(found);
        return {};
      case TrialNews::Kind::kEnded:
        break;
    }
    TRY(store_.ended(news.trial, news.result));
    row.state = news.result.state;
    row.cause = news.result.cause;
    row.reason = news.result.reason;
    row.wall_s = news.result.wall_s;
    row.metrics = news.result.metrics;
    row.resources = news.result.resources;
    if (options_.guide != nullptr) {
      options_.guide->ended(row);
      options_.guide->arrange(waiting_);
    }
    options_.progress(row);
    ++summary_.ended;
    gpu_seconds_ += news.result.wall_s * active_gpus_[news.trial];
    const TrialRow ended = std::move(row);
    active_.erase(found);
    const bool once_more = options_.again(ended);
    if (!once_more) failures_ = ended.state == TrialState::kFailed ? failures_ + 1 : 0;
    if (once_more) waiting_.push_back(TRY(store_.trial(TRY(store_.retry(ended.id)))));
    return {};
  }

  Result<std::string> over_budget() {
    const Budget& budget = store_.study().budget;
    if (budget.failures > 0 && failures_ >= budget.failures)
      return std::to_string(failures_) + " trials in a row failed";
    if (budget.seconds > 0 && elapsed() > budget.seconds)
      return "the time of " + human_time(Nanos(budget.seconds * 1e9)) + " is used up";
    if (budget.gpu_hours == 0 && budget.money == 0) return std::string();
    const double hours = TRY(gpu_hours());
    if (budget.gpu_hours > 0 && hours >= budget.gpu_hours)
      return std::string("GPU-hours are used up");
    if (budget.money > 0 && hours * budget.price_of_gpu_hour >= budget.money)
      return std::string("the money is used up");
    return std::string();
  }

  /// GPU-hours of all trials that ended, in this run and before.
  Result<double> gpu_hours() {
    if (!counted_) {
      counted_ = true;
      for (const TrialRow& row : TRY(store_.trials())) {
        if (!is_final(row.state) || !row.wall_s) continue;
        const auto command = command_of(store_.study(), row.trial, row.id, "");
        if (command) gpu_seconds_ += *row.wall_s * command->needs.gpus;
      }
    }
    return gpu_seconds_ / kSecondsAnHour;
  }

  static constexpr std::size_t kLookAhead = 64;

  Store& store_;
  Executor& executor_;
  const ControllerOptions& options_;
  std::deque<TrialRow> waiting_, later_;
  std::map<std::int64_t, TrialRow> active_;
  std::map<std::int64_t, int> active_gpus_;
  std::vector<std::int64_t> gathered_;  ///< started, and not named by the executor yet
  RunSummary summary_;
  double started_ = clock_now(), earlier_ = 0, gpu_seconds_ = 0;
  std::int64_t failures_ = 0;
  bool counted_ = false, fed_ = true;
};

}  // namespace

Result<RunSummary> run_study(Store& store, Executor& executor, const ControllerOptions& options) {
  return Controller(store, executor, options).run();
}

}  // namespace stoker::study
