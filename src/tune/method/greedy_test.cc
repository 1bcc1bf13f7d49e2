#include "tune/method/greedy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tune/method/simulated_trials.h"

namespace stoker::tune {
namespace {

GreedyOptions options() {
  GreedyOptions o;
  o.batches = {"64", "128", "256", "512"};
  o.rates = {"1e-05", "1e-04", "0.001", "0.01", "0.1"};
  o.rules.patience = 5;
  return o;
}

/// Throughput with a fixed cost of a step; accuracy best at a learning rate of `optimum`.
Outcome planted(const Request& request, double optimum, double noise = 0) {
  Outcome outcome;
  const double batch = std::atof(request.values[0].c_str()),
               rate = std::atof(request.values[1].c_str());
  outcome.samples_per_s = batch / (1e-3 + batch * 1e-5);
  const double off = std::log10(rate / optimum), best = 0.9 - 0.1 * off * off;
  int count = 0;
  outcome.curve = curve_of(
      [&](double step) {
        return best * (1 - std::exp(-step / 80)) + noise * (++count % 2 == 0 ? 1 : -1);
      },
      20, 400);
  outcome.wall_s = 4;
  return outcome;
}

TEST(GreedyTest, FindsAPlantedOptimum) {
  SimulatedTrials trials{[](const Request& r) { return planted(r, 0.004); }};
  const Walk walk = trials.search(Greedy(options()));
  ASSERT_EQ(walk.next, Walk::Next::kDone) << walk.problem;
  ASSERT_TRUE(walk.choice);
  // 512 has 83,660 samples/s, 256 has 71,900: 86 % of it.
  EXPECT_EQ(walk.choice->values, (std::vector<std::string>{"512", "0.005"}));
  double saved = 0;
  for (const Decision& d : walk.decisions) saved += d.saved_s;
  EXPECT_GT(saved, 0);
}

TEST(GreedyTest, TheSameTrialsWhateverIsUnderWay) {
  // Decisions on what a wider search sees may differ; those of one width may not, and all widths
  // here come to the same choice.
  for (const std::size_t width : {1, 2, 3, 8}) {
    SimulatedTrials a{[](const Request& r) { return planted(r, 0.004); }};
    SimulatedTrials b{[](const Request& r) { return planted(r, 0.004); }};
    const Walk first = a.search(Greedy(options()), width),
               second = b.search(Greedy(options()), width);
    ASSERT_TRUE(first.choice);
    EXPECT_EQ(first.choice->values, (std::vector<std::string>{"512", "0.005"})) << width;
    ASSERT_EQ(a.jobs.size(), b.jobs.size());
    for (std::size_t i = 0; i < a.jobs.size(); ++i) EXPECT_EQ(a.jobs[i].request, b.jobs[i].request);
  }
}

TEST(GreedyTest, AWinnerAtTheEdgeWidensTheGrid) {
  GreedyOptions o = options();
  o.rates = {"1e-05", "1e-04"};
  SimulatedTrials trials{[](const Request& r) { return planted(r, 0.001); }};
  const Walk walk = trials.search(Greedy(o));
  ASSERT_TRUE(walk.choice);
  EXPECT_EQ(walk.choice->values[1], "0.001");
}

TEST(GreedyTest, ASmallerBatchWhereTrainingRunsOutOfMemory) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004);
    if (r.values[0] == "512" && r.stage != "batch") {
      outcome = Outcome{};
      outcome.end = End::kOutOfMemory;
    }
    return outcome;
  }};
  for (const std::size_t width : {1, 3}) {
    trials.jobs.clear();
    const Walk walk = trials.search(Greedy(options()), width);
    ASSERT_TRUE(walk.choice) << walk.problem;
    EXPECT_EQ(walk.choice->values, (std::vector<std::string>{"256", "0.005"}));
  }
}

/// Each doubling of the batch away from the best costs 0.05 of accuracy.
Outcome better_at(double best, const Request& request, double noise = 0) {
  Outcome outcome = planted(request, 0.004, noise);
  const double lost = std::fabs(std::log2(std::atof(request.values[0].c_str()) / best));
  for (Point& point : outcome.curve.points) point.score -= 0.05 * lost;
  return outcome;
}

TEST(GreedyTest, SmallerBatchesAreTakenWhileTheyTrainBetter) {
  SimulatedTrials trials{[](const Request& r) { return better_at(128, r); }};
  for (const std::size_t width : {1, 3}) {
    trials.jobs.clear();
    const Walk walk = trials.search(Greedy(options()), width);
    ASSERT_EQ(walk.next, Walk::Next::kDone) << walk.problem;
    ASSERT_TRUE(walk.choice);
    EXPECT_EQ(walk.choice->values, (std::vector<std::string>{"128", "0.005"})) << width;
    std::vector<std::string> tried;
    for (const Job& job : trials.jobs) {
      if (job.request.stage == "smaller") tried.push_back(job.request.values[0]);
    }
    EXPECT_EQ(tried, (std::vector<std::string>{"256", "128", "64"}));
    EXPECT_EQ(walk.choice->trial, static_cast<std::int64_t>(trials.jobs.size()) - 1)
        << "all data were trained on at 128, and 64 came last";
  }
}

