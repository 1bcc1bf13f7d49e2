#include "memory/cuda/allocator_config.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

AllocatorConfig parsed(std::string_view text) {
  const auto config = parse_allocator_config(text);
  EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().text());
  return config.value_or(AllocatorConfig{});
}

std::string complaint(std::string_view text) {
  const auto config = parse_allocator_config(text);
  return config ? "" : config.error().text();
}

TEST(AllocatorSettings, NothingSetMeansPyTorchsDefaults) {
  EXPECT_EQ(parsed(""), AllocatorConfig{});
  EXPECT_EQ(parsed(" "), AllocatorConfig{});
  EXPECT_EQ(AllocatorConfig{}.large_segment, 20 * kMiB);
}

TEST(AllocatorSettings, EveryDeviceSettingIsRead) {
  const AllocatorConfig config = parsed(
      "max_split_size_mb:40, max_non_split_rounding_mb:30,garbage_collection_threshold:0.5,"
      "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1],expandable_segments:True,"
      "pinned_use_background_threads:True,per_process_memory_fraction:0.25");
  EXPECT_EQ(config.max_split_size, 40 * kMiB);
  EXPECT_EQ(config.max_non_split_rounding, 30 * kMiB);
  EXPECT_EQ(config.garbage_collection_threshold, 0.5);
  EXPECT_TRUE(config.expandable_segments);
  EXPECT_EQ(config.memory_fraction, 0.25);
  // Values that PyTorch's own test of this text expects, by size in MiB: 1..64 -> 8, 128 -> 2, ...
  const std::array<std::uint32_t, kRoundupIntervals> divisions{8, 8, 8, 8, 8, 8, 8, 2,
                                                               4, 2, 4, 1, 1, 1, 1, 1};
  EXPECT_EQ(config.roundup_power2_divisions, divisions);
}

TEST(AllocatorSettings, ALargerSegmentRaisesWhatIsMeasuredByItWhereverItStands) {
  const AllocatorConfig config = parsed("max_split_size_mb:64,large_segment_size_mb:32");
  EXPECT_EQ(config.large_segment, 32 * kMiB);
  EXPECT_EQ(config.max_non_split_rounding, 32 * kMiB);
  EXPECT_NE(complaint("max_split_size_mb:30,large_segment_size_mb:32").find("at least 32"),
            std::string::npos);
}

TEST(AllocatorSettings, MistakesAreNamedWithTheirCure) {
  const auto says = [](std::string_view text, std::string_view part) {
    EXPECT_NE(complaint(text).find(part), std::string::npos) << text << " -> " << complaint(text);
  };
  says("max_split_size_mb:10", "at least 20");
  says("large_segment_size_mb:10", "at least 11");
  says("max_split_size:128", "did you mean max_split_size_mb?");
  says("max_split_size_mb", "expected ':'");
  says("max_split_size_mb:", "no value");
  says("max_split_size_mb=128", "write key:value");
  says("max_split_size_mb:many", "whole number");
  says("max_split_size_mb:-5", "whole number");
  says("expandable_segments:true", "True or False");
  says("garbage_collection_threshold:1.5", "between 0 and 1");
  says("garbage_collection_threshold:1", "below 1");
  says("garbage_collection_threshold:nan", "between 0 and 1");
  says("roundup_power2_divisions:3", "power of two");
  says("roundup_power2_divisions:[3:2]", "powers of two in MB");
  says("roundup_power2_divisions:[0:2]", "powers of two in MB");
  says("roundup_power2_divisions:[256:2", "expected ']'");
  says("roundup_power2_divisions:[256:2:4]", "wants [MB:divisions,...]");
  says("backend:cudaMallocAsync", "not modelled");
  says("expandable_segments:True max_split_size_mb:40", "expected ','");
  says("expandable_segments:True,,", "expected ':'");
}

TEST(AllocatorSettings, ALimitTooLargeToCountIsNoLimit) {
  EXPECT_GT(parsed("max_split_size_mb:9223372036854775807").max_split_size,
            Bytes{std::int64_t{1} << 60});
}

TEST(BlockSize, IsAMultipleOf512) {
  const AllocatorConfig config;
  EXPECT_EQ(block_size(Bytes{1}, config), Bytes{512});
  EXPECT_EQ(block_size(Bytes{512}, config), Bytes{512});
  EXPECT_EQ(block_size(Bytes{513}, config), Bytes{1024});
}

TEST(BlockSize, RoundsUpToDivisionsBetweenPowersOfTwo) {
  AllocatorConfig config;
  config.roundup_power2_divisions.fill(4);
  EXPECT_EQ(block_size(Bytes{1200}, config), Bytes{1536});  // not above 512 * 4: plain rounding
  EXPECT_EQ(block_size(5 * kKiB, config), 5 * kKiB);        // 4, 5, 6, 7 KiB
  EXPECT_EQ(block_size(5 * kKiB + Bytes{1}, config), 6 * kKiB);
  EXPECT_EQ(block_size(7 * kMiB + Bytes{1}, config), 8 * kMiB);
  EXPECT_EQ(block_size(8 * kMiB, config), 8 * kMiB);
}

TEST(BlockSize, EachIntervalHasItsOwnDivisions) {
  AllocatorConfig config;
  config.roundup_power2_divisions[1] = 2;  // [2 MiB, 4 MiB)
  EXPECT_EQ(block_size(2 * kMiB + Bytes{1}, config), 3 * kMiB);
  EXPECT_EQ(block_size(4 * kMiB + Bytes{1}, config), 4 * kMiB + Bytes{512});
  EXPECT_EQ(block_size(2 * kMiB - Bytes{1}, config), 2 * kMiB);
}

TEST(SegmentSize, FollowsPyTorchsThreeSteps) {
  AllocatorConfig config;
  EXPECT_EQ(segment_size(kMiB, config), 2 * kMiB);
  EXPECT_EQ(segment_size(kMiB + Bytes{512}, config), 20 * kMiB);
  EXPECT_EQ(segment_size(10 * kMiB - Bytes{512}, config), 20 * kMiB);
  EXPECT_EQ(segment_size(10 * kMiB, config), 10 * kMiB);
  EXPECT_EQ(segment_size(10 * kMiB + Bytes{512}, config), 12 * kMiB);
  config.large_segment = 40 * kMiB;
  EXPECT_EQ(segment_size(2 * kMiB, config), 40 * kMiB);
}

}  // namespace
}  // namespace stoker
