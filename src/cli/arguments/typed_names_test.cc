#include "cli/arguments/typed_names.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

using Words = std::vector<std::string>;

Words ours(std::string_view verb, const Words& words) {
  const auto result = in_our_names(verb, words);
  return result ? result->words : Words{result.error().text()};
}

TEST(TypedNamesTest, TheEcosystemsNamesBecomeOurs) {
  EXPECT_EQ(ours("predict", {"m", "--num-workers", "4", "--batch-size=32", "--pin-memory"}),
            (Words{"m", "--workers", "4", "--batch=32", "--pin"}));
  EXPECT_EQ(ours("plan", {"--prefetch-factor", "2", "--gradient-accumulation-steps", "8"}),
            (Words{"--prefetch", "2", "--accumulate", "8"}));
  EXPECT_EQ(ours("predict", {"--no-pin-memory", "--no-clip"}), (Words{"--no-pin", "--no-clip"}));
}

TEST(TypedNamesTest, SwitchesOfTheFieldBecomeSettings) {
  EXPECT_EQ(ours("predict", {"gpt2", "--gradient_checkpointing", "--bf16", "--batch", "8"}),
            (Words{"gpt2", "--checkpoint=blocks", "--precision=amp-bf16", "--batch", "8"}));
  EXPECT_EQ(ours("predict", {"gpt2", "--no-gradient-checkpointing"}), Words{"gpt2"});
  EXPECT_EQ(ours("predict", {"--bf16", "--precision", "fp32"}),
            Words{"--precision: names the same setting as --bf16; give one of them"});
}

TEST(TypedNamesTest, UnderscoresCountAsDashes) {
  EXPECT_EQ(ours("predict", {"--per_device_train_batch_size", "8", "--max_epochs=3"}),
            (Words{"--batch", "8", "--epochs=3"}));
}

TEST(TypedNamesTest, ValuesAndForeignFlagsStayAsTheyAre) {
  EXPECT_EQ(ours("predict", {"m", "--optim", "adamw_torch", "--seq=512"}),
            (Words{"m", "--optimizer", "adamw_torch", "--seq-len=512"}));
  EXPECT_EQ(ours("predict", {"--gpu", "num-workers", "--nummer", "-4", "--", "--batch-size"}),
            (Words{"--gpu", "num-workers", "--nummer", "-4", "--", "--batch-size"}));
  EXPECT_EQ(ours("gpus", {"--batch-size", "3"}), (Words{"--batch-size", "3"}));
}

TEST(TypedNamesTest, SentencesNameWhatWasTyped) {
  const auto words = in_our_names("predict", {"--num_workers", "4", "--batch", "3"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->as_typed("--workers: must be 1; not --workers-per-node, --batch"),
            "--num_workers: must be 1; not --workers-per-node, --batch");
}

TEST(TypedNamesTest, TwoNamesOfOneSettingAreRefused) {
  EXPECT_EQ(ours("predict", {"--workers", "4", "--num-workers", "2"}),
            Words{"--num-workers: names the same setting as --workers; give one of them"});
  EXPECT_EQ(ours("predict", {"--no-pin", "--pin-memory"}),
            Words{"--pin-memory: contradicts --no-pin; give one of them"});
}

}  // namespace
}  // namespace stoker::cli