TEST(GreedyTest, NoMoreSmallerBatchesThanAreWanted) {
  GreedyOptions o = options();
  o.smaller_batches = 1;
  SimulatedTrials trials{[](const Request& r) { return better_at(128, r); }};
  EXPECT_EQ(trials.search(Greedy(o)).choice->values[0], "256");
  o.smaller_batches = 0;
  trials.jobs.clear();
  EXPECT_EQ(trials.search(Greedy(o)).choice->values[0], "512");
}

TEST(GreedyTest, SmallerBatchesWithinTheNoiseNeedTwoRisesInARow) {
  GreedyOptions o = options();
  o.rules.patience = 0;
  o.rules.min_share = 1;
  o.refine = 0;
  o.rates = {"1e-05", "0.004"};
  double best = 256;
  SimulatedTrials trials{[&](const Request& r) { return better_at(best, r, 0.2); }};
  Walk walk = trials.search(Greedy(o));
  ASSERT_TRUE(walk.choice) << walk.problem;
  EXPECT_EQ(walk.choice->values[0], "512") << "256 was better, 128 was not";
  EXPECT_EQ(walk.decisions[walk.decisions.size() - 2].what, "batch 512 stays");
  EXPECT_NE(walk.decisions[walk.decisions.size() - 2].why.find("cannot be told apart"),
            std::string::npos);
  best = 128;
  trials.jobs.clear();
  walk = trials.search(Greedy(o));
  EXPECT_EQ(walk.choice->values[0], "128") << "256 was better, and 128 better still";
}

TEST(GreedyTest, AllOutOfMemoryIsSaid) {
  SimulatedTrials trials{[](const Request&) {
    Outcome outcome;
    outcome.end = End::kOutOfMemory;
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(options()));
  EXPECT_EQ(walk.next, Walk::Next::kStuck);
  EXPECT_NE(walk.problem.find("every batch ran out of memory"), std::string::npos) << walk.problem;
  EXPECT_EQ(trials.jobs.size(), 1) << "larger batches need more";
}

TEST(GreedyTest, AMetricThatNeverComesEndsTheSearch) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004);
    outcome.curve.points.clear();
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(options()));
  EXPECT_EQ(walk.next, Walk::Next::kStuck);
  EXPECT_NE(walk.problem.find("accuracy"), std::string::npos);
}

TEST(GreedyTest, AMetricThatOnlyGetsWorseAsksForTheDirection) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004);
    for (Point& point : outcome.curve.points) point.score = 1 - point.score;
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(options()));
  EXPECT_EQ(walk.next, Walk::Next::kStuck);
  EXPECT_NE(walk.problem.find("--direction min"), std::string::npos) << walk.problem;
}

TEST(GreedyTest, AllDivergedAsksForSmallerRates) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004);
    if (r.stage != "batch") outcome.curve.diverged_at = 10;
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(options()));
  EXPECT_EQ(walk.next, Walk::Next::kStuck);
  EXPECT_NE(walk.problem.find("all 5 learning rates diverged"), std::string::npos) << walk.problem;
}

TEST(GreedyTest, NoiseAboveAllDifferencesIsSaidWithRepetitions) {
  GreedyOptions o = options();
  o.rules.patience = 0;
  o.rules.min_share = 1;
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004, 0.2);
    return outcome;
  }};
  o.rates = {"0.003", "0.004", "0.005"};
  const Walk walk = trials.search(Greedy(o));
  ASSERT_EQ(walk.next, Walk::Next::kDone);
  bool said = false;
  for (const Decision& d : walk.decisions)
    said = said || (d.what == "the learning rates cannot be told apart" &&
                    d.why.find("repetitions") != std::string::npos);
  EXPECT_TRUE(said);
}

TEST(GreedyTest, AMetricThatDoesNotDependOnTheRateIsSaid) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004);
    for (Point& point : outcome.curve.points) point.score = 0.5;
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(options()));
  bool said = false;
  for (const Decision& d : walk.decisions)
    said = said || d.why.find("does not depend on the learning rate") != std::string::npos;
  EXPECT_TRUE(said);
  for (const Job& job : trials.jobs) EXPECT_NE(job.request.stage, "refine");
}

