#include "cli/verbs/tune_arguments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "json/text.h"

namespace stoker::cli {
namespace {

TuneArguments plain() {
  TuneArguments a;
  a.batch = "64,16,32,16.0";
  a.lr = "0.1,0.01";
  a.metric = "accuracy";
  a.command = {"python", "train.py", "--batch", "{batch}", "--lr", "{lr}"};
  return a;
}

TuneArguments of_method(const std::string& method) {
  TuneArguments a = plain();
  a.method = method;
  return a;
}

std::string refusal(const TuneArguments& a) {
  const auto study = tune_study(a);
  return study ? "" : study.error().text();
}

/// A value of its own for every setting that says what the search is.
void fill(TuneArguments& a) {
  int number = 3;
  for (const Binding& binding : tune_identity(a)) {
    ++number;
    const std::string text = std::string(binding.name) + "=" + std::to_string(number);
    if (auto* const* target = std::get_if<std::string*>(&binding.target)) **target = text;
    if (auto* const* target = std::get_if<std::vector<std::string>*>(&binding.target))
      **target = {text, "a,b"};
    if (auto* const* target = std::get_if<std::optional<std::int64_t>*>(&binding.target))
      **target = number;
    if (auto* const* target = std::get_if<std::optional<double>*>(&binding.target))
      **target = 0.1 * number;
    if (auto* const* target = std::get_if<std::optional<bool>*>(&binding.target)) **target = false;
    if (auto* const* target = std::get_if<bool*>(&binding.target)) **target = true;
  }
  a.command = {"python", "train.py", "--text", "a \"b\" c", ""};
}

std::string written(TuneArguments& a) { return arguments_json(a).dump(); }

TEST(TuneArguments, WhatSaysTheSearchComesBackFromTheStore) {
  TuneArguments a, back;
  fill(a);
  const auto stored = json::parse(written(a));
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->items().size(), tune_identity(a).size() + 1) << "each setting, and the command";
  arguments_from(*stored, back);
  EXPECT_EQ(written(back), written(a));
  EXPECT_EQ(back.command, a.command);
  EXPECT_EQ(back.final_run, false) << "switched off is not left out";
  EXPECT_EQ(back.vary, a.vary);
  EXPECT_EQ(back.energy_weight, a.energy_weight) << "to the last bit";
  EXPECT_TRUE(back.shell);
}

TEST(TuneArguments, WhatWasNotGivenStaysOpen) {
  TuneArguments a = plain(), back;
  arguments_from(*json::parse(written(a)), back);
  EXPECT_EQ(back.batch, a.batch);
  EXPECT_FALSE(back.seed || back.final_run || back.threshold || back.shell);
  EXPECT_TRUE(back.env.empty() && back.method.empty());
}

TEST(TuneArguments, GreedySortsItsValuesAndTakesEachNumberOnce) {
  const auto study = tune_study(plain());
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_TRUE(study->is_greedy);
  EXPECT_EQ(study->greedy.batches, (std::vector<std::string>{"16", "32", "64"}));
  EXPECT_EQ(study->greedy.rates, (std::vector<std::string>{"0.01", "0.1"}));
  EXPECT_TRUE(study->options.objective.most) << "of accuracy more is better";
  EXPECT_EQ(study->greedy.share, 1) << "the command takes no share of the data";
  EXPECT_EQ(study->greedy.rules.patience, 5);
  EXPECT_EQ(study->options.width, 1u);
  TuneArguments a = plain();
  a.command.insert(a.command.end(), {"--share", "{share}"});
  a.metric = "val_loss";
  a.place.at_most = 4;
  const auto shared = tune_study(a);
  ASSERT_TRUE(shared) << shared.error().text();
  EXPECT_EQ(shared->greedy.share, 0.25);
  EXPECT_FALSE(shared->options.objective.most);
  EXPECT_EQ(shared->options.width, 4u) << "as many as run at once";
  a.width = 2;
  EXPECT_EQ(tune_study(a)->options.width, 2u);
}

TEST(TuneArguments, GreedyRefusesWhatItCannotChoose) {
  TuneArguments a = plain();
  a.batch = a.lr = "";
  EXPECT_NE(refusal(a).find("say what is to be chosen"), std::string::npos) << refusal(a);
  a = plain();
  a.batch = "64";
  EXPECT_NE(refusal(a).find("--batch 64: has one value"), std::string::npos) << refusal(a);
  a.batch = "64,0";
  EXPECT_NE(refusal(a).find("\"0\" is no number above 0"), std::string::npos) << refusal(a);
  a.batch = "64,large";
  EXPECT_NE(refusal(a).find("\"large\" is no number"), std::string::npos) << refusal(a);
  a = plain();
  a.command = {"python", "train.py", "--lr", "{lr}"};
  // A brace of the text itself is doubled until a message is filled in.
  EXPECT_NE(refusal(a).find("the command has no {{batch}}"), std::string::npos) << refusal(a);
  a = plain();
  a.vary = {"optimizer=sgd,adam"};
  EXPECT_NE(refusal(a).find("--vary: greedy chooses batch and learning rate alone"),
            std::string::npos)
      << refusal(a);
}

TEST(TuneArguments, AMetricNeedsADirection) {
  TuneArguments a = plain();
  a.metric = "";
  EXPECT_NE(refusal(a).find("--metric accuracy"), std::string::npos) << refusal(a);
  a.metric = "kappa";
  EXPECT_NE(refusal(a).find("--direction max or --direction min"), std::string::npos);
  a.direction = "max";
  EXPECT_TRUE(tune_study(a)->options.objective.most);
  a.direction = "min";
  EXPECT_FALSE(tune_study(a)->options.objective.most);
  a.metric = "accuracy";
  EXPECT_FALSE(tune_study(a)->options.objective.most) << "the user's word goes before the name's";
}

TEST(TuneArguments, EnergyAsksForMore) {
  TuneArguments a = plain();
  a.target = 0.75;
  EXPECT_NE(refusal(a).find("--target: belongs to --objective energy"), std::string::npos);
  a.target.reset();
  a.energy_weight = 0.5;
  EXPECT_NE(refusal(a).find("--energy-weight: belongs"), std::string::npos) << refusal(a);
  a.energy_weight.reset();
  a.objective = "energy";
  auto study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->greedy.by, tune::BatchBy::kEnergy);
  EXPECT_EQ(study->options.objective.energy_weight, 0.5);
  a.by = "throughput";
  EXPECT_NE(refusal(a).find("--by: the batch is chosen by energy already"), std::string::npos);
  a.by = "";
  a.batch = "";
  a.command = {"python", "train.py", "--lr", "{lr}"};
  EXPECT_NE(refusal(a).find("--target 0.75"), std::string::npos) << refusal(a);
  a.target = NAN;
  EXPECT_NE(refusal(a).find("is no value that a metric can reach"), std::string::npos);
  a.target = 0.75;
  study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->options.objective.target, 0.75);
  a.metric = "loss";
  EXPECT_EQ(tune_study(a)->options.objective.target, -0.75) << "a score: more is better";
}

