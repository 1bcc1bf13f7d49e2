#include "cli/verbs/tune_answers.h"

#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "cli/outside/output.h"
#include "cli/outside/wishes.h"
#include "cli/verbs/trial_forecast.h"
#include "report/model/tune_answers.h"
#include "report/study/study_report.h"
#include "study/definition/values.h"
#include "study/executor/local.h"
#include "study/executor/outcome.h"
#include "study/store/controller_lock.h"
#include "tune/curve/rate_range_reports.h"

namespace stoker::cli {
namespace {

constexpr double kLowest = 1e-7, kHighest = 10, kSteps = 100;
constexpr double kExactWhole = 0x1p53;

Result<SweepStudy> range_study(const TuneArguments& a) {
  SweepRequest request;
  request.metric = {"loss"};
  request.command = a.command;
  request.shell = a.shell;
  request.env = a.env;
  request.repeat = a.repeat.value_or(1);
  request.seed = a.seed;
  request.cores = a.cores;
  request.gpus = a.gpus;
  request.memory = a.memory;
  request.time = a.time;
  request.store = a.store.empty() ? "lr-test.db" : a.store;
  double low = kLowest, high = kHighest;
  if (!a.lr.empty()) {
    const auto dots = a.lr.find("..");
    low = study::as_number(a.lr.substr(0, dots)).value_or(0);
    high = dots == std::string::npos ? 0 : study::as_number(a.lr.substr(dots + 2)).value_or(0);
    if (!(low > 0) || !(high > low))
      return fail(ErrorCode::kUsage, "is no range of rates; write 1e-7..10", "--lr " + a.lr);
  }
  const double steps = a.probe_steps.value_or(kSteps);
  char words[100];
  std::snprintf(words, sizeof words, "STOKER_LR_TEST=%.10g:%.10g:%.0f", low, high, steps);
  request.env.emplace_back(words);
  SweepStudy made = TRY(sweep_study(request));
  // A loss that explodes is how such a run ends.
  made.study->metrics[0].needed = false;
  made.store = std::filesystem::absolute(made.store).lexically_normal();
  return made;
}

Result<std::vector<tune::RangeRun>> run_range(const TuneArguments& a) {
  SweepStudy asked = TRY(range_study(a));
  const auto lock = TRY(study::ControllerLock::take(asked.store));
  if (TRY(study::Store::exists(asked.store)))
    return fail(ErrorCode::kBadInput,
                "is there already; give this test a file of its own with --store",
                asked.store.string());
  auto store =
      TRY(study::Store::create(asked.store, *asked.study, TRY(study::trials_of(*asked.study))));
  Wishes wishes;
  study::ControllerOptions options;
  options.wish = [&] { return wishes(); };
  const auto executor = study::local_executor(study::this_capacity(), study::own_runner());
  TRY(study::run_study(store, *executor, options));
  std::vector<tune::RangeRun> runs;
  for (const study::TrialRow& row : TRY(store.trials())) {
    runs.push_back(tune::range_reports(study::latest_files(store.path(), row.id)));
    if (runs.back().empty())
      return fail(ErrorCode::kAnswerIsNo,
                  "trial " + std::to_string(row.id) + " (" + std::string(name_of(row.state)) +
                      (row.reason.empty() ? "" : ", " + printable(row.reason)) +
                      ") reported no lr and loss together: raise the rate by stoker.lr_ramp("
                      "optimizer), or read STOKER_LR_TEST and call stoker.report(lr=..., loss=...)",
                  "--lr-test");
  }
  return runs;
}

std::string with_no_commas(double whole) {
  return std::to_string(static_cast<std::int64_t>(whole));
}

Result<std::vector<double>> whole_numbers(const std::string& typed, const std::string& flag) {
  std::vector<double> all;
  for (const std::string& value : TRY(study::parse_values(typed))) {
    const auto number = study::as_number(value);
    if (!number || *number < 1 || *number != std::floor(*number) || *number > kExactWhole)
      return fail(ErrorCode::kUsage, "\"" + value + "\" is no whole number above 0", flag);
    all.push_back(*number);
  }
  return all;
}

}  // namespace

Result<int> lr_test(const TuneArguments& a) {
  if (a.points.empty() && a.command.empty())
    return fail(ErrorCode::kUsage, "needs a command, or --points FILE of runs that were made",
                "--lr-test");
  const auto runs = a.points.empty() ? TRY(run_range(a)) : TRY(tune::read_range_runs(a.points));
  const tune::RangeResult result = tune::range_test(runs);
  print(a.json ? range_json(result, runs.size(), STOKER_VERSION) : range_text(result, runs.size()));
  return result.low ? 0 : 1;
}

Result<int> goodput_answer(const TuneArguments& a) {
  if (a.model.empty() || a.gpu.empty() || a.batch.empty())
    return fail(ErrorCode::kUsage,
                "needs the throughput forecast: --model MODEL --gpu GPU --batch 64..4096x2",
                "--noise-scale");
  study::Study study;
  study.command = {"true"};
  study.forecast = {{"model", a.model}, {"gpu", a.gpu}};
  for (const std::string& typed : a.forecast) {
    const auto equals = typed.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::kUsage, "write NAME=VALUE: --forecast precision=amp-fp16",
                  "--forecast " + typed);
    study.forecast[typed.substr(0, equals)] = typed.substr(equals + 1);
  }
  study.axes = {{{"batch"}, {{"1"}}, {}, {}, ""}, {{"gpus"}, {{"1"}}, {}, {}, ""}};
  TrialForecaster forecaster(study);
  std::vector<tune::GoodputRow> rows;
  for (const double gpus : TRY(whole_numbers(a.gpus.empty() ? "1" : a.gpus, "--gpus"))) {
    for (const double batch : TRY(whole_numbers(a.batch, "--batch"))) {
      study::TrialValues trial;
      trial.values = {with_no_commas(batch), with_no_commas(gpus)};
      const TrialForecast f = TRY(forecaster.of(trial));
      rows.push_back({static_cast<std::int64_t>(batch), static_cast<int>(gpus), f.fits,
                      f.samples_per_s.value, a.price.value_or(0) * gpus / 3600});
    }
  }
  GoodputReport report{tune::goodput(std::move(rows), *a.noise_scale), *a.noise_scale, a.model,
                       a.gpu};
  print(a.json ? goodput_json(report, STOKER_VERSION) : goodput_text(report));
  return report.found.soonest ? 0 : 1;
}

}  // namespace stoker::cli
