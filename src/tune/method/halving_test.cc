#include "tune/method/halving.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "tune/method/search.h"
#include "tune/method/simulated_trials.h"

namespace stoker::tune {
namespace {

TEST(HalvingTest, RungsEndAtTheMost) {
  EXPECT_EQ(rungs_of(1, 81, 3), (std::vector<double>{1, 3, 9, 27, 81}));
  EXPECT_EQ(rungs_of(1, 243, 3).size(), 6U) << "log(243, 3) is 4.999... in floating point";
  EXPECT_EQ(rungs_of(100, 1000, 3), (std::vector<double>{100, 300, 900, 1000}));
}

TEST(HalvingTest, HyperbandsBracketsAreThoseOfThePaper) {
  // Table 1 of Li et al. for R = 81 and eta = 3.
  EXPECT_EQ(hyperband_brackets(5, 3),
            (std::vector<Bracket>{{0, 81}, {1, 34}, {2, 15}, {3, 8}, {4, 5}}));
  EXPECT_EQ(hyperband_brackets(1, 3), (std::vector<Bracket>{{0, 1}}));
}

/// A configuration's curve: its own limit and speed, drawn by its number.
double planted(std::int64_t config, double step) {
  Random random(static_cast<std::uint64_t>(config) * 7919);
  const double limit = random.uniform(), scale = random.uniform(5, 60);
  return limit * (1 - std::exp(-step / scale));
}

Outcome run(const Request& request) {
  Outcome outcome;
  outcome.curve = curve_of([&](double step) { return planted(request.config, step); }, 1, 81);
  outcome.wall_s = 1;
  return outcome;
}

SearchOptions options(SearchKind kind) {
  SearchOptions o;
  o.kind = kind;
  o.space = {{"lr", {}, 1e-5, 1e-1}};
  o.configs = 30;
  o.least_steps = 1;
  o.most_steps = 81;
  return o;
}

/// ASHA as the paper's Algorithm 2 has it, for one worker, written without regard to speed.
std::vector<std::pair<std::int64_t, double>> reference_asha(std::int64_t configs, int eta) {
  const std::vector<double> rungs{1, 3, 9, 27, 81};
  std::vector<std::map<std::int64_t, double>> results(rungs.size());
  std::vector<std::set<std::int64_t>> promoted_from(rungs.size());
  std::vector<std::pair<std::int64_t, double>> jobs;
  for (std::int64_t begun = 0;;) {
    std::int64_t next = 0;
    std::size_t to = 0;
    for (std::size_t k = rungs.size() - 1; k-- > 0 && next == 0;) {
      std::vector<std::pair<double, std::int64_t>> order;
      for (const auto& [config, score] : results[k]) order.emplace_back(-score, config);
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < order.size() / static_cast<std::size_t>(eta); ++i) {
        if (promoted_from[k].contains(order[i].second)) continue;
        next = order[i].second;
        to = k + 1;
        promoted_from[k].insert(next);
        break;
      }
    }
    if (next == 0 && begun == configs) return jobs;
    if (next == 0) next = ++begun;
    results[to][next] = planted(next, rungs[to]);
    jobs.emplace_back(next, rungs[to]);
  }
}

TEST(SearchTest, AshaIsTheReferenceStepByStep) {
  SimulatedTrials trials{run};
  const Walk walk = trials.search(Search(options(SearchKind::kAsha)));
  std::vector<std::pair<std::int64_t, double>> jobs;
  for (const Job& job : trials.jobs) jobs.emplace_back(job.request.config, job.request.last_step);
  EXPECT_EQ(jobs, reference_asha(30, 3));
  ASSERT_TRUE(walk.choice);
  EXPECT_EQ(walk.next, Walk::Next::kDone);
}

/// One bracket of successive halving: who goes on, by sorting.
double reference_hyperband_steps() {
  double steps = 0;
  std::int64_t id = 0;
  const std::vector<double> rungs{1, 3, 9, 27, 81};
  for (int s = 4; s >= 0; --s) {
    const auto n = static_cast<std::int64_t>(std::ceil(5 * std::pow(3, s) / (s + 1) - 1e-9));
    std::vector<std::int64_t> alive;
    for (std::int64_t i = 0; i < n; ++i) alive.push_back(++id);
    for (std::size_t k = static_cast<std::size_t>(4 - s); k < rungs.size(); ++k) {
      const bool first = k == static_cast<std::size_t>(4 - s);
      steps += static_cast<double>(alive.size()) * (rungs[k] - (first ? 0 : rungs[k - 1]));
      std::sort(alive.begin(), alive.end(), [&](std::int64_t a, std::int64_t b) {
        return planted(a, rungs[k]) > planted(b, rungs[k]);
      });
      alive.resize(std::max<std::size_t>(alive.size() / 3, 1));
    }
  }
  return steps;
}

TEST(SearchTest, HyperbandTrainsTheStepsOfTheReference) {
  SimulatedTrials trials{run};
  const Walk walk = trials.search(Search(options(SearchKind::kHyperband)));
  EXPECT_EQ(walk.next, Walk::Next::kDone);
  EXPECT_DOUBLE_EQ(trials.steps, reference_hyperband_steps());
  std::set<std::int64_t> configs;
  for (const Job& job : trials.jobs) configs.insert(job.request.config);
  EXPECT_EQ(configs.size(), 143U);
}

TEST(SearchTest, AWidthGivesTheSameTrialsEachTime) {
  for (const auto kind : {SearchKind::kAsha, SearchKind::kHyperband, SearchKind::kWhole}) {
    SimulatedTrials a{run}, b{run};
    const Walk first = a.search(Search(options(kind)), 4),
               second = b.search(Search(options(kind)), 4);
    ASSERT_EQ(a.jobs.size(), b.jobs.size());
    for (std::size_t i = 0; i < a.jobs.size(); ++i) EXPECT_EQ(a.jobs[i].request, b.jobs[i].request);
    ASSERT_TRUE(first.choice && second.choice);
    EXPECT_EQ(first.choice->values, second.choice->values);
  }
}

TEST(SearchTest, EachStopIsExplainedByRankAndCutOff) {
  SimulatedTrials trials{run};
  const Walk walk = trials.search(Search(options(SearchKind::kAsha)));
  std::size_t ranked = 0;
  for (const Decision& d : walk.decisions)
    ranked += d.why.find("cut-off") != std::string::npos ? 1 : 0;
  EXPECT_GT(ranked, 30U);
  EXPECT_NE(walk.decisions[8].why.find("rank "), std::string::npos);
}

TEST(SearchTest, WhatDivergesIsBehindAllOthers) {
  SimulatedTrials trials{[](const Request& r) {
    Outcome outcome = run(r);
    if (r.config % 2 == 0) outcome.curve.diverged_at = 0;
    return outcome;
  }};
  const Walk walk = trials.search(Search(options(SearchKind::kAsha)));
  for (const Job& job : trials.jobs) {
    if (job.request.last_step > 1) {
      EXPECT_EQ(job.request.config % 2, 1);
    }
  }
  ASSERT_TRUE(walk.choice);
}

TEST(SearchTest, TheMedianRuleEndsWholeTrials) {
  SimulatedTrials trials{run};
  SearchOptions o = options(SearchKind::kWhole);
  o.most_steps = 0;
  (void)trials.search(Search(o));
  std::size_t stopped = 0;
  for (std::size_t i = 0; i < trials.jobs.size(); ++i) {
    const bool ended = trials.jobs[i].outcome->end == End::kStopped;
    stopped += ended ? 1 : 0;
    if (i < 5) {
      EXPECT_FALSE(ended) << "too few others";
    }
  }
  EXPECT_GE(stopped, 10U);
}

TEST(SpaceTest, DrawsStayWithinAndDependOnSeedAndIndexAlone) {
  const std::vector<Dimension> space{*parse_dimension("lr", "1e-5..1e-1"),
                                     *parse_dimension("batch", "32..256x2")};
  ASSERT_TRUE(space[0].continuous());
  ASSERT_EQ(space[1].values.size(), 4U);
  std::map<std::string, int> batches;
  double logs = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto values = draw(space, 7, i);
    EXPECT_EQ(values, draw(space, 7, i));
    const double rate = std::atof(values[0].c_str());
    EXPECT_GE(rate, 1e-5);
    EXPECT_LE(rate, 1e-1);
    logs += std::log10(rate) / 2000;
    ++batches[values[1]];
  }
  EXPECT_NEAR(logs, -3, 0.1);
  for (const auto& [batch, count] : batches) EXPECT_NEAR(count, 500, 100) << batch;
  EXPECT_EQ(combinations(space).size(), 20U) << "five powers of ten, four batches";
}

}  // namespace
}  // namespace stoker::tune
