#include "study/expectation/forecast_guide.h"

#include <gtest/gtest.h>

#include "study/expectation/verdict.h"

namespace stoker::study {
namespace {

Study matrix() {
  Study s;
  s.command = {"train"};
  s.axes = {{{"workers"}, {{"0"}, {"2"}, {"4"}}}, {{"batch"}, {{"32"}, {"64"}}}};
  s.metrics = {{"samples_per_s"}};
  s.budget.price_of_gpu_hour = 2;
  s.resources.gpus = "1";
  return s;
}

/// Forecast: `rate` samples a second and so many seconds, give or take a tenth.
TrialRow row(std::int64_t id, const std::string& workers, const std::string& batch, double rate,
             double seconds) {
  TrialRow r{id, {{workers, batch}}};
  for (const auto& [name, value] :
       {std::pair{std::string("samples_per_s"), rate}, {"wall_s", seconds}, {"gpu_watts", 200.0}}) {
    r.forecast[name] = value;
    r.forecast[name + "_low"] = value / 1.1;
    r.forecast[name + "_high"] = value * 1.1;
  }
  return r;
}

TrialRow done(TrialRow r, double rate, double seconds) {
  r.state = TrialState::kDone;
  r.metrics["samples_per_s"] = rate;
  r.wall_s = seconds;
  return r;
}

GuideOptions pruning() { return {Order::kAsWritten, GuideOptions::Prune::kBeaten, 2}; }

TEST(ForecastGuide, ForetellsTimeMoneyAndEnergy) {
  const Study s = matrix();
  const ForecastGuide guide(s, {row(1, "0", "32", 10, 3600), row(2, "2", "32", 20, 1800)},
                            {Order::kAsWritten, GuideOptions::Prune::kNothing, 2});
  const Outlook view = guide.outlook();
  EXPECT_EQ(view.trials, 2);
  EXPECT_DOUBLE_EQ(view.trial_s->value, 5400);
  EXPECT_DOUBLE_EQ(view.elapsed_s->value, 3600);  // the longest, beside which the other ends
  EXPECT_DOUBLE_EQ(view.gpu_hours->value, 1.5);
  EXPECT_DOUBLE_EQ(view.money->value, 3);
  EXPECT_NEAR(view.kwh->value, 0.3, 1e-9);
  EXPECT_LT(view.money->low, 3);
}

TEST(ForecastGuide, LeavesOutWhatIsCertainToBeSlower) {
  const Study s = matrix();
  std::vector<TrialRow> rows{row(1, "0", "32", 100, 100), row(2, "2", "32", 400, 25),
                             row(3, "4", "32", 410, 24), row(4, "0", "64", 110, 90),
                             row(5, "2", "64", 420, 24)};
  ForecastGuide guide(s, rows, pruning());
  EXPECT_FALSE(guide.leave_out(rows[3]).has_value());  // nothing is done yet
  guide.ended(done(rows[1], 390, 26));
  guide.ended(done(rows[0], 98, 101));
  EXPECT_FALSE(guide.leave_out(rows[3]).has_value());  // two say too little
  guide.ended(done(rows[2], 405, 25));
  const auto why = guide.leave_out(rows[3]);
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->find("certain to be slower than trial 3"), std::string::npos) << *why;
  EXPECT_FALSE(guide.leave_out(rows[4]).has_value());
}

TEST(ForecastGuide, WhatIsLearntIsNotTradedForPace) {
  Study s = matrix();
  s.metrics = {{"accuracy"}};
  std::vector<TrialRow> rows{row(1, "2", "64", 400, 25), row(2, "4", "64", 410, 24),
                             row(3, "2", "32", 300, 30), row(4, "0", "32", 100, 100),
                             row(5, "0", "64", 100, 100)};
  ForecastGuide guide(s, rows, pruning());
  for (std::size_t i : {0, 1, 2}) guide.ended(done(rows[i], i == 2 ? 300 : 400, 25));
  EXPECT_TRUE(guide.leave_out(rows[3]).has_value());  // by trial 3, which learns the same
  rows[3].trial.seed = 1;
  const ForecastGuide other(s, rows, pruning());
  EXPECT_EQ(other.outlook().trials, 5);
}

TEST(ForecastGuide, TheCheapestComesFirst) {
  Study s = matrix();
  std::vector<TrialRow> rows{row(1, "0", "32", 10, 300), row(2, "2", "32", 20, 100),
                             row(3, "4", "32", 20, 200)};
  ForecastGuide guide(s, rows, {Order::kCheapest});
  std::deque<TrialRow> waiting(rows.begin(), rows.end());
  guide.arrange(waiting);
  EXPECT_EQ(waiting[0].id, 2);
  EXPECT_EQ(waiting[1].id, 3);
  EXPECT_EQ(waiting[2].id, 1);
}

TEST(ForecastVerdict, TellsWhatForecastsWereGoodFor) {
  std::vector<TrialRow> rows{done(row(1, "0", "32", 100, 100), 50, 200),
                             done(row(2, "2", "32", 100, 100), 50, 200), row(3, "4", "32", 9, 500),
                             row(4, "4", "64", 9, 500)};
  rows[1].corrected = {
      {"samples_per_s", 52}, {"samples_per_s_low", 48}, {"samples_per_s_high", 56}};
  rows[2].state = rows[3].state = TrialState::kNotRun;
  rows[2].cause = kDominated;
  rows[3].cause = kDoesNotFit;
  const ForecastVerdict v = verdict_of(rows);
  ASSERT_EQ(v.matches.size(), 2u);
  EXPECT_DOUBLE_EQ(v.matches[0].ratio, 0.5);
  EXPECT_DOUBLE_EQ(v.matches[0].error, 1);
  EXPECT_EQ(v.matches[0].inside, 0);
  EXPECT_EQ(v.matches[0].corrected_inside, 1);
  EXPECT_NEAR(v.matches[0].corrected_error, 0.04, 1e-9);
  EXPECT_EQ(v.not_fitting, 1);
  EXPECT_EQ(v.dominated, 1);
  EXPECT_DOUBLE_EQ(v.saved_s->value, 500);
  EXPECT_DOUBLE_EQ(v.spent_s, 400);
}

}  // namespace
}  // namespace stoker::study
