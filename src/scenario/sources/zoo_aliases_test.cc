#include "scenario/sources/zoo_aliases.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

const std::vector<std::string> kNames{"bert_base", "llama_3_8b", "yolo_s", "gpt2"};

TEST(ZooAliases, AreNamesOfTheSameNetwork) {
  EXPECT_EQ(zoo_alias("llama-3-8b", {"llama_3_8b"}), "") << "its own spelling is no alias";
  EXPECT_EQ(zoo_alias("Llama3", kNames), "llama_3_8b");
  EXPECT_EQ(zoo_alias("bert-base-uncased", kNames), "bert_base");
  EXPECT_EQ(zoo_alias("mistral", kNames), "") << "not in this zoo";
  EXPECT_EQ(zoo_alias("bert-huge", kNames), "");
}

TEST(ZooAliases, RelativesStandForNoOther) {
  EXPECT_EQ(zoo_relative("yolov8n", kNames), "yolo_s");
  EXPECT_EQ(zoo_relative("roberta-large", kNames), "bert_base");
  EXPECT_EQ(zoo_relative("nanoGPT", kNames), "gpt2");
  EXPECT_EQ(zoo_relative("resnext", kNames), "");
}

}  // namespace
}  // namespace stoker
