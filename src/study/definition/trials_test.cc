#include "study/definition/trials.h"

#include <gtest/gtest.h>

#include <set>

namespace stoker::study {
namespace {

using Words = std::vector<std::string>;

Axis axis(const std::string& name, Words values) {
  Axis a{{name}, {}};
  for (std::string& value : values) a.rows.push_back({std::move(value)});
  a.place = "--vary " + name;
  return a;
}

Study study() {
  Study s;
  s.command = {"train", "--batch={batch}", "--gpus", "{gpus}"};
  s.axes = {axis("batch", {"256", "512", "1024"}), axis("gpus", {"1", "2", "4"})};
  return s;
}

std::vector<Words> values_of(const Study& s) {
  const auto trials = trials_of(s);
  EXPECT_TRUE(trials.has_value()) << trials.error().text();
  std::vector<Words> all;
  for (const auto& trial : trials.value_or(std::vector<TrialValues>{})) all.push_back(trial.values);
  return all;
}

TEST(Trials, TheLastAxisVariesFastest) {
  const auto all = values_of(study());
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all[0], (Words{"256", "1"}));
  EXPECT_EQ(all[1], (Words{"256", "2"}));
  EXPECT_EQ(all[8], (Words{"1024", "4"}));
}

TEST(Trials, ConditionsAndExclusionsLeaveOut) {
  Study s = study();
  s.conditions = {"gpus*batch <= 1024"};
  s.exclude = {"batch == 256 and gpus == 1"};
  EXPECT_EQ(
      values_of(s),
      (std::vector<Words>{{"256", "2"}, {"256", "4"}, {"512", "1"}, {"512", "2"}, {"1024", "1"}}));
  s.conditions = {"batch > 5000"};
  EXPECT_EQ(trials_of(s).error().message,
            "conditions and exclusions leave none of the 9 combinations");
}

TEST(Trials, AnAxisThatDependsOnOneBeforeItIsNotRepeated) {
  Study s = study();
  s.axes[1] = axis("momentum", {"0", "0.9"});
  s.axes[1].when = "batch < 500";
  s.axes[1].otherwise = {"none"};
  EXPECT_EQ(values_of(s),
            (std::vector<Words>{{"256", "0"}, {"256", "0.9"}, {"512", "none"}, {"1024", "none"}}));
}

TEST(Trials, LinkedAxesVaryTogether) {
  Study s = study();
  s.axes[1] = Axis{{"model", "side"}, {{"resnet", "224"}, {"inception", "299"}}};
  const auto all = values_of(s);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[1], (Words{"256", "inception", "299"}));
}

TEST(Trials, RepetitionsHaveSeedsOfTheirOwn) {
  Study s = study();
  s.repeat = 2;
  s.seed = 7;
  const auto trials = trials_of(s).value();
  ASSERT_EQ(trials.size(), 18u);
  EXPECT_EQ(trials[0].seed, 7);
  EXPECT_EQ(trials[1].seed, 8);
  EXPECT_EQ(trials[1].values, trials[0].values);
  EXPECT_EQ(trials[2].seed, 7);
}

TEST(Trials, RandomOrderIsTheSameForTheSameSeed) {
  Study s = study();
  s.order = Order::kRandom;
  s.seed = 1;
  const auto first = values_of(s);
  EXPECT_EQ(values_of(s), first);
  EXPECT_EQ(std::set<Words>(first.begin(), first.end()).size(), 9u);
  s.seed = 2;
  EXPECT_NE(values_of(s), first);
}

TEST(Trials, TheMostInformativeOrderSeesAllValuesFirst) {
  Study s = study();
  s.order = Order::kInformative;
  const auto all = values_of(s);
  std::set<std::string> batches, gpus;
  for (std::size_t i = 0; i < 3; ++i) batches.insert(all[i][0]), gpus.insert(all[i][1]);
  EXPECT_EQ(batches.size(), 3u);
  EXPECT_EQ(gpus.size(), 3u);
}

TEST(Trials, TooManyCombinationsAreRefusedWithTheirNumber) {
  Study s = study();
  s.axes.clear();
  for (const char* name : {"a", "b", "c"}) {
    Axis a{{name}, {}};
    for (int i = 0; i < 1000; ++i) a.rows.push_back({std::to_string(i)});
    s.axes.push_back(a);
  }
  EXPECT_EQ(trials_of(s).error().message,
            "the axes have 1,000,000,000 combinations, and at most 10,000,000 are looked at; give "
            "fewer values");
  s.axes.pop_back();
  EXPECT_EQ(trials_of(s).error().message,
            "there are 1,000,000 trials, and a study has at most 100,000; part it");
}

TEST(Trials, CommandsAreFilled) {
  Study s = study();
  s.environment = {{"OMP_NUM_THREADS", "{gpus*2}"}};
  s.folder = "/data/{batch}";
  s.resources = {"{gpus*4}", "{gpus}", "{gpus*8}G", "{batch}s"};
  const auto command = command_of(s, trials_of(s).value()[5], 6, "/tmp/6").value();
  EXPECT_EQ(command.words, (Words{"train", "--batch=512", "--gpus", "4"}));
  EXPECT_EQ(command.environment[0].second, "8");
  EXPECT_EQ(command.folder, "/data/512");
  EXPECT_EQ(command.needs, (Needs{16, 4, 32LL << 30, 512, 10}));
  s.shell = true;
  s.command = {"train {batch} > {folder}/log"};
  EXPECT_EQ(command_of(s, trials_of(s).value()[5], 6, "/tmp/a b").value().words,
            (Words{"/bin/sh", "-c", "train '512' > '/tmp/a b'/log"}));
  s.resources.cores = "{batch/3}";
  EXPECT_EQ(command_of(s, trials_of(s).value()[5], 6, "").error().text(),
            "resources cores: \"170.66666666666666\" is no number of cores");
}

TEST(Study, NamesThatNothingAnswersToAreRefused) {
  Study s = study();
  EXPECT_TRUE(check_study(s).has_value());
  s.command.push_back("{bach}");
  EXPECT_EQ(check_study(s).error().text(),
            "command: \"bach\" is no axis of this study; did you mean batch?");
  s = study();
  s.conditions = {"nodes > 1"};
  EXPECT_EQ(check_study(s).error().text(),
            "conditions: \"nodes\" is no axis of this study; there are batch, gpus");
  s = study();
  s.axes[0].rows.clear();
  EXPECT_EQ(check_study(s).error().text(), "--vary batch: has no values; write batch = [32, 64]");
  s = study();
  s.axes.push_back(s.axes[0]);
  EXPECT_EQ(check_study(s).error().text(), "--vary batch: is there twice");
  s = study();
  s.axes[0].names = {"seed"};
  EXPECT_EQ(check_study(s).error().message,
            "\"seed\" is a name that every trial has already; call the axis otherwise");
  s = study();
  s.command.clear();
  EXPECT_EQ(check_study(s).error().message,
            "there is no command; put it behind --, or write command =");
  s = study();
  s.metrics = {{"accuracy", "acc: [0-9"}};
  EXPECT_EQ(check_study(s).has_value(), false);
  s.metrics = {{"accuracy", "acc: [0-9]"}};
  EXPECT_EQ(check_study(s).error().text(),
            "metric accuracy: needs a group that is the value: acc: ([0-9.]+)");
}

}  // namespace
}  // namespace stoker::study
