#include "cli/arguments/refused_words.h"

#include <gtest/gtest.h>

#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

/// What a real verb answers to words that it cannot take.
std::string refused(const std::string& verb, const std::vector<std::string>& words) {
  for (const Section& section : all_verbs()) {
    for (const Command& command : section.commands) {
      if (command.name != verb) continue;
      const Status status = parse_words(command, words);
      return status ? "" : status.error().text();
    }
  }
  return "no such verb";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RefusedWordsTest, WordsBehindAFlagAreWrittenAsItsValue) {
  const std::string text =
      refused("plan", {"resnet50", "--gpu", "NVIDIA", "GeForce", "RTX", "3060"});
  EXPECT_TRUE(text.starts_with("words too many: GeForce RTX 3060; ")) << text;
  EXPECT_TRUE(holds(text, "--gpu \"NVIDIA GeForce RTX 3060\"")) << text;
  EXPECT_TRUE(holds(refused("plan", {"m", "--gpu", "a100", "h100"}), "--gpu a100,h100"));
  const std::string versus = refused("plan", {"m", "--gpu", "a100", "vs", "h100"});
  EXPECT_TRUE(holds(versus, "commas: --gpu a100,h100 (")) << versus;
  EXPECT_TRUE(holds(refused("plan", {"m", "--gpu=t4", "--host=cores=8", "ram=32G"}),
                    "; parts stand with commas: --host cores=8,ram=32G"));
  EXPECT_TRUE(holds(refused("plan", {"m", "--gpu", "t4", "--samples", "10B", "tokens"}),
                    "--samples \"10B tokens\""));
}

TEST(RefusedWordsTest, WordsBehindTheModelAreWrittenAsItIsMeant) {
  EXPECT_TRUE(holds(refused("plan", {"resnet", "50", "--gpu", "t4"}),
                    "a model's name has no blanks: resnet-50"));
  EXPECT_TRUE(holds(refused("plan", {"gpt2", "on", "t4"}), "stoker plan gpt2 --gpu t4"));
  EXPECT_TRUE(holds(refused("plan", {"python", "train.py", "--gpu", "t4"}),
                    "the script stands without python, what it takes behind --: stoker plan "
                    "train.py --gpu GPU -- ARGUMENTS"));
  EXPECT_TRUE(holds(refused("plan", {"train.py", "small", "--gpu", "t4"}),
                    "what train.py itself takes goes behind --: -- small"));
}

TEST(RefusedWordsTest, AMissingGpuIsShownInItsPlace) {
  EXPECT_EQ(refused("predict", {"resnet50", "t4"}),
            "the GPU is named by --gpu: stoker predict resnet50 --gpu t4 (stoker predict --help)");
  EXPECT_TRUE(refused("predict", {"gpt2"})
                  .starts_with("--gpu is missing, as in stoker predict gpt2 --gpu t4: "));
  EXPECT_TRUE(refused("predict", {}).starts_with("MODEL and --gpu are missing, as in "));
  EXPECT_TRUE(refused("predict", {"--batch", "4", "gpt2"})
                  .starts_with("--gpu is missing, as in stoker predict MODEL --gpu t4: "));
}

TEST(RefusedWordsTest, OneDashIsTooFew) {
  EXPECT_EQ(refused("predict", {"resnet50", "-gpu", "t4"}),
            "unknown flag -gpu; flags have two dashes: --gpu");
  EXPECT_TRUE(holds(refused("predict", {"resnet50", "--gpu", "t4", "-batch=4"}), "--batch"));
}

TEST(RefusedWordsTest, ACommandStandsBehindItsDashes) {
  EXPECT_TRUE(holds(refused("tune", {"python", "train.py"}),
                    "the command stands behind --: -- python train.py"));
}

TEST(RefusedWordsTest, ASwitchTakesNoValue) {
  EXPECT_TRUE(
      holds(refused("predict", {"m", "--gpu", "t4", "--qlora", "r=16"}), "--lora r=16 --qlora"));
  EXPECT_TRUE(holds(refused("predict", {"m", "--gpu", "t4", "--explain", "yes"}),
                    "--explain takes no value"));
}

TEST(RefusedWordsTest, AMissingValueIsDescribed) {
  const std::string text = refused("predict", {"m", "--gpu", "t4", "--lora"});
  EXPECT_TRUE(text.starts_with("--lora lacks its value: --lora r=N[,targets=A,B], ")) << text;
}

TEST(RefusedWordsTest, AValueGivenTwiceIsAskedForOnce) {
  const std::string text = refused("predict", {"m", "--gpu", "t4", "--gpu", "a100"});
  EXPECT_TRUE(text.starts_with("--gpu is given twice; give it once: --gpu GPU, GPU (")) << text;
  EXPECT_TRUE(holds(text, "side by side: a,b,c")) << text;
}

TEST(RefusedWordsTest, UnitsThatASettingDoesNotTakeAreLeftOut) {
  EXPECT_TRUE(holds(refused("predict", {"m", "--gpu", "t4", "--workers", "4cores"}),
                    "is no whole number; write 4; it takes"));
  EXPECT_EQ(refused("predict", {"m", "--gpu", "t4", "--image-size", "224x224"}), "");
}

TEST(RefusedWordsTest, FlagsOfAnotherVerbOrOfTheScriptAreToldApart) {
  EXPECT_TRUE(holds(refused("gpus", {"--epochs", "3"}), "it is a flag of stoker plan, predict"));
  EXPECT_TRUE(holds(refused("fit", {"resnet50", "--gpu", "t4", "--batch", "64"}),
                    "says stoker predict MODEL --gpu GPU --batch N"));
  EXPECT_TRUE(holds(refused("plan", {"train.py", "--gpu", "t4", "--lr", "0.1"}),
                    "what train.py itself takes goes behind --: -- --lr 0.1"));
  EXPECT_FALSE(holds(refused("plan", {"gpt2", "--gpu", "t4", "--lr", "0.1"}), "goes behind --"));
}

TEST(RefusedWordsTest, GpusAreListedByTheirNames) {
  EXPECT_TRUE(holds(refused("gpus", {"rtx", "4090"}), "stoker gpus \"rtx 4090\""));
  EXPECT_EQ(refused("gpus", {"a100", "--memory", "40"}), "");
}

}  // namespace
}  // namespace stoker::cli
