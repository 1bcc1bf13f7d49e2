#include <algorithm>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/outside/wishes.h"
#include "cli/verbs/trial_forecast.h"
#include "cli/verbs/tune_answers.h"
#include "cli/verbs/tune_arguments.h"
#include "cli/verbs/tune_sampler.h"
#include "cli/verbs/verbs.h"
#include "json/text.h"
#include "report/tune/tune_page.h"
#include "study/definition/template.h"
#include "study/definition/values.h"
#include "study/findings/selection.h"
#include "study/store/controller_lock.h"
#include "tune/run/trial_jobs.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kArgumentsNote = "tune";
constexpr const char* kForecastNote = "tune_forecast";

/// With a store alone: what it says the search is, besides the budget and the place of this time.
Status arguments_of_store(TuneArguments& a) {
  if (!a.command.empty() || !a.batch.empty() || !a.lr.empty())
    return fail(ErrorCode::kUsage, "is a store, which says already what is tuned", a.file);
  const auto store = TRY(study::Store::open(a.file, study::Store::Access::kRead));
  const auto note = TRY(store.noted(kArgumentsNote));
  const auto stored = json::parse(note.value_or(""));
  if (!note || !stored)
    return fail(ErrorCode::kBadInput, "holds no search of stoker tune; `stoker study` shows it",
                a.file);
  arguments_from(*stored, a);
  a.store = a.file;
  return {};
}

/// The store of this search: new, or that of an earlier start of the same.
Result<study::Store> opened(TuneStudy& asked, TuneArguments& a, bool store_alone) {
  if (!TRY(study::Store::exists(asked.store))) {
    a.width = static_cast<std::int64_t>(asked.options.width);
    const std::string words = arguments_json(a).dump();
    auto store = TRY(study::Store::create(asked.store, asked.study, {}));
    TRY(store.note(kArgumentsNote, words));
    return store;
  }
  auto store = TRY(study::Store::open(asked.store, study::Store::Access::kWrite));
  const auto stored = TRY(store.noted(kArgumentsNote));
  const auto began_with = json::parse(stored.value_or(""));
  if (began_with && (*began_with)["width"].is_number() && !a.width)
    a.width = (*began_with)["width"].as_integer();
  if (a.width) asked.options.width = static_cast<std::size_t>(*a.width);
  const std::string words = arguments_json(a).dump();
  if (store_alone || stored == words) return store;
  return fail(ErrorCode::kBadInput,
              "holds another search, which does not change under its trials\n  " +
                  stored.value_or("a sweep") + " there\n  " + words +
                  " asked for\ngive the new one a file of its own with --store, or go on with that "
                  "one: stoker tune " +
                  asked.store.string(),
              asked.store.string());
}

std::optional<tune::Power> power_of(const TrialForecast& forecast) {
  const auto figure = [&](const char* name) {
    const auto found = forecast.figures.find(name);
    return found == forecast.figures.end() ? 0.0 : found->second;
  };
  const tune::Power power{figure("gpu_watts"), figure("gpu_watts_low"), figure("gpu_watts_high"),
                          forecast.power_limit_w};
  return power.watts > 0 ? std::optional(power) : std::nullopt;
}

json::Value power_json(const std::optional<tune::Power>& power) {
  if (!power) return {};
  return {
      {"watts", power->watts}, {"low", power->low}, {"high", power->high}, {"limit", power->limit}};
}

std::optional<tune::Power> power_from(const json::Value& stored) {
  if (!stored.is_object()) return std::nullopt;
  return tune::Power{stored["watts"].as_double(), stored["low"].as_double(),
                     stored["high"].as_double(), stored["limit"].as_double()};
}

