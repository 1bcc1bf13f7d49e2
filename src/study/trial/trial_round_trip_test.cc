#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "study/definition/study_json.h"
#include "study/trial/trial_result.h"
#include "study/trial/trial_spec.h"

namespace stoker::study {
namespace {

/// Any characters that a word of a command can hold, line breaks and quotes among them.
std::string word(Random& random) {
  constexpr std::string_view kPieces[] = {"a",  "--lr=", " ", "'", "\"", "\\", "$(x)", "{", "}",
                                          "\n", "\t",    "é", "€", "=",  ",",  "0.1",  ";", "\x01"};
  std::string text;
  for (auto left = 1 + random.below(6); left > 0; --left)
    text += kPieces[random.below(std::size(kPieces))];
  return text;
}

std::vector<std::string> words(Random& random, std::uint64_t least = 0) {
  std::vector<std::string> all(least + random.below(4));
  for (std::string& one : all) one = word(random);
  return all;
}

/// A number of any size.
double number(Random& random) {
  return random.normal() * std::pow(10, static_cast<double>(random.below(40)) - 20);
}

Metric metric(Random& random) {
  return {word(random), random.below(2) == 0 ? "" : word(random),
          static_cast<Goal>(random.below(3)), static_cast<Take>(random.below(6)),
          random.below(2) == 0};
}

TEST(TrialRoundTrip, AnySpecIsReadAsItWasWritten) {
  Random random(31);
  for (int i = 0; i < 1'000; ++i) {
    TrialSpec s;
    s.trial = static_cast<std::int64_t>(random.below(100'000));
    s.words = words(random, 1);
    for (auto left = random.below(3); left > 0; --left)
      s.environment.emplace_back(word(random), word(random));
    s.folder = random.below(2) == 0 ? "" : word(random);
    s.needs = {static_cast<int>(random.below(64)), static_cast<int>(random.below(8)),
               static_cast<std::int64_t>(random.below(1ULL << 40)), random.uniform(0, 1e6),
               random.uniform(0, 100)};
    for (auto left = random.below(5); left > 0; --left)
      s.cores.push_back(static_cast<int>(random.below(128)));
    for (auto left = random.below(3); left > 0; --left) s.metrics.push_back(metric(random));
    s.output_bytes = static_cast<std::int64_t>(random.below(1ULL << 40));
    s.heartbeat_seconds = random.uniform(0.1, 60);
    s.checkpoints = random.below(2) == 0 ? "" : word(random);
    const auto back = parse_spec(spec_text(s), "trial.json");
    ASSERT_TRUE(back.has_value()) << back.error().text();
    EXPECT_EQ(back->trial, s.trial);
    EXPECT_EQ(back->words, s.words);
    EXPECT_EQ(back->environment, s.environment);
    EXPECT_EQ(back->folder, s.folder);
    EXPECT_EQ(back->needs.cores, s.needs.cores);
    EXPECT_EQ(back->needs.gpus, s.needs.gpus);
    EXPECT_EQ(back->needs.memory_bytes, s.needs.memory_bytes);
    EXPECT_EQ(back->needs.seconds, s.needs.seconds);
    EXPECT_EQ(back->needs.grace_seconds, s.needs.grace_seconds);
    EXPECT_EQ(back->cores, s.cores);
    EXPECT_EQ(back->metrics, s.metrics);
    EXPECT_EQ(back->output_bytes, s.output_bytes);
    EXPECT_EQ(back->heartbeat_seconds, s.heartbeat_seconds);
    EXPECT_EQ(back->checkpoints, s.checkpoints);
  }
}

TEST(TrialRoundTrip, AnyResultIsReadAsItWasWritten) {
  Random random(32);
  for (int i = 0; i < 1'000; ++i) {
    TrialResult r;
    r.state = TrialState::kDone;
    r.cause = word(random);
    r.reason = word(random);
    if (random.below(2) == 0) r.exit_code = static_cast<std::int64_t>(random.below(256));
    if (random.below(2) == 0) r.signal = static_cast<std::int64_t>(random.below(64));
    r.started = random.uniform(1e9, 2e9);
    r.ended = r.started + random.uniform(0, 1e5);
    r.wall_s = random.uniform(0, 1e5);
    r.host = word(random);
    r.tail = word(random) + "\n" + word(random);
    for (auto left = random.below(4); left > 0; --left) r.metrics[word(random)] = number(random);
    for (auto left = random.below(4); left > 0; --left) r.resources[word(random)] = number(random);
    for (auto left = random.below(6); left > 0; --left) {
      r.points.push_back({word(random), std::nullopt, random.uniform(0, 1e5), number(random)});
      if (random.below(2) == 0) r.points.back().step = static_cast<double>(random.below(1 << 20));
    }
    const auto back = parse_result(result_text(r), "result.json");
    ASSERT_TRUE(back.has_value()) << back.error().text();
    EXPECT_EQ(back->state, r.state);
    EXPECT_EQ(back->cause, r.cause);
    EXPECT_EQ(back->reason, r.reason);
    EXPECT_EQ(back->exit_code, r.exit_code);
    EXPECT_EQ(back->signal, r.signal);
    EXPECT_EQ(back->started, r.started);
    EXPECT_EQ(back->ended, r.ended);
    EXPECT_EQ(back->wall_s, r.wall_s);
    EXPECT_EQ(back->host, r.host);
    EXPECT_EQ(back->tail, r.tail);
    EXPECT_EQ(back->metrics, r.metrics);
    EXPECT_EQ(back->resources, r.resources);
    ASSERT_EQ(back->points.size(), r.points.size());
    for (std::size_t p = 0; p < r.points.size(); ++p) {
      EXPECT_EQ(back->points[p].metric, r.points[p].metric);
      EXPECT_EQ(back->points[p].step, r.points[p].step);
      EXPECT_EQ(back->points[p].seconds, r.points[p].seconds);
      EXPECT_EQ(back->points[p].value, r.points[p].value);
    }
  }
}

std::map<std::string, std::string> entries(Random& random) {
  std::map<std::string, std::string> all;
  for (auto left = random.below(4); left > 0; --left) all[word(random)] = word(random);
  return all;
}

Study study(Random& random) {
  Study s;
  s.name = word(random);
  s.command = words(random, 1);
  s.shell = random.below(2) == 0;
  s.environment = entries(random);
  s.folder = word(random);
  for (auto left = 1 + random.below(3); left > 0; --left) {
    Axis axis{words(random, 1), {}, word(random), words(random)};
    for (auto rows = 1 + random.below(4); rows > 0; --rows) {
      axis.rows.emplace_back();
      for (std::size_t i = 0; i < axis.names.size(); ++i) axis.rows.back().push_back(word(random));
    }
    s.axes.push_back(std::move(axis));
  }
  s.conditions = words(random);
  s.exclude = words(random);
  s.repeat = static_cast<std::int64_t>(1 + random.below(100));
  s.seed = static_cast<std::int64_t>(random.below(1 << 30));
  for (auto left = random.below(3); left > 0; --left) s.metrics.push_back(metric(random));
  s.resources = {word(random), word(random), word(random), word(random),
                 word(random), word(random), word(random)};
  s.order = static_cast<Order>(random.below(4));
  s.budget = {static_cast<std::int64_t>(random.below(9)), random.uniform(0, 1e6),
              random.uniform(0, 1e3), random.uniform(0, 1e3), random.uniform(0, 9)};
  s.slurm = {word(random), word(random), word(random), word(random), words(random), word(random)};
  KubernetesOptions& k = s.kubernetes;
  for (std::string* text :
       {&k.context, &k.name_space, &k.image, &k.service_account, &k.pull_secret, &k.claim, &k.mount,
        &k.here, &k.folder, &k.program, &k.gpu_resource, &k.prologue})
    *text = word(random);
  k.node_selector = entries(random);
  k.tolerate = words(random);
  k.keep_seconds = random.uniform(0, 1e6);
  s.forecast = entries(random);
  s.output_bytes = static_cast<std::int64_t>(random.below(1ULL << 40));
  return s;
}

TEST(StudyRoundTrip, AnyStudyIsReadAsItWasWrittenAndDiffersInNothing) {
  Random random(33);
  for (int i = 0; i < 500; ++i) {
    const Study s = study(random);
    const auto back = study_from_json(study_json(s), "study.db");
    ASSERT_TRUE(back.has_value()) << back.error().text();
    EXPECT_EQ(*back, s);
    EXPECT_EQ(differences(s, *back), std::vector<std::string>{});
  }
}

TEST(StudyRoundTrip, TwoStudiesThatDifferAreSaidToDiffer) {
  Random random(34);
  for (int i = 0; i < 500; ++i) {
    const Study stored = study(random);
    Study asked = stored;
    const Study other = study(random);
    switch (random.below(12)) {
      case 0:
        asked.name = other.name + "x";
        break;
      case 1:
        asked.command = other.command, asked.command.push_back("x");
        break;
      case 2:
        asked.shell = !asked.shell;
        break;
      case 3:
        asked.environment["x y"] = "1";
        break;
      case 4:
        asked.axes.push_back(other.axes[0]);
        break;
      case 5:
        asked.axes[0].rows.push_back(asked.axes[0].rows[0]);
        break;
      case 6:
        asked.conditions.push_back("1 > 0");
        break;
      case 7:
        asked.metrics.push_back(metric(random));
        break;
      case 8:
        asked.resources.memory += "x";
        break;
      case 9:
        asked.budget.money += 1;
        break;
      case 10:
        asked.kubernetes.node_selector["zone"] = "a";
        break;
      default:
        asked.repeat += 1;
        break;
    }
    EXPECT_FALSE(stored == asked);
    EXPECT_EQ(differences(stored, asked).size(), 1U) << i;
    EXPECT_EQ(differences(asked, stored).size(), 1U) << i;
  }
}

}  // namespace
}  // namespace stoker::study
