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
  EXPECT_EQ(advice_on("predict", "--load_in_4bit"), "4-bit weights are not modelled");
  EXPECT_EQ(advice_on("gpus", "--zero-stage"), "") << "it has no --parallel";
  EXPECT_EQ(advice_on("predict", "--batchs"), "");
}

}  // namespace
}  // namespace stoker::cli
