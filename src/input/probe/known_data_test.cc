#include "input/probe/known_data.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

LoaderProfile profile() {
  LoaderProfile p;
  p.native_ns_per_pixel = 2.56;
  for (StageCoefficients& stage : p.stage) stage = {.constant_ms = 0.1, .ratio = 1};
  return p;
}

constexpr std::int64_t kSide = 224;
const OutputShape kPicture{Bytes(3 * kSide * kSide * 4 + 8), 2};

TEST(KnownData, AnswersToItsNamesHoweverTheyAreWritten) {
  ASSERT_NE(known_data("ImageNet"), nullptr);
  EXPECT_EQ(known_data("imagenet-1k"), known_data("imagenet"));
  EXPECT_EQ(known_data("ILSVRC2012"), known_data("imagenet"));
  EXPECT_EQ(known_data("openwebtext"), known_data("OpenWebText-tokens"));
  EXPECT_EQ(known_data("imagenets"), nullptr);
  EXPECT_EQ(known_data(""), nullptr);
}

TEST(KnownData, HasPublishedSamplesAndBytes) {
  const SampleCost cost = sample_cost_known(*known_data("imagenet"), kSide, profile(), kPicture);
  EXPECT_EQ(cost.dataset_samples, 1'281'167);
  EXPECT_NEAR(static_cast<double>(cost.dataset_bytes.count()), 147.9e9, 0.1e9);
  EXPECT_EQ(cost.output, kPicture.bytes_per_sample);
  EXPECT_TRUE(cost.known);
  EXPECT_EQ(cost.band.above, 0.5);
  EXPECT_NE(cost.basis.find("not measured here"), std::string::npos);
}

TEST(KnownData, PicturesCostDecodingResizingAndTheCrop) {
  const auto cost = [](std::int64_t side) {
    return sample_cost_known(*known_data("imagenet"), side, profile(), kPicture).mean_cpu();
  };
  // Six stages of 0.1 ms; 0.1815 megapixels, 0.1154 megabytes; 8.06 ns a pixel of the crop.
  const double stages = 0.6 + 0.036 + 1.5 * 0.181503 + 6.4 * 0.1154 + 2 * 0.181503;
  EXPECT_NEAR(milliseconds(cost(kSide)), stages + 8.06e-6 * kSide * kSide, 1e-3);
  EXPECT_GT(cost(448), cost(kSide));
}

TEST(KnownData, TokensMakeAsManySamplesAsTheLengthLeaves) {
  constexpr std::int64_t kLength = 1024;
  const OutputShape windows{Bytes(2 * kLength * 8), 2};
  const SampleCost cost =
      sample_cost_known(*known_data("openwebtext-tokens"), 0, profile(), windows);
  EXPECT_EQ(cost.dataset_samples, 8'823'811);
  EXPECT_EQ(cost.read_bytes, 2 * kLength);
  EXPECT_NEAR(cost.mean_cpu().count(), 4.8e3 + 0.55 * kLength, 0.1);
}

TEST(KnownData, PixelsInMemoryAreNotRead) {
  const SampleCost cost = sample_cost_known(*known_data("cifar10"), 32, profile(), kPicture);
  EXPECT_EQ(cost.read_bytes, 0);
  EXPECT_EQ(cost.dataset_samples, 50'000);
}

TEST(KnownData, SpeechCostsItsSeconds) {
  const SampleCost cost = sample_cost_known(*known_data("librispeech"), 0, profile(), {});
  EXPECT_NEAR(milliseconds(cost.mean_cpu()), 12.3 * 0.28, 1e-9);
  EXPECT_EQ(cost.band.above, 0.7);
}

}  // namespace
}  // namespace stoker
