#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/outside/wishes.h"
#include "cli/verbs/study_arguments.h"
#include "cli/verbs/study_executor.h"
#include "cli/verbs/study_pages.h"
#include "cli/verbs/trial_forecast.h"
#include "cli/verbs/verbs.h"
#include "report/study/study_page.h"
#include "study/controller/controller.h"
#include "study/definition/study_json.h"
#include "study/definition/template.h"
#include "study/expectation/forecast_guide.h"
#include "study/expectation/verdict.h"
#include "study/findings/selection.h"
#include "study/store/controller_lock.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

/// Causes that --retry takes beside states: what befell a trial rather than what it did.
constexpr std::string_view kCauses[] = {"lost",    "node_failure",     "preempted",
                                        "evicted", study::kDoesNotFit, study::kDominated};
constexpr std::int64_t kAtMostInQueue = 20;  // the queue is everybody's
/// Causes of --retry that hold while a study runs, too, and attempts at a trial by that.
constexpr std::string_view kBefell[] = {"lost", "node_failure", "preempted", "evicted"};
constexpr int kMostAttempts = 5;

struct SweepArguments {
  SweepRequest request;
  StudyPlace place;
  std::vector<std::string> retry;
  std::string html;
  bool dry_run = false, json = false, quiet = false, prune = false;
};

/// How many trials run beside each other.
int at_a_time(const study::Study& study, const study::TrialValues& first, const SweepArguments& o) {
  if (o.place.is_cluster()) return static_cast<int>(o.place.at_most.value_or(kAtMostInQueue));
  const auto command = study::command_of(study, first, 1, "");
  return study::Slots(capacity_of(o.place)).at_a_time(command ? command->needs : study::Needs{});
}

study::GuideOptions guide_options(const study::Study& study, const study::TrialValues& first,
                                  const SweepArguments& o) {
  using Prune = study::GuideOptions::Prune;
  return {study.order, o.prune ? Prune::kBeaten : Prune::kNothing, at_a_time(study, first, o)};
}

/// What a study will take, as a line; with what to say for its time to be known.
std::string study_outlook(const study::Study& study, const study::Outlook& outlook) {
  const std::string text = outlook_text(outlook);
  if (!text.empty()) return "; they take " + text + "\n";
  const bool run = study.forecast.contains("epochs");
  return outlook.trials == 0 || run ? std::string("\n")
                                    : "; say epochs, and samples of the data set, for their time: "
                                      "--forecast epochs=3 --forecast samples=50000\n";
}

/// What is left, with the lines of trials: once a second, so that short ones are not held up by it.
class Remaining {
 public:
  explicit Remaining(const study::ForecastGuide& guide) : guide_(guide) {}
  std::string text() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == said_) return "";
    const std::string left = outlook_text(guide_.outlook());
    if (left.empty()) return left;
    said_ = now.tv_sec;
    return "; left: " + left;
  }

 private:
  const study::ForecastGuide& guide_;
  time_t said_ = 0;
};

/// Trials that were not started: rows as a store would hold them, and what each would run.
struct DryRun {
  std::vector<study::TrialRow> rows;
  std::vector<std::string> commands;  ///< as a shell would take them, by row
  std::vector<std::string> expected;  ///< a forecast's words, by row; empty: none was asked for
  ForecastTotal total;
};

Result<DryRun> dry_trials(const study::Study& study, const SweepArguments& o) {
  const auto trials = TRY(study::trials_of(study));
  const study::Slots slots(capacity_of(o.place));
  TrialForecaster forecaster(study);
  DryRun found;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    study::TrialRow row;
    row.id = static_cast<std::int64_t>(i) + 1;
    row.trial = trials[i];
    const auto command = TRY(study::command_of(study, trials[i], row.id, "FOLDER"));
    found.commands.push_back(study::shell_line(command.words));
    found.expected.emplace_back();
    const auto never = slots.impossible(command.needs);
    if (never) row.reason = *never;
    if (!study.forecast.empty()) {
      const TrialForecast forecast = TRY(forecaster.of(trials[i]));
      found.total.add(forecast);
      row.forecast = forecast.figures;
      found.expected.back() = forecast.text();
      if (!never && !forecast.fits) row.reason = forecast.reason, row.cause = study::kDoesNotFit;
    }
    if (!row.reason.empty()) row.state = study::TrialState::kNotRun;
    found.rows.push_back(std::move(row));
  }
  return found;
}

