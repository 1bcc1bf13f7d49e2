#include "scenario/sources/library_names.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(LibraryNames, AreOfTheOrganisationThatPublishesTheFamily) {
  EXPECT_EQ(library_name("llama-2-7b"), "hf:meta-llama/llama-2-7b");
  EXPECT_EQ(library_name("gemma-2b"), "hf:google/gemma-2b");
  EXPECT_EQ(library_name("Qwen2-7B"), "hf:Qwen/Qwen2-7B");
  EXPECT_EQ(library_name("gpt2-xl"), "hf:openai-community/gpt2-xl");
  EXPECT_EQ(library_name("tinyllama-1.1b"), "hf:TinyLlama/tinyllama-1.1b");
}

TEST(LibraryNames, LackASizeWhereNoneWasTyped) {
  EXPECT_EQ(library_name("llama2"), "hf:meta-llama/NAME");
  EXPECT_EQ(library_name("phi-2"), "hf:microsoft/phi-2") << "its number names it";
}

TEST(LibraryNames, OfVisionAreThoseOfPythonsLibraries) {
  EXPECT_EQ(library_name("MobileNet-v2"), "torchvision:mobilenet_v2");
  EXPECT_EQ(library_name("cait_s24_224"), "timm:cait_s24_224");
  EXPECT_EQ(library_name("vit_small_patch16_224"), "timm:vit_small_patch16_224");
  EXPECT_EQ(library_name("vit-large-patch16-224"), "hf:google/vit-large-patch16-224");
  EXPECT_EQ(library_name("resnet"), "") << "a family, not a network";
}

TEST(LibraryNames, AreNotMadeOfWordsThatOnlyBeginAlike) {
  EXPECT_EQ(library_name("sample_model"), "") << "no Segment Anything";
  EXPECT_EQ(library_name("sam-vit-base"), "hf:facebook/sam-vit-base");
  EXPECT_EQ(library_name("sdxl"), "") << "diffusers' own format";
  EXPECT_EQ(library_name("llama;rm -r 7b"), "") << "nothing that a shell would take apart";
}

}  // namespace
}  // namespace stoker