TEST(TuneArguments, RungsNeedTheirSteps) {
  TuneArguments a = of_method("asha");
  a.trials = 27;
  EXPECT_NE(refusal(a).find("--min-steps 100 --max-steps 2700"), std::string::npos) << refusal(a);
  a.min_steps = 100;
  a.max_steps = 100;
  EXPECT_NE(refusal(a).find("--min-steps"), std::string::npos);
  a.max_steps = 2700;
  auto study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->search.kind, tune::SearchKind::kAsha);
  EXPECT_EQ(study->search.configs, 27);
  EXPECT_EQ(study->search.most_steps, 2700);
  a.trials.reset();
  EXPECT_NE(refusal(a).find("--trials 27"), std::string::npos) << refusal(a);
  a.method = "hyperband";
  EXPECT_EQ(refusal(a), "");
  a.trials = 9;
  EXPECT_NE(refusal(a).find("the number follows from the method hyperband"), std::string::npos);
}

TEST(TuneArguments, AGridIsAllOfItsValues) {
  TuneArguments a = of_method("grid");
  const auto study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_TRUE(study->search.all_combinations);
  ASSERT_EQ(study->search.space.size(), 2u);
  a.sampler = "sobol";
  EXPECT_NE(refusal(a).find("--sampler: a grid is not sampled"), std::string::npos) << refusal(a);
  a = of_method("random");
  a.trials = 5;
  a.vary = {"optimizer"};
  EXPECT_NE(refusal(a).find("write NAME=VALUES"), std::string::npos) << refusal(a);
  a = of_method("random");
  a.trials = 5;
  a.batch = a.lr = "";
  EXPECT_NE(refusal(a).find("say what is to be chosen"), std::string::npos) << refusal(a);
  a.batch = "64";
  EXPECT_NE(refusal(a).find("every setting has one value"), std::string::npos) << refusal(a);
}

TEST(TuneArguments, TpeIsAMethodOfRandomTrials) {
  TuneArguments a = of_method("tpe");
  a.trials = 8;
  auto study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->sampler, "tpe");
  EXPECT_TRUE(study->search.sampled);
  a.method = "random";
  a.sampler = "random";
  study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->sampler, "");
  EXPECT_FALSE(study->search.sampled);
}

TEST(TuneArguments, BudgetsOfTimeStepsAndMoney) {
  TuneArguments a = plain();
  a.budget = "1h30min";
  a.budget_steps = 4000;
  auto study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->options.budget.seconds, 5400);
  EXPECT_EQ(study->options.budget.steps, 4000);
  a.budget = "soon";
  EXPECT_NE(refusal(a).find("\"soon\" is no time"), std::string::npos) << refusal(a);
  a.budget = "";
  a.budget_money = 20;
  EXPECT_NE(refusal(a).find("needs --price"), std::string::npos) << refusal(a);
  a.price = 2.5;
  EXPECT_NE(refusal(a).find("needs --price"), std::string::npos) << "of how many GPUs?";
  a.gpus = "1";
  study = tune_study(a);
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->options.budget.money, 20);
  EXPECT_EQ(study->options.budget.price_of_gpu_hour, 2.5);
  a.checkpoint_space = "2G";
  EXPECT_EQ(tune_study(a)->options.checkpoints.bytes, 2LL << 30);
  a.checkpoint_space = "much";
  EXPECT_NE(refusal(a).find("--checkpoint-space"), std::string::npos) << refusal(a);
}

}  // namespace
}  // namespace stoker::cli
