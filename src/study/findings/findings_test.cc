#include "study/findings/findings.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::study {
namespace {

using Words = std::vector<std::string>;

StudyView view_of(Words axes, Words metrics) {
  StudyView view;
  view.axes = std::move(axes);
  view.metrics = std::move(metrics);
  return view;
}

void add(StudyView& view, Words values, std::map<std::string, double> metrics, double wall = 1,
         std::int64_t repetition = 0) {
  TrialRow row;
  row.id = static_cast<std::int64_t>(view.rows.size()) + 1;
  row.trial = {std::move(values), repetition, repetition};
  row.state = TrialState::kDone;
  row.metrics = std::move(metrics);
  row.wall_s = wall;
  view.rows.push_back(std::move(row));
}

TEST(Statistics, IntervalsAreStudents) {
  EXPECT_EQ(mean_interval({3}).low, std::nullopt);
  const MeanInterval m = mean_interval({1, 2, 3});
  EXPECT_DOUBLE_EQ(m.mean, 2);
  EXPECT_NEAR(*m.high - m.mean, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_FALSE(mean_interval({-1, 1, 0.5}).certain());
  EXPECT_TRUE(mean_interval({1, 1.1, 0.9, 1}).certain());
  EXPECT_NEAR(student_t(60), 2.000, 0.002);
  EXPECT_NEAR(student_t(120), 1.980, 0.002);
}

TEST(Statistics, LeastSquares) {
  const auto c = least_squares({{1, 1}, {1, 2}, {1, 3}}, {3, 5, 7}).value();
  EXPECT_NEAR(c[0], 1, 1e-9);
  EXPECT_NEAR(c[1], 2, 1e-9);
  EXPECT_FALSE(least_squares({{1, 1}, {1, 1}, {1, 1}}, {1, 2, 3}).has_value());
  EXPECT_FALSE(least_squares({{1, 1}}, {1}).has_value());
}

TEST(Effects, ArePairedWithWhatDiffersInNothingElse) {
  StudyView view = view_of({"batch", "model"}, {"samples_per_s"});
  // Models differ tenfold; in each, the larger batch is 1.5 times as fast.
  int i = 0;
  for (const double base : {10.0, 100.0, 1000.0}) {
    const std::string model = "m" + std::to_string(i++);
    add(view, {"32", model}, {{"samples_per_s", base}});
    add(view, {"64", model}, {{"samples_per_s", base * (i == 2 ? 1.51 : 1.5)}});
  }
  add(view, {"64", "alone"}, {{"samples_per_s", 1}});  // has no pair
  const auto found = effects(view, "samples_per_s");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].axis, "model");
  const AxisEffect& batch = found[1];
  EXPECT_EQ(batch.base, "32");
  ASSERT_EQ(batch.levels.size(), 1u);
  EXPECT_EQ(batch.levels[0].change.count, 3);
  EXPECT_NEAR(std::exp(batch.levels[0].change.mean), 1.5033, 1e-3);
  EXPECT_NEAR(std::exp(*batch.levels[0].change.low), 1.489, 1e-2);
  EXPECT_TRUE(batch.levels[0].change.certain());
  EXPECT_EQ(batch.levels[0].better, 3);
}

TEST(Effects, OfWhatCanBeNegativeAreDifferences) {
  StudyView view = view_of({"lr"}, {"score"});
  add(view, {"1"}, {{"score", -2}});
  add(view, {"2"}, {{"score", 3}});
  const auto found = effects(view, "score");
  EXPECT_FALSE(found[0].ratio);
  EXPECT_EQ(found[0].levels[0].change.mean, 5);
  EXPECT_EQ(found[0].levels[0].change.low, std::nullopt);
}

TEST(Effects, InteractionsAreToldWhenTheyExceedTheNoise) {
  StudyView view = view_of({"batch", "workers"}, {"samples_per_s"});
  const auto run = [&](const char* batch, const char* workers, double speed) {
    for (int r = 0; r < 2; ++r)
      add(view, {batch, workers}, {{"samples_per_s", speed * (r == 0 ? 1.01 : 0.99)}}, 1, r);
  };
  run("32", "1", 100), run("64", "1", 80), run("32", "8", 200), run("64", "8", 400);
  EXPECT_NEAR(noise(view, "samples_per_s")->relative, 0.01414, 1e-4);
  EXPECT_EQ(noise(view, "samples_per_s")->degrees, 4);
  const auto found = interactions(view, "samples_per_s");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].axis, "batch");
  EXPECT_EQ(found[0].best,
            (std::vector<std::pair<std::string, std::string>>{{"1", "32"}, {"8", "64"}}));
  EXPECT_NEAR(found[0].gain, 0.25, 1e-9);
}