/// Forecasts of the batches, once: a later stoker may foretell otherwise than the search began
/// with.
Status forecast_batches(study::Store& store, tune::GreedyOptions& greedy) {
  if (store.study().forecast.empty() || greedy.batches.empty()) return {};
  const auto noted = TRY(store.noted(kForecastNote));
  if (const auto stored = json::parse(noted.value_or("")); noted && stored) {
    for (const json::Value& one : *stored)
      greedy.forecast.push_back({one["batch"].as_string(), one["size"].as_double(),
                                 one["samples_per_s"].as_double(), one["busy"].as_double(),
                                 power_from(one["power"]), one["fits"].as_bool(),
                                 one["why"].as_string()});
    return {};
  }
  TrialForecaster forecaster(store.study());
  json::Value all = json::Value::array();
  for (const std::string& batch : greedy.batches) {
    tune::Request request;
    request.values = {batch};
    if (!greedy.rates.empty()) request.values.push_back(greedy.rates.front());
    const TrialForecast f = TRY(forecaster.of(tune::trial_of(request, 1)));
    tune::BatchFigure figure{batch,  std::stod(batch), f.samples_per_s.value, {}, power_of(f),
                             f.fits, f.reason};
    if (f.gpu_busy.value > 0) figure.utilisation = f.gpu_busy.value;
    all.push_back({{"batch", batch},
                   {"size", figure.batch},
                   {"samples_per_s", f.samples_per_s.value},
                   {"busy", figure.utilisation.value_or(0)},
                   {"power", power_json(figure.power)},
                   {"fits", f.fits},
                   {"why", f.reason}});
    greedy.forecast.push_back(std::move(figure));
  }
  return store.note(kForecastNote, all.dump());
}

/// A cluster that trials can be followed on: what they report is read while they run.
Status check_place(const study::Study& study, const study::Study& asked, const TuneArguments& a) {
  if (!a.cluster.empty() && !(study.slurm == asked.slurm && study.kubernetes == asked.kubernetes &&
                              study.resources == asked.resources))
    return fail(ErrorCode::kBadInput,
                "is not what the search began with, and its trials do not change; leave it out to "
                "go on, or give the new search a file of its own with --store",
                "--cluster " + a.cluster);
  if (a.place.on == "kubernetes" && study.kubernetes.claim.empty())
    return fail(ErrorCode::kUsage,
                "needs a volume claim that this machine sees as well, through which trials are "
                "followed, stopped and gone on with: claim = and mount = under [kubernetes] of "
                "--cluster FILE",
                "--on kubernetes");
  return {};
}

/// Power of a trial by forecast.
std::function<Result<std::optional<tune::Power>>(const study::TrialValues&)> power_forecast(
    const study::Store& store) {
  const auto forecaster = std::make_shared<TrialForecaster>(store.study());
  return [forecaster](const study::TrialValues& trial) -> Result<std::optional<tune::Power>> {
    return power_of(TRY(forecaster->of(trial)));
  };
}

/// The user's command with what was chosen: all data, and to its own end.
std::string command_with(const study::Study& study, const tune::Choice& choice) {
  tune::Request request;
  request.values = choice.values;
  request.stage = "final";
  const auto command = study::command_of(study, tune::trial_of(request, 1), 1, "FOLDER");
  return command ? study::shell_line(command->words) : "";
}

/// Batch and learning rate of the choice, or those that the command fixes.
std::optional<BatchReport> batch_report(const study::Study& study, const TuneReport& report) {
  if (!report.choice) return std::nullopt;
  const auto number_of = [&](std::initializer_list<std::string_view> names) {
    const auto& values = report.choice->values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::ranges::find(names, report.axes[i]) != names.end())
        return study::as_number(values[i]);
    }
    for (std::size_t i = 0; i < study.command.size(); ++i) {
      const std::string_view word = study.command[i];
      const std::size_t equals = word.find('=');
      if (!word.starts_with("--") ||
          std::ranges::find(names, word.substr(2, equals - 2)) == names.end())
        continue;
      if (equals != std::string_view::npos) return study::as_number(word.substr(equals + 1));
      if (i + 1 < study.command.size()) return study::as_number(study.command[i + 1]);
    }
    return std::optional<double>();
  };
  const auto batch = number_of({"batch", "batch_size", "batch-size", "bs"});
  if (!batch) return std::nullopt;
  const auto gpus = study::as_number(study.resources.gpus).value_or(0);
  return BatchReport{*batch, std::max(gpus, 1.0),
                     number_of({"lr", "learning_rate", "learning-rate"})};
}

TuneReport report_of(const study::Store& store, const TuneStudy& asked, const tune::Tuner& tuner,
                     const std::string& method) {
  TuneReport report;
  tune::Walk walk = tuner.walk();
  report.method = method;
  report.objective = asked.options.objective;
  report.axes = study::axis_names(store.study());
  report.decisions = std::move(walk.decisions);
  report.choice = std::move(walk.choice);
  report.spent = tuner.spent();
  report.problem = std::move(walk.problem);
  report.over = tuner.over();
  report.store = store.path().string();
  if (report.choice) report.command = command_with(store.study(), *report.choice);
  report.batch = batch_report(store.study(), report);
  return report;
}

