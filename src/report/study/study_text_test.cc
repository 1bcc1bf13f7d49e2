#include <gtest/gtest.h>

#include "json/text.h"
#include "report/model/tune_answers.h"
#include "report/model/tune_report.h"
#include "report/study/study_report.h"
#include "report/text/test_text.h"

namespace stoker {
namespace {

using study::Banded;
using study::StudyView;
using study::TrialRow;
using study::TrialState;
using testing_support::has;
using testing_support::on_one_line;

TrialRow row_of(std::int64_t id, std::string batch, TrialState state = TrialState::kDone) {
  TrialRow row;
  row.id = id;
  row.trial.values = {std::move(batch)};
  row.trial.seed = 40 + id;
  row.state = state;
  return row;
}

StudyView view_of(std::vector<TrialRow> rows) {
  StudyView view;
  view.axes = {"batch"};
  view.metrics = {"accuracy"};
  for (const TrialRow& row : rows) ++view.counts[row.state];
  view.rows = std::move(rows);
  return view;
}

TEST(StudyText, ARowHasWhatItsTrialCameTo) {
  TrialRow done = row_of(1, "64");
  done.metrics = {{"accuracy", 0.75}};
  done.resources = {{"cpu_cores", 3.5}, {"peak_bytes", 0x1p31}};
  done.wall_s = 90;
  done.forecast = {{"wall_s", 80}, {"wall_s_low", 60}, {"wall_s_high", 100}};
  StudyView view = view_of({done, row_of(2, "128", TrialState::kWaiting)});
  view.study.name = "my study";
  std::string text = on_one_line(study_text(view));
  EXPECT_TRUE(has(text, "my study: 2 trials: ")) << text;
  EXPECT_TRUE(has(text,
                  "trial batch state accuracy forecast wall_s cores memory time "
                  "1 64 done 0.75 80 s [60 s-100 s] 3.5 2.0 GiB 90 s "
                  "2 128 waiting - - - - - "))
      << text;
  view.running_by = "process 12 on node1";
  view.study.repeat = 2;
  text = on_one_line(study_text(view));
  EXPECT_TRUE(has(text, "; run by process 12 on node1 trial batch seed state")) << text;
  EXPECT_TRUE(has(text, " 1 64 41 done 0.75")) << text;
}

TEST(StudyText, ReasonsBeyondTenAreCounted) {
  const auto text_with = [](std::int64_t reasons) {
    std::vector<TrialRow> rows;
    for (std::int64_t id = 1; id <= reasons; ++id) {
      rows.push_back(row_of(id, "1", TrialState::kFailed));
      rows.back().reason = "reason " + std::to_string(id);
    }
    return study_text(view_of(std::move(rows)));
  };
  EXPECT_FALSE(has(text_with(10), "other reason"));
  EXPECT_TRUE(has(text_with(11), "  and 1 other reason: --csv has all\n"));
  EXPECT_TRUE(has(text_with(12), "  and 2 other reasons: --csv has all\n"));
}

TEST(TrialText, TellsEverythingOfOneTrial) {
  TrialRow row = row_of(7, "64", TrialState::kFailed);
  row.reason = "exit code 1";
  row.retry_of = 3;
  row.host = "node1";
  row.wall_s = 5;
  row.metrics = {{"loss", 0.5}};
  row.resources = {{"peak_bytes", 1024}};
  row.forecast = {{"samples_per_s", 390}};
  row.tail = "Traceback\n\x1b[2JKeyError";
  EXPECT_EQ(on_one_line(trial_text(view_of({row}), row, "python train.py --batch 64", "/s/000007")),
            "trial 7 batch=64 seed=47: failed, exit code 1 runs trial 3 again command python "
            "train.py --batch 64 folder /s/000007 ran 5.0 s on node1 metric loss = 0.5 resource "
            "peak_bytes = 1.0 KiB forecast samples_per_s = 390 its last lines Traceback "
            "?[2JKeyError ");
}

TEST(ProgressLine, SaysHowFarItIsAndWhatTheTrialCameTo) {
  study::Study study;
  study.axes = {study::Axis{{"batch"}, {{"64"}, {"128"}}}};
  TrialRow row = row_of(1, "64");
  EXPECT_EQ(progress_line(study, row, 3, 40), "3/40 done batch=64");
  row.metrics = {{"accuracy", 0.75}, {"loss", 1.25}};
  row.wall_s = 12.3;
  EXPECT_EQ(progress_line(study, row, 3, 40),
            "3/40 done batch=64: accuracy 0.75, loss 1.25 (12 s)");
  study.repeat = 2;
  row.metrics.clear();
  row.state = TrialState::kFailed;
  row.reason = "KeyError\nat line 3";
  EXPECT_EQ(progress_line(study, row, 3, 40),
            "3/40 failed batch=64 seed=41 (12 s): KeyError?at line 3");
}

TEST(GroupsText, MeansWithTheirDeviations) {
  const StudyView view = view_of({});
  const std::vector<study::Group> groups{{{"64"}, 3, 2, {{2, 0.5, 0.1}}}, {{"128"}, 1, 0, {{}}}};
  EXPECT_EQ(on_one_line(groups_text(view, {"batch"}, groups)),
            "batch trials done accuracy +- 64 3 2 0.5 0.1 128 1 0 - - +- is the standard deviation "
            "over trials ");
}

TEST(OutlookText, TimeGpuHoursMoneyAndEnergyWithTheirBands) {
  study::Outlook outlook;
  EXPECT_EQ(outlook_text(outlook), "") << "nothing waits";
  outlook.trials = 4;
  EXPECT_EQ(outlook_text(outlook), "") << "no trial's time is known";
  outlook.elapsed_s = Banded{720, 540, 900};
  EXPECT_EQ(outlook_text(outlook), "12 min 00 s [9 min 00 s-15 min 00 s]");
  outlook.at_a_time = 4;
  outlook.trial_s = Banded{2760, 2280, 3300};
  outlook.gpu_hours = Banded{0.77, 0.6, 0.9};
  outlook.money = Banded{3.1, 2.5, 3.7};
  outlook.kwh = Banded{0.21, 0.2, 0.3};
  EXPECT_EQ(
      outlook_text(outlook),
      "12 min 00 s [9 min 00 s-15 min 00 s] at 4 a time, 46 min 00 s [38 min 00 s-55 min 00 "
      "s] together, 0.77 [0.6-0.9] GPU-hours, cost 3.1 [2.5-3.7], 0.21 [0.2-0.3] kWh (boards, "
      "estimated)");
}

TEST(VerdictText, HowForecastsCameOutAndWhatTheySaved) {
  study::ForecastVerdict verdict;
  EXPECT_EQ(verdict_text(verdict), "");
  study::ForecastMatch match;
  match.figure = "samples_per_s";
  match.trials = 12;
  match.ratio = 0.93;
  match.error = 0.07;
  match.inside = 11;
  verdict.matches = {match};
  EXPECT_EQ(
      on_one_line(verdict_text(verdict)),
      "forecasts samples_per_s: measured is 0.93 of what was forecast (median of 12), which is "
      "off by 7 %; 11 of 12 lie in their bands ");
  verdict.matches[0].error = 3;
  EXPECT_TRUE(has(verdict_text(verdict), "off by a factor of 4;")) << "300 % says nothing any more";
  verdict.matches[0].corrected = 5;
  verdict.matches[0].corrected_inside = 4;
  verdict.matches[0].corrected_error = 0.02;
  verdict.matches[0].uncorrected_error = 0.3;
  EXPECT_TRUE(
      has(on_one_line(verdict_text(verdict)),
          "with what finished trials taught: off by 2 % in place of 30 % (median of 5), 4 in "
          "their bands"));
  verdict.matches.clear();
  verdict.not_fitting = 1;
  EXPECT_EQ(verdict_text(verdict), "\nsaved by forecast: 1 trial that does not fit\n");
  verdict.not_fitting = 2;
  verdict.dominated = 3;
  verdict.saved_s = Banded{300, 200, 400};
  verdict.spent_s = 900;
  EXPECT_EQ(on_one_line(verdict_text(verdict)),
            "saved by forecast: 2 trials that do not fit, and 3 that others are certain to beat, 5 "
            "min 00 s [3 min 20 s-6 min 40 s] of 20 min 00 s that all would have taken (25 %) ");
}

TuneReport search() {
  TuneReport r;
  r.axes = {"lr", "batch"};
  r.objective.metric = "accuracy";
  r.spent.trials = 7;
  r.spent.seconds = 600;
  r.store = "tune.db";
  return r;
}

TEST(TuneText, ASearchThatIsOverSaysWhatToTake) {
  TuneReport r = search();
  r.decisions = {{"lr 0.01", "best of 3", 0}, {"batch 64", "", 120}};
  r.choice = tune::Choice{{"0.01", "64"}, 0.8412, 5};
  r.command = "python train.py --lr 0.01";
  r.batch = BatchReport{64, 4, 0.01};
  EXPECT_EQ(on_one_line(tune_text(r)),
            "Decisions lr 0.01: best of 3 batch 64 (saved about 2 min 00 s) Spent 10 min 00 s in 7 "
            "trials Take lr 0.01, batch 64: accuracy 0.8412 (trial 5) python train.py --lr 0.01 "
            "Batch: 64 a device x 4 devices = 256 in all At another batch another rate: "
            "stoker.scale_batch(0.01, old=64, new=..., devices=4) has the rules ");
}

TEST(TuneText, OneThatEndedEarlySaysHowToGoOn) {
  TuneReport r = search();
  r.spent.restarted = 1;
  r.spent.saved_s = 60;
  r.over = "40 steps are used up";
  r.go_on = " --budget-steps 80";
  EXPECT_EQ(on_one_line(tune_text(r)),
            "Decisions none yet Spent 10 min 00 s in 7 trials, 1 of which began anew because there "
            "was no checkpoint to go on from; stopping early and not running saved about 60 s "
            "Stopped: 40 steps are used up. `stoker tune tune.db --budget-steps 80` goes on. ");
  r.choice = tune::Choice{{"0.01", "64"}, std::nullopt, 0};
  EXPECT_TRUE(has(tune_text(r), "Best so far lr 0.01, batch 64\n"));
}

TEST(RangeText, ARateOrWhyThereIsNone) {
  tune::RangeResult result;
  result.reason = "the loss does not fall";
  EXPECT_EQ(range_text(result, 1), "No suggestion: the loss does not fall\n");
  EXPECT_TRUE(json::parse(range_json(result, 1, "1"))->find("low")->is_null());
  result.low = 0.003;
  result.high = 0.02;
  result.steepest = 0.003;
  result.least = 0.2;
  result.runs = 1;
  std::string text = on_one_line(range_text(result, 1));
  EXPECT_TRUE(text.starts_with("Learning rate 0.003 to 0.02 ")) << text;
  EXPECT_TRUE(has(text, "1 of 1 run shows it: --repeat 3 would tell how far to trust it"));
  result.runs = 2;
  result.spread = 1.5;
  text = on_one_line(range_text(result, 3));
  EXPECT_TRUE(has(text, "2 of 3 runs show it; their steepest rates differ by a factor of 1.5"))
      << text;
}

TEST(GoodputText, TimeAndMoneyToALossAgainstTheBest) {
  GoodputReport report;
  report.model = "resnet50";
  report.gpu = "T4";
  report.noise_scale = 1000;
  tune::GoodputRow small{.batch = 32, .gpus = 1, .samples_per_s = 100, .cost_per_s = 1};
  tune::GoodputRow large{.batch = 1000, .gpus = 2, .samples_per_s = 390, .cost_per_s = 2};
  tune::GoodputRow unfit{.batch = 4000, .gpus = 2, .fits = false};
  report.found = tune::goodput({small, large, unfit}, 1000);
  // Time goes by (1 + B / 1000) / rate: 1.032 / 100 against 3 / 390.
  const std::string text = on_one_line(goodput_text(report));
  EXPECT_TRUE(has(text, "1 32 32 100 97 % x1.34 x1 ")) << text;
  EXPECT_TRUE(has(text, "2 1,000 2,000 390 33 % x1 x1.49 ")) << text;
  EXPECT_TRUE(has(text, "2 4,000 8,000 does not fit ")) << text;
  EXPECT_TRUE(has(text, "Soonest batch 1,000 on 2 GPUs (2,000 in all); ")) << text;
  EXPECT_TRUE(has(text, "Cheapest batch 32 on 1 GPU ")) << text;
  const auto json = json::parse(goodput_json(report, "1")).value();
  EXPECT_EQ(json["soonest"]["global_batch"].as_double(), 2000);
  EXPECT_EQ(json["cheapest"]["gpus"].as_integer(), 1);
  EXPECT_EQ(json["rows"][2]["fits"], false);
  report.found = tune::goodput({unfit}, 1000);
  EXPECT_TRUE(has(goodput_text(report), "None of them fits."));
  EXPECT_TRUE(json::parse(goodput_json(report, "1"))->find("soonest")->is_null());
}

}  // namespace
}  // namespace stoker
