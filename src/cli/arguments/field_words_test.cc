#include "cli/arguments/field_words.h"

#include <gtest/gtest.h>

#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

TEST(FieldWordsTest, SwitchesOfTheFieldAreSettingsWithAValue) {
  EXPECT_EQ(switch_of_the_field("predict", "--gradient_checkpointing")->setting, "checkpoint");
  EXPECT_EQ(switch_of_the_field("predict", "--gradient-checkpointing")->value, "blocks");
  EXPECT_EQ(switch_of_the_field("plan", "--bf16")->value, "amp-bf16");
  EXPECT_FALSE(switch_of_the_field("gpus", "--bf16")) << "it has no --precision";
  EXPECT_FALSE(switch_of_the_field("predict", "bf16")) << "a value, not a flag";
}

TEST(FieldWordsTest, AdviceGoesByMeaning) {
  EXPECT_EQ(advice_on("predict", "--zero-stage"), "it is --parallel zero2 or zero3 here");
  EXPECT_EQ(advice_on("plan", "--global-batch"), "its largest: --max-global-batch");
  EXPECT_EQ(advice_on("predict", "--load_in_8bit"),
            "8-bit weights are not modelled; 4-bit ones are: --qlora");
  EXPECT_EQ(advice_on("predict", "--half"),
            "it is --precision fp16 (the whole model) or amp-fp16 here");
  EXPECT_EQ(advice_on("predict", "--multi-gpu"), "it is --gpus here (--gpus 1..8: how many pay)");
  EXPECT_EQ(advice_on("plan", "--lr"),
            "it changes neither memory nor time of a step; leave it out");
  EXPECT_EQ(advice_on("gpus", "--zero-stage"), "") << "it has no --parallel";
  EXPECT_EQ(advice_on("predict", "--batchs"), "");
}

TEST(FieldWordsTest, WhatIsForecastIsNoFlag) {
  EXPECT_EQ(advice_on("predict", "--why"), "it is --explain here");
  EXPECT_NE(advice_on("plan", "--max-price").find("--run-budget"), std::string::npos);
  EXPECT_NE(advice_on("plan", "--epoch-time").find("stoker watch"), std::string::npos);
  EXPECT_EQ(advice_on("gpus", "--max-price"), "") << "it has no --budget";
}

TEST(FieldWordsTest, OneWordMeansWhatItsVerbDoes) {
  EXPECT_NE(advice_on("calibrate", "--gpu").find("--device cuda:0"), std::string::npos);
  EXPECT_NE(advice_on("validate", "--gpu").find("--machine"), std::string::npos);
  EXPECT_NE(advice_on("watch", "--gpu").find("stoker watch PID"), std::string::npos);
  EXPECT_NE(advice_on("plan", "--shuffle").find("leave it out"), std::string::npos);
}

TEST(FieldWordsTest, FlagsAreFoundByTheirWords) {
  const std::vector<std::string> names{"--gpus",       "--num-gpus",   "--workers", "--num-workers",
                                       "--batch-size", "--image-size", "--batch"};
  EXPECT_EQ(flag_by_words("--workers-count", names), "--workers");
  EXPECT_EQ(flag_by_words("--n_gpu", names), "--gpus");
  EXPECT_EQ(flag_by_words("--num-worker", names), "--num-workers");
  EXPECT_EQ(flag_by_words("--train-batch-size", names), "--batch-size");
  EXPECT_EQ(flag_by_words("--size-of-image", names), "--image-size");
  EXPECT_EQ(flag_by_words("--momentum", names), "");
}

}  // namespace
}  // namespace stoker::cli