/// Runs the search. Where its disk is too full for the store, it begins anew where it was as soon
/// as removing checkpoints has made room.
Result<study::RunSummary> run_search(study::Store& store, std::optional<tune::Tuner>& tuner,
                                     const tune::Method& method, const tune::TunerOptions& search,
                                     const StudyPlace& place) {
  constexpr int kMostStarts = 5;
  Wishes wishes;
  for (int start = 1;; ++start) {
    tuner.emplace(store, method, search);
    TRY(tuner->load());
    study::ControllerOptions options;
    options.wish = [&] { return wishes(); };
    options.feed = [&] { return tuner->feed(); };
    options.progress = [&](const study::TrialRow& row) { tuner->changed(row); };
    const auto executor = TRY(executor_for(store, place));
    auto summary = study::run_study(store, *executor, options);
    if (summary) TRY(tuner->finish());
    const bool full = !tune::has_room_for_another(tune::checkpoint_folder(store.path()));
    if (summary || start == kMostStarts || !full || !tuner->make_room()) return summary;
  }
}

Result<int> run_tune(TuneArguments& a) {
  if (!a.html.empty() && (a.lr_test || a.noise_scale))
    return fail(ErrorCode::kUsage, "is of a search; leave it out", "--html");
  if (a.lr_test) return lr_test(a);
  if (a.noise_scale) return goodput_answer(a);
  const bool store_alone = !a.file.empty();
  if (store_alone) TRY(arguments_of_store(a));
  TuneStudy asked = TRY(tune_study(a));
  const auto lock = TRY(study::ControllerLock::take(asked.store));
  auto store = TRY(opened(asked, a, store_alone));
  TRY(check_place(store.study(), asked.study, a));
  if (asked.is_greedy) TRY(forecast_batches(store, asked.greedy));
  std::unique_ptr<tune::Method> method;
  if (asked.is_greedy) method = std::make_unique<tune::Greedy>(asked.greedy);
  else method = std::make_unique<tune::Search>(asked.search);
  if (!asked.sampler.empty())
    asked.options.sample = python_sampler(asked.search, asked.sampler, store.path());
  asked.options.decided = [&](const tune::Decision& decision) {
    if (!a.quiet) say(stderr, decision_line(decision));
  };
  if (asked.options.objective.energy_weight && !store.study().forecast.empty())
    asked.options.power_forecast = power_forecast(store);
  std::optional<tune::Tuner> running;
  const auto summary = TRY(run_search(store, running, *method, asked.options, a.place));
  tune::Tuner& tuner = *running;
  TuneReport report = report_of(store, asked, tuner, a.method.empty() ? "greedy" : a.method);
  if (a.place.is_cluster()) report.go_on = " --on " + a.place.on;
  if (report.over.empty() && !summary.stopped.empty()) report.over = summary.stopped;
  if (report.over.empty() && report.problem.empty() && report.choice)
    tuner.clean(report.choice->trial);
  if (!a.html.empty()) {
    const auto view = TRY(study::select(store, {}));
    TRY(write_page(a.html,
                   tune_page(report, view, TRY(store.curves(asked.options.objective.metric)),
                             STOKER_VERSION)));
  }
  print(a.json ? tune_json(report, STOKER_VERSION) : tune_text(report));
  if (!report.problem.empty()) {
    std::fprintf(stderr, "stoker: %s\n", printable(report.problem).c_str());
    return 1;
  }
  return report.over.empty() && report.choice ? 0 : 1;
}

}  // namespace

Command tune_command() {
  auto a = std::make_shared<TuneArguments>();
  Command command{
      "tune",
      "the batch and the learning rate of a command, stopping early, with the reason of each step",
      "Example: stoker tune --batch 512..16384x2 --lr 1e-5..1e-1 --metric accuracy -- "
      "python train.py --batch {batch} --lr {lr}\n"
      "         stoker tune tune.db",
      joined({tune_identity(*a), tune_other(*a)}), [a] { return run_tune(*a); }};
  command.rest = &a->command;
  return command;
}

}  // namespace stoker::cli