std::string dry_json(const study::Study& study, const DryRun& found) {
  study::StudyView view;
  view.study = study;
  view.axes = study::axis_names(study);
  view.rows = found.rows;
  for (const study::TrialRow& row : found.rows) ++view.counts[row.state];
  return planned_json(view, found.commands, STOKER_VERSION);
}

/// --dry-run: each trial with its command, or why it cannot run.
Result<int> dry_run(const study::Study& study, const SweepArguments& o) {
  DryRun found = TRY(dry_trials(study, o));
  if (o.json) {
    print(dry_json(study, found));
    return 0;
  }
  std::string lines;
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    const study::TrialRow& row = found.rows[i];
    const std::string& expected = found.expected[i];
    lines += std::to_string(row.id) + "  ";
    if (!row.reason.empty()) lines += "not run: " + row.reason + "\n";
    else lines += found.commands[i] + (expected.empty() ? "" : "  # " + expected) + "\n";
  }
  print(lines);
  const std::size_t all = found.rows.size();
  std::erase_if(found.rows, [](const study::TrialRow& row) { return !row.reason.empty(); });
  if (!study.forecast.empty()) {
    const auto first = TRY(study::trials_of(study)).front();
    const study::ForecastGuide guide(study, found.rows, guide_options(study, first, o));
    print("\n" + found.total.text() + study_outlook(study, guide.outlook()));
  }
  std::printf("\n%s of %s trials can run here; nothing was started\n",
              with_commas(static_cast<std::int64_t>(found.rows.size())).c_str(),
              with_commas(static_cast<std::int64_t>(all)).c_str());
  return 0;
}

/// Forecasts of trials that wait; those that cannot fit are not run. How many fit, as a line.
Result<std::string> forecast_all(study::Store& store) {
  if (store.study().forecast.empty()) return std::string();
  TrialForecaster forecaster(store.study());
  ForecastTotal total;
  const auto rows = TRY(store.full_trials());
  for (const study::TrialRow& row : rows) {
    if (row.state != study::TrialState::kWaiting) continue;
    const TrialForecast forecast = TRY(forecaster.of(row.trial));
    total.add(forecast);
    if (row.forecast.empty()) TRY(store.forecast(row.id, forecast.figures));
    if (!forecast.fits) TRY(store.not_run(row.id, forecast.reason, study::kDoesNotFit));
  }
  return total.text();
}

Result<study::Store> opened(const SweepStudy& asked) {
  if (!TRY(study::Store::exists(asked.store))) {
    if (!asked.study)
      return fail(ErrorCode::kNotFound, "there is no such study", asked.store.string());
    const auto trials = TRY(study::trials_of(*asked.study));
    // A forecast that cannot be meant is refused before there is a store that holds it.
    if (!asked.study->forecast.empty()) TRY(TrialForecaster(*asked.study).of(trials.front()));
    return study::Store::create(asked.store, *asked.study, trials);
  }
  auto store = TRY(study::Store::open(asked.store, study::Store::Access::kWrite));
  if (!asked.study || *asked.study == store.study()) return store;
  // Not in the error: where that is printed, {batch} becomes --batch, and here it is the user's
  // own.
  std::string lines;
  for (const std::string& line : study::differences(store.study(), *asked.study))
    lines += "  " + line + "\n";
  std::fputs(printable_lines("what was asked for is not what the store holds:\n" + lines).c_str(),
             stderr);
  return fail(ErrorCode::kBadInput,
              "holds another study, and a study does not change under its trials; give the new one "
              "a file of its own with --store",
              asked.store.string());
}

