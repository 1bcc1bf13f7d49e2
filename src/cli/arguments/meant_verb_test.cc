#include "cli/arguments/meant_verb.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stoker::cli {
namespace {

const std::vector<std::string> kVerbs{"plan",      "predict", "fit", "tune",
                                      "run-trial", "watch",   "gpus"};

std::string meant(const std::string& line) { return meant_command(split(line, ' '), kVerbs); }

TEST(MeantVerbTest, VerbsAreFoundByWhatTheyAreFor) {
  EXPECT_EQ(verb_by_meaning("how-many-workers"), "plan MODEL --gpu GPU --data FOLDER");
  EXPECT_EQ(verb_by_meaning("profile"), "explain FILE");
  EXPECT_EQ(verb_by_meaning("estimate-vram"), "predict MODEL --gpu GPU --batch N");
  EXPECT_EQ(verb_by_meaning("fits"), "predict MODEL --gpu GPU --batch N");
  EXPECT_EQ(verb_by_meaning("batch-size"), "predict MODEL --gpu GPU --batch max");
  EXPECT_EQ(verb_by_meaning("instances"), "gpus --instances");
  EXPECT_EQ(verb_by_meaning("frobnicate"), "");
}

TEST(MeantVerbTest, PartsWithinWordsMeanNothing) {
  EXPECT_EQ(verb_by_meaning("prune"), "") << "run is a part of it";
  EXPECT_EQ(verb_by_meaning("discard"), "");
  EXPECT_EQ(verb_by_meaning("run"), "watch -- python train.py");
  EXPECT_EQ(verb_by_meaning("gpu-memory"), "predict MODEL --gpu GPU --batch N");
}

TEST(MeantVerbTest, MisspeltVerbsAreLeftToTheirSpelling) {
  EXPECT_EQ(meant("runtrial"), "") << "rather than run";
  EXPECT_EQ(meant("gpuss"), "") << "rather than gpu, which lists them";
  EXPECT_EQ(meant("fits"), "predict MODEL --gpu GPU --batch N") << "a word of its own";
}

TEST(MeantVerbTest, WhatWasTypedIsPutInItsPlaces) {
  EXPECT_EQ(meant("fits resnet50 --gpu v100 --batch 256"),
            "predict resnet50 --gpu v100 --batch 256");
  EXPECT_EQ(meant("fits resnet50 192 v100-16gb"), "predict resnet50 --gpu v100-16gb --batch 192")
      << "as stoker.fits() of Python takes them";
  EXPECT_EQ(meant("batch-size resnet50 --gpu=t4"), "predict resnet50 --gpu t4 --batch max");
  EXPECT_EQ(meant("optimize gpt2 --gpu a100 --seq-len 512 --qlora"),
            "plan gpt2 --gpu a100 --seq-len 512 --qlora");
  EXPECT_EQ(meant("profile trace.json"), "explain trace.json");
  EXPECT_EQ(meant("price aws"), "gpus --instances aws");
  EXPECT_EQ(meant("workers"), "plan MODEL --gpu GPU --data FOLDER");
  EXPECT_EQ(meant_command({"vram", "gpt2", "--gpu", "RTX 4090"}, kVerbs),
            "predict gpt2 --gpu \"RTX 4090\" --batch N");
}

TEST(MeantVerbTest, GpusToCompareAreToldFromModels) {
  EXPECT_EQ(meant("compare resnet50 t4 a100"), "plan resnet50 --gpu t4,a100");
  EXPECT_EQ(meant("compare t4 a100"), "plan MODEL --gpu t4,a100");
  EXPECT_EQ(meant("compare resnet50 --gpu t4,l4"), "plan resnet50 --gpu t4,l4");
  EXPECT_EQ(meant("compare resnet50 gpt2"), "plan resnet50 --gpu A,B") << "two models";
  EXPECT_EQ(meant("compare t4 and a100 for resnet50"), "plan resnet50 --gpu t4,a100");
  EXPECT_EQ(meant("fits resnet50 64 3090"), "predict resnet50 --gpu 3090 --batch 64");
}

TEST(MeantVerbTest, SentencesAreUnderstoodByTheirWords) {
  EXPECT_EQ(meant("how many workers for resnet50 on t4"), "plan resnet50 --gpu t4 --data FOLDER");
  EXPECT_EQ(meant("will llama_3_8b fit on a 3090?"), "predict llama_3_8b --gpu 3090 --batch N");
  EXPECT_EQ(meant("how many gpus do I need for gpt2"), "plan gpt2 --gpu GPU --gpus 1..8");
  EXPECT_EQ(meant_command({"why is my training slow"}, kVerbs), "watch -- python train.py");
  EXPECT_EQ(meant("why is my gpu idle"), "watch -- python train.py");
  EXPECT_EQ(meant("can I train llama on a 3090"), "predict llama --gpu 3090 --batch N");
  EXPECT_EQ(meant("tell me a joke"), "");
}

}  // namespace
}  // namespace stoker::cli