std::vector<std::pair<double, double>> points(const std::function<double(double)>& law,
                                              const std::vector<double>& numbers) {
  std::vector<std::pair<double, double>> all;
  for (const double n : numbers) all.emplace_back(n, law(n));
  return all;
}

TEST(Scaling, TheLawsAreFoundAgain) {
  const ScalingLaw amdahl{100, 0.05, 0, 0}, full{100, 0.02, 0.001, 0};
  const auto one =
      fit_scaling(points([&](double n) { return amdahl.at(n); }, {1, 2, 4, 8})).value();
  EXPECT_NEAR(one.contention, 0.05, 1e-6);
  EXPECT_EQ(one.coherence, 0);
  EXPECT_NEAR(one.limit(), 2000, 1e-3);
  const auto two =
      fit_scaling(points([&](double n) { return full.at(n); }, {1, 2, 4, 8, 16, 32})).value();
  EXPECT_NEAR(two.contention, 0.02, 1e-6);
  EXPECT_NEAR(two.coherence, 0.001, 1e-6);
  EXPECT_NEAR(two.peak(), std::sqrt(0.98 / 0.001), 1e-2);
  EXPECT_FALSE(fit_scaling({{1, 10}, {2, 20}}).has_value());
  const auto linear = fit_scaling({{1, 10}, {2, 21}, {4, 44}}).value();
  EXPECT_EQ(linear.contention, 0);
}

TEST(Scaling, ACeilingHasAKnee) {
  const auto c =
      fit_ceiling(points([](double n) { return std::min(50 * n, 300.0); }, {1, 2, 4, 8, 12}))
          .value();
  EXPECT_NEAR(c.knee(), 6, 1e-9);
  EXPECT_NEAR(c.error, 0, 1e-9);
  EXPECT_FALSE(fit_ceiling(points([](double n) { return 50 * n; }, {1, 2, 4, 8})).has_value());
}

TEST(Scaling, StepsHaveAFixedPart) {
  const auto law =
      fit_batch(points([](double b) { return b / (0.01 + 0.001 * b); }, {8, 32, 128})).value();
  EXPECT_NEAR(law.fixed_s, 0.01, 1e-9);
  EXPECT_NEAR(law.half(), 10, 1e-6);
}

TEST(Findings, BestAndPareto) {
  StudyView view = view_of({"batch"}, {"accuracy", "odd"});
  add(view, {"32"}, {{"accuracy", 0.9}, {"odd", 1}}, 100);
  add(view, {"64"}, {{"accuracy", 0.8}, {"odd", 1}}, 50);
  add(view, {"128"}, {{"accuracy", 0.7}, {"odd", 1}}, 60);  // slower and worse than 64
  add(view, {"256"}, {{"accuracy", 0.6}, {"odd", 1}}, 20);
  const Findings f = findings(view);
  ASSERT_EQ(f.best.size(), 2u);
  EXPECT_EQ(f.best[0].figure, "wall_s");
  EXPECT_EQ(f.best[0].setting.values, Words{"256"});
  EXPECT_EQ(f.best[1].setting.values, Words{"32"});
  EXPECT_EQ(f.best[1].next, 0.8);
  ASSERT_EQ(f.pareto.size(), 3u);
  EXPECT_EQ(f.pareto[0].setting.values, Words{"256"});
  EXPECT_EQ(f.pareto[1].setting.values, Words{"64"});
  EXPECT_EQ(f.pareto[2].setting.values, Words{"32"});
  EXPECT_EQ(f.undecided, Words{"odd"});
}

TEST(Findings, WorkersThatStopHelpingAreFound) {
  StudyView view = view_of({"workers", "batch"}, {"samples_per_s"});
  for (const auto& [workers, speed] :
       {std::pair{"1", 50.0}, {"2", 100.0}, {"4", 200.0}, {"8", 300.0}, {"12", 300.0}}) {
    add(view, {workers, "32"}, {{"samples_per_s", speed}});
    add(view, {workers, "16"}, {{"samples_per_s", speed / 2}});
  }
  const Findings f = findings(view);
  ASSERT_EQ(f.scalings.size(), 1u);
  EXPECT_EQ(f.scalings[0].others,
            (std::vector<std::pair<std::string, std::string>>{{"batch", "32"}}));
  EXPECT_NEAR(f.scalings[0].ceiling->knee(), 6, 1e-9);
}

}  // namespace
}  // namespace stoker::study