TEST(GreedyTest, AForecastNeedsNoTrialsOfBatches) {
  GreedyOptions o = options();
  o.forecast = {{"64", 64, 100.0, 0.5},
                {"128", 128, 180.0, 0.8},
                {"256", 256, 195.0, 0.9},
                {"512", 512, {}, {}, {}, false, "out of memory"}};
  SimulatedTrials trials{[](const Request& r) { return planted(r, 0.004); }};
  const Walk walk = trials.search(Greedy(o));
  ASSERT_TRUE(walk.choice);
  EXPECT_EQ(walk.choice->values[0], "128");
  for (const Job& job : trials.jobs) EXPECT_NE(job.request.stage, "batch");
}

TEST(GreedyTest, ACommandThatEndsWellWithoutTheMetricEndsTheSearchAtOnce) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = planted(r, 0.004);
    outcome.curve.points.clear();
    outcome.silent = true;
    outcome.told = "acc, loss";
    return outcome;
  }};
  GreedyOptions o = options();
  o.batches.clear();
  o.rates = {"1e-05", "1e-04", "0.001", "0.01", "0.1"};
  SimulatedTrials rates{[&](const Request& r) {
    Request with_batch = r;
    with_batch.values.insert(with_batch.values.begin(), "64");
    return trials.run(with_batch);
  }};
  const Walk walk = rates.search(Greedy(o));
  EXPECT_EQ(walk.next, Walk::Next::kStuck);
  EXPECT_NE(walk.problem.find("it told acc, loss"), std::string::npos) << walk.problem;
  EXPECT_EQ(rates.jobs.size(), 1);
}

/// 250 W at a batch of 64 to 400 W at 512, of 400 W; throughput as planted.
Outcome with_power(const Request& request, double optimum) {
  Outcome outcome = planted(request, optimum);
  const double batch = std::atof(request.values[0].c_str());
  const double watts = 250 + 50 * std::log2(batch / 64);
  outcome.power = Power{watts, watts, watts, 400, true};
  return outcome;
}

TEST(GreedyTest, EnergyChoosesTheBatchByItsCost) {
  GreedyOptions o = options();
  o.by = BatchBy::kEnergy;
  o.threshold = 1;
  o.objective.energy_weight = 1;
  SimulatedTrials trials{[](const Request& r) { return with_power(r, 0.004); }};
  // Seconds a sample: 25.6, 17.8, 13.9, 12 us; joules: 6.4, 5.3, 4.9, 4.8 m.
  Walk walk = trials.search(Greedy(o));
  ASSERT_TRUE(walk.choice) << walk.problem;
  EXPECT_EQ(walk.choice->values[0], "512");
  o.threshold = 0.95;
  trials.jobs.clear();
  walk = trials.search(Greedy(o));
  EXPECT_EQ(walk.choice->values[0], "256") << "2.5 % above the least";
}

TEST(GreedyTest, WithATargetARateIsBestThatReachesItAtTheLeastCost) {
  GreedyOptions o = options();
  o.by = BatchBy::kEnergy;
  o.objective.energy_weight = 0.5;
  o.objective.target = 0.7;
  SimulatedTrials trials{[&](const Request& r) {
    Outcome outcome = with_power(r, 0.004);
    // As the tuner makes it: a cost where the target was reached, which a trial ends at.
    if (r.stage == "batch") return outcome;
    const double off = std::log10(std::atof(r.values[1].c_str()) / 0.004);
    outcome.curve = curve_of(
        [&](double step) { return (0.9 - 0.1 * off * off) * (1 - std::exp(-step / 80)); }, 2, 400);
    outcome.by_cost = true;
    for (const Point& point : outcome.curve.points) {
      if (point.score >= 0.7 && !outcome.cost)
        outcome.cost = cost_of(*outcome.power, point.seconds, 0.5);
    }
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(o));
  ASSERT_EQ(walk.next, Walk::Next::kDone) << walk.problem;
  ASSERT_TRUE(walk.choice);
  // The rate with the best final accuracy comes to 0.7 first: at 0.005 at step 122.
  EXPECT_EQ(walk.choice->values[1], "0.005");
  const Power power = *trials.jobs.back().outcome->power;
  EXPECT_NEAR(*walk.choice->score, -cost_of(power, 122, 0.5).value, 1e-6);
  for (const Job& job : trials.jobs) EXPECT_NE(job.request.stage, "final") << "it ended there";
}

TEST(GreedyTest, PowerThatNobodyTellsIsSaid) {
  GreedyOptions o = options();
  o.by = BatchBy::kEnergy;
  o.objective.energy_weight = 0.5;
  SimulatedTrials trials{[](const Request& r) { return planted(r, 0.004); }};
  const Walk walk = trials.search(Greedy(o));
  EXPECT_EQ(walk.next, Walk::Next::kStuck);
  EXPECT_NE(walk.problem.find("--model and --gpu"), std::string::npos) << walk.problem;
  EXPECT_EQ(trials.jobs.size(), 1);
}

}  // namespace
}  // namespace stoker::tune