Status retry(study::Store& store, const std::vector<std::string>& states) {
  if (states.empty()) return {};
  for (const std::string& state : states) {
    const auto found = study::state_named(state);
    const bool cause = std::ranges::find(kCauses, state) != std::end(kCauses);
    if (!cause && (!found || !study::is_final(*found)))
      return fail(ErrorCode::kUsage,
                  "\"" + state +
                      "\" is no state in which a trial ends; use "
                      "failed, timed_out, out_of_memory, cancelled, not_run, lost, node_failure, "
                      "preempted, evicted or dominated",
                  "--retry");
  }
  const auto rows = TRY(store.trials());
  std::vector<bool> retried(rows.size() + 1);
  for (const study::TrialRow& row : rows) {
    if (row.retry_of) retried[static_cast<std::size_t>(*row.retry_of)] = true;
  }
  for (const study::TrialRow& row : rows) {
    if (!study::is_final(row.state) || retried[static_cast<std::size_t>(row.id)]) continue;
    for (const std::string& state : states) {
      if (state != name_of(row.state) && state != row.cause) continue;
      TRY(store.retry(row.id));
      break;
    }
  }
  return {};
}

/// Trials that lose their place while the study runs, by the causes that --retry names.
class Again {
 public:
  Again(const std::vector<study::TrialRow>& rows, const std::vector<std::string>& causes)
      : causes_(causes) {
    for (const study::TrialRow& row : rows) note(row);
  }
  bool operator()(const study::TrialRow& row) {
    note(row);
    return std::ranges::find(kBefell, row.cause) != std::end(kBefell) &&
           std::ranges::find(causes_, row.cause) != causes_.end() &&
           attempts_[row.id] < kMostAttempts;
  }

 private:
  void note(const study::TrialRow& row) {
    attempts_[row.id] = row.retry_of ? attempts_[*row.retry_of] + 1 : 1;
  }

  const std::vector<std::string>& causes_;
  std::map<std::int64_t, int> attempts_;
};

std::int64_t final_trials(const std::map<study::TrialState, std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const auto& [state, count] : counts) sum += study::is_final(state) ? count : 0;
  return sum;
}

Result<int> finish(const study::Store& store, const study::RunSummary& summary,
                   const SweepArguments& o) {
  auto view = TRY(study::select(store, {}));
  view.running_by.clear();  // this process, which is about to end
  // A study whose every trial failed, or could not be run, has measured nothing.
  const bool none_done = !view.counts.contains(study::TrialState::kDone);
  if (!o.html.empty())
    TRY(write_page(o.html, study_page(TRY(study_picture(store, view)), STOKER_VERSION)));
  if (o.json) {
    const study::Findings found = study::findings(view);
    print(study_json(view, STOKER_VERSION, &found));
  } else {
    print(study_text(view) + verdict_text(study::verdict_of(view.rows)));
    const auto failed = std::ranges::find(view.rows, study::TrialState::kFailed,
                                          [](const study::TrialRow& row) { return row.state; });
    if (summary.complete && none_done && failed != view.rows.end())
      std::printf("\n`stoker study %s --trial %lld` shows what one printed.\n",
                  store.path().c_str(), static_cast<long long>(failed->id));
    else if (summary.complete)
      std::printf("\n`stoker study %s --findings` says what they teach.\n", store.path().c_str());
    if (!summary.complete)
      std::printf("\nStopped: %s. `stoker sweep %s` goes on.\n", summary.stopped.c_str(),
                  store.path().c_str());
  }
  return summary.complete && !none_done ? 0 : 1;
}

/// Says which axes nothing takes: a trial may still read them from its trial.json.
void say_unused(const study::Study& study) {
  for (const std::string& name : study::unused_axes(study))
    say(stderr, name + " varies, and the command takes it nowhere: write {" + name +
                    "} where its value goes, as in --" + name + " {" + name + "}\n");
}

