#include "input/findings/what_if.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// Images of one size; native cost: 1 ms to read, 4 to decode, 2 to resize, 1 for each later
/// stage.
Probe pictures(int width, int height, int count) {
  Probe probe;
  SampleRecord record;
  record.width = width;
  record.height = height;
  record.bytes = Bytes(400'000);
  for (std::size_t s = 0; s < kStageCount; ++s) record.stage[s] = kMillisecond;
  record.stage[static_cast<std::size_t>(Stage::kDecode)] = Nanos(4e6);
  record.stage[static_cast<std::size_t>(Stage::kResize)] = Nanos(2e6);
  probe.samples.assign(static_cast<std::size_t>(count), record);
  probe.dataset.files = count;
  probe.dataset.mean_bytes = 400'000;
  probe.dataset.total_bytes = Bytes(400'000LL * count);
  probe.dataset.mean_pixels = static_cast<double>(width) * height;
  return probe;
}

TEST(SmallerPictures, ShrinkWholePictureStagesWithTheirPixels) {
  const LoaderProfile profile;  // ratio 1: Python costs what C++ does
  const Probe probe = pictures(1024, 512, 3);
  SampleCost like;
  like.output = Bytes(1000);
  const auto smaller = smaller_pictures(probe, 256, like, profile);
  ASSERT_TRUE(smaller);
  // Half the side, a quarter of the pixels: (1 + 4 + 2) / 4 ms, and three stages of 1 ms that stay.
  EXPECT_NEAR(milliseconds(smaller->mean_cpu()), 7.0 / 4 + 3, 1e-9);
  EXPECT_NEAR(smaller->read_bytes, 100'000, 1);
  EXPECT_EQ(smaller->dataset_bytes, Bytes(300'000));
  EXPECT_EQ(smaller->output, Bytes(1000));
}

TEST(SmallerPictures, CountPicturesNotShards) {
  Probe probe = pictures(1024, 512, 3);
  probe.kind = DataKind::kTarShards;
  probe.dataset.files = 1;
  probe.dataset.samples = 3;
  const auto smaller = smaller_pictures(probe, 256, SampleCost{}, LoaderProfile{});
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->dataset_bytes, Bytes(300'000));
  EXPECT_NEAR(smaller->read_bytes, 100'000, 1);
}

TEST(DraftPictures, AreForJpegOnly) {
  Probe probe = pictures(1024, 512, 3);
  for (SampleRecord& sample : probe.samples) sample.png = true;
  EXPECT_FALSE(draft_pictures(probe, 256, SampleCost{}, LoaderProfile{}));
}

TEST(SmallerPictures, NothingToGainIsNoAdvice) {
  const LoaderProfile profile;
  EXPECT_FALSE(smaller_pictures(pictures(300, 256, 2), 256, SampleCost{}, profile));
  EXPECT_FALSE(smaller_pictures(pictures(200, 100, 2), 256, SampleCost{}, profile));
}

TEST(DraftPictures, OnlyWhatGoesWithThePixelsShrinks) {
  const LoaderProfile profile;
  Probe probe = pictures(1024, 512, 3);  // at 256 px: half the side
  probe.decode.per_megapixel = 3 / (1024 * 512e-6);
  probe.decode.per_megabyte = 1 / 0.4;  // 3 of the 4 ms go with the pixels
  SampleCost like;
  like.output = Bytes(1000);
  const auto draft = draft_pictures(probe, 256, like, profile);
  ASSERT_TRUE(draft);
  // 1 to read, 3/4 + 1 to decode, 2/4 to resize, three later stages.
  EXPECT_NEAR(milliseconds(draft->mean_cpu()), 1 + 1.75 + 0.5 + 3, 1e-9);
  EXPECT_EQ(draft->read_bytes, 400'000);
  EXPECT_FALSE(draft_pictures(probe, 300, like, profile));  // no scale leaves 300 px
}

TEST(BytesToGpu, LeavesOutWhatABatchCanDoThere) {
  const LoaderProfile profile;
  SampleCost like;
  like.output = Bytes(4000);
  const SampleCost cost = bytes_to_gpu(pictures(512, 512, 2), like, profile);
  EXPECT_NEAR(milliseconds(cost.mean_cpu()), 1 + 4 + 2, 1e-9);
  EXPECT_EQ(cost.output, Bytes(1000));
}

TEST(BytesToGpu, OfAPipelineGoesByTheNamesOfItsStages) {
  PipelineProbe probe;
  probe.stages = {{"decode", {}, 0.6}, {"ToTensor", {}, 0.1}, {"Normalize", {}, 0.1}};
  probe.output = "tuple(float32[3, 224, 224], int)";
  SampleCost like;
  like.cpu = {10 * kMillisecond};
  like.output = Bytes(4000);
  const auto cost = bytes_to_gpu(probe, like);
  ASSERT_TRUE(cost);
  EXPECT_NEAR(milliseconds(cost->mean_cpu()), 8, 1e-9);
  EXPECT_EQ(cost->output, Bytes(1000));
  probe.output = "float32[80, 3000]";  // a spectrogram
  EXPECT_FALSE(bytes_to_gpu(probe, like));
}

TEST(FasterDecoder, ShortensDecodingAlone) {
  const LoaderProfile profile;
  const SampleCost cost = faster_decoder(pictures(512, 512, 2), 2, SampleCost{}, profile);
  EXPECT_NEAR(milliseconds(cost.mean_cpu()), 1 + 2 + 2 + 3, 1e-9);
  PipelineProbe probe;
  SampleCost like;
  like.cpu = {10 * kMillisecond};
  EXPECT_FALSE(faster_decoder(probe, 2, like));
  probe.stages = {{"decode", {}, 0.6}};
  EXPECT_NEAR(milliseconds(faster_decoder(probe, 2, like)->mean_cpu()), 7, 1e-9);
}

TEST(PackedInShards, ReadsWithoutASeek) {
  SampleCost sample;
  sample.cold_seek_ms = 8;
  sample.cold_bandwidth = 1e8;
  EXPECT_EQ(packed_in_shards(sample).cold_seek_ms, 0);
  EXPECT_EQ(packed_in_shards(sample).cold_bandwidth, 1e8);
}

}  // namespace
}  // namespace stoker
