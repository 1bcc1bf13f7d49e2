#include "cli/arguments/arguments.h"

#include <gtest/gtest.h>

#include <map>

#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

struct Values {
  std::string model, gpu, batch;
  std::optional<std::int64_t> workers, accumulate;
  std::optional<double> momentum;
  std::optional<bool> pin;
  std::vector<std::string> dim;
  bool nesterov = false;
};

Command predict_with(Values& v) {
  return {"predict",
          "",
          "",
          {{"model", &v.model},
           {"gpu", &v.gpu},
           {"batch", &v.batch},
           {"workers", &v.workers},
           {"accumulate", &v.accumulate},
           {"momentum", &v.momentum},
           {"pin", &v.pin},
           {"dim", &v.dim},
           {"nesterov", &v.nesterov}},
          {}};
}

std::string refusal(const std::vector<std::string>& words) {
  Values v;
  const Status status = parse_words(predict_with(v), words);
  return status ? "" : status.error().text();
}

TEST(ArgumentsTest, ValuesReachWhereTheyAreBound) {
  Values v;
  ASSERT_TRUE(parse_words(
      predict_with(v), {"resnet50", "--gpu=h100", "--batch", "max", "--workers", "0", "--momentum",
                        "0.25", "--nesterov", "--no-pin", "--dim", "a=1,b=2", "--dim", "c=3"}));
  EXPECT_EQ(v.model, "resnet50");
  EXPECT_EQ(v.gpu, "h100");
  EXPECT_EQ(v.batch, "max");
  EXPECT_EQ(v.workers, 0);
  EXPECT_EQ(v.accumulate, std::nullopt);
  EXPECT_EQ(v.momentum, 0.25);
  EXPECT_EQ(v.pin, false);
  EXPECT_EQ(v.dim, (std::vector<std::string>{"a=1", "b=2", "c=3"}));
  EXPECT_TRUE(v.nesterov);
}

TEST(ArgumentsTest, AListDoesNotSwallowTheModel) {
  Values v;
  ASSERT_TRUE(parse_words(predict_with(v), {"--gpu", "h100", "--dim", "a=1", "gpt2"}));
  EXPECT_EQ(v.model, "gpt2");
  EXPECT_EQ(v.dim, std::vector<std::string>{"a=1"});
}

TEST(ArgumentsTest, ASwitchMayBeSaidToBeOff) {
  Values v;
  ASSERT_TRUE(parse_words(predict_with(v), {"m", "--gpu", "h100", "--no-nesterov", "--pin"}));
  EXPECT_FALSE(v.nesterov);
  EXPECT_EQ(v.pin, true);
}

TEST(ArgumentsTest, RangesAndNamesAreRefusedByTheTable) {
  EXPECT_EQ(refusal({"m", "--gpu", "h100", "--workers", "1025"}),
            "--workers: must be between 0 and 1,024, not 1025");
  EXPECT_EQ(refusal({"m", "--gpu", "h100", "--accumulate", "0"}),
            "--accumulate: must be between 1 and 4,096, not 0");
  EXPECT_EQ(refusal({"m", "--gpu", "h100", "--momentum", "1.5"}),
            "--momentum: must lie between 0 and 1");
}

TEST(ArgumentsTest, UnknownFlagsNameTheNearest) {
  EXPECT_EQ(refusal({"m", "--gpu", "h100", "--worker", "3"}),
            "unknown flag --worker; did you mean --workers? (stoker predict --help-all lists all)");
  EXPECT_EQ(refusal({"m", "--gpu", "h100", "--num-worker", "3"}),
            "unknown flag --num-worker; did you mean --num-workers? (stoker predict --help-all "
            "lists all)");
  EXPECT_EQ(refusal({"m", "--gpu", "h100", "--tensor-parallel", "2"}),
            "--tensor-parallel: tensor parallelism is not modelled yet");
}

TEST(ArgumentsTest, WordsWithoutAPlaceAreNamed) {
  EXPECT_EQ(refusal({"m", "t4", "--gpu", "h100"}),
            "one word too many: t4; stoker predict takes MODEL and flags; a model's name has no "
            "blanks: m-t4 (stoker predict --help)");
  const std::string several = refusal({"m", "t4", "a100", "--gpu", "h100"});
  EXPECT_TRUE(several.starts_with("words too many: t4 a100; ")) << several;
}

TEST(ArgumentsTest, WhatIsRequiredIsNamed) {
  EXPECT_EQ(refusal({"m"}),
            "--gpu is missing, as in stoker predict m --gpu t4: GPU (`stoker gpus`), "
            "aws:g5.2xlarge, cpu, machine file; side by side: "
            "a,b,c (stoker predict --help)");
}

/// Every setting of every verb has somewhere to go, and everything bound is described.
TEST(ArgumentsTest, VerbsAndTheTableAgree) {
  for (const Section& section : all_verbs()) {
    for (const Command& command : section.commands) {
      EXPECT_FALSE(settings_of(command.name).empty()) << command.name;
      if (!command.run) continue;  // Python's
      std::map<std::string_view, int> bound;
      for (const Binding& binding : command.bindings) ++bound[binding.name];
      for (const SettingRow* setting : settings_of(command.name)) {
        EXPECT_EQ(bound[setting->name], 1) << command.name << " " << setting->name;
        bound.erase(setting->name);
      }
      for (const auto& [name, times] : bound) ADD_FAILURE() << command.name << " binds " << name;
    }
  }
}

TEST(ArgumentsTest, ExitCodesTellUsageFromBadInput) {
  EXPECT_EQ(exit_code_of(ErrorCode::kAnswerIsNo), 1);
  EXPECT_EQ(exit_code_of(ErrorCode::kUsage), 2);
  EXPECT_EQ(exit_code_of(ErrorCode::kUnsupported), 3);
}

}  // namespace
}  // namespace stoker::cli