Result<int> run_sweep(const SweepArguments& o) {
  SweepStudy asked = TRY(sweep_study(o.request));
  if (o.prune && asked.study && asked.study->forecast.empty())
    return fail(ErrorCode::kUsage, "needs a forecast: --model MODEL", "--prune-by-forecast");
  if (o.dry_run) {
    if (!o.html.empty())
      return fail(ErrorCode::kUsage, "shows what trials measured; leave out --dry-run", "--html");
    if (!asked.study)
      asked.study = TRY(study::Store::open(asked.store, study::Store::Access::kRead)).study();
    const int code = TRY(dry_run(*asked.study, o));
    if (!o.quiet) say_unused(*asked.study);
    return code;
  }
  asked.store = fs::absolute(asked.store).lexically_normal();
  const auto lock = TRY(study::ControllerLock::take(asked.store));
  auto store = TRY(opened(asked));
  if (!o.quiet) say_unused(store.study());
  TRY(retry(store, o.retry));
  const std::string forecast = TRY(forecast_all(store));
  const auto counts = TRY(store.counts());
  std::int64_t all = 0, ended = final_trials(counts);
  for (const auto& [state, count] : counts) all += count;
  if (!o.quiet) say(stderr, counts_text(counts) + "\n");
  const auto rows = TRY(store.full_trials());
  study::ForecastGuide guide(store.study(), rows,
                             guide_options(store.study(), rows.front().trial, o));
  if (!o.quiet && !store.study().forecast.empty())
    say(stderr, forecast + study_outlook(store.study(), guide.outlook()));
  Remaining remaining(guide);
  Wishes wishes;
  study::ControllerOptions options;
  options.at_most =
      static_cast<int>(o.place.at_most.value_or(o.place.is_cluster() ? kAtMostInQueue : 0));
  options.wish = [&] { return wishes(); };
  options.progress = [&](const study::TrialRow& row) {
    if (study::is_final(row.state)) ++ended;
    if (!o.quiet)
      say(stderr, progress_line(store.study(), row, ended, all) +
                      (study::is_final(row.state) ? remaining.text() : "") + "\n");
  };
  Again again(rows, o.retry);
  options.again = [&](const study::TrialRow& row) {
    const bool once_more = again(row);
    all += once_more ? 1 : 0;
    return once_more;
  };
  options.guide = &guide;
  const auto executor = TRY(executor_for(store, o.place));
  const auto summary = TRY(study::run_study(store, *executor, options));
  return finish(store, summary, o);
}

}  // namespace

Command sweep_command() {
  auto o = std::make_shared<SweepArguments>();
  SweepRequest& r = o->request;
  Command command{
      "sweep",
      "run a command for every value of some settings, resumably, and keep what it measured",
      "Example: stoker sweep --vary batch=32,64,128 --vary workers=0..4 --metric accuracy -- "
      "python train.py --batch {batch} --workers {workers}\n"
      "         stoker sweep study.toml",
      {{"study-file", &r.file},
       {"vary", &r.vary},
       {"condition", &r.condition},
       {"exclude", &r.exclude},
       {"repeat", &r.repeat},
       {"seed", &r.seed},
       {"order", &r.order},
       {"metric", &r.metric},
       {"model", &r.model},
       {"gpu", &r.gpu},
       {"forecast", &r.forecast},
       {"env", &r.env},
       {"shell", &r.shell},
       {"cores", &r.cores},
       {"gpus", &r.gpus},
       {"memory", &r.memory},
       {"time", &r.time},
       {"grace", &r.grace},
       {"image", &r.image},
       {"store", &r.store},
       {"at-most", &o->place.at_most},
       {"share-gpu", &o->place.share_gpu},
       {"on", &o->place.on},
       {"dry-run", &o->dry_run},
       {"retry", &o->retry},
       {"quiet", &o->quiet},
       {"prune-by-forecast", &o->prune},
       {"html", &o->html},
       {"json", &o->json}},
      [o] { return run_sweep(*o); }};
  command.rest = &r.command;
  return command;
}

}  // namespace stoker::cli
