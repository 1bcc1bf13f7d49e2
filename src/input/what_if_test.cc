#include "input/what_if.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// Pictures of one size; native cost: 1 ms to read, 4 to decode, 2 to resize, 1 for each later
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

TEST(SmallerPictures, NothingToGainIsNoAdvice) {
  const LoaderProfile profile;
  EXPECT_FALSE(smaller_pictures(pictures(300, 256, 2), 256, SampleCost{}, profile));
  EXPECT_FALSE(smaller_pictures(pictures(200, 100, 2), 256, SampleCost{}, profile));
}

}  // namespace
}  // namespace stoker
