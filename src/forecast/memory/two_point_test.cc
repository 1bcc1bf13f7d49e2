#include "forecast/memory/two_point.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr Bytes mib(std::int64_t n) { return n * kMiB; }

TEST(TwoPoint, ByHand) {
  // 3,100 MiB at 10 and 9,900 at 50: 170 a sample, 1,400 without any.
  const auto estimate = two_point_estimate({{{10, mib(3100)}, {50, mib(9900)}}}, 16 * kGiB, 4);
  ASSERT_TRUE(estimate) << estimate.error().text();
  EXPECT_DOUBLE_EQ(estimate->per_sample_bytes, static_cast<double>(mib(170).count()));
  EXPECT_DOUBLE_EQ(estimate->fixed_bytes, static_cast<double>(mib(1400).count()));
  EXPECT_EQ(estimate->batch, 79);                // (16,384 - 1,536 - 1,400) / 170 = 79.1
  EXPECT_EQ(estimate->batch_at_least_kept, 82);  // (16,384 - 1,024 - 1,400) / 170 = 82.1
  EXPECT_EQ(estimate->global_batch(), 4 * 79);
}

TEST(TwoPoint, TheOrderOfTheReadingsDoesNotMatter) {
  const auto one = two_point_estimate({{{10, mib(3100)}, {50, mib(9900)}}}, 16 * kGiB);
  const auto other = two_point_estimate({{{50, mib(9900)}, {10, mib(3100)}}}, 16 * kGiB);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->batch, other->batch);
}

TEST(TwoPoint, AFullCardLeavesNoSample) {
  const auto estimate = two_point_estimate({{{1, mib(9000)}, {2, mib(9500)}}}, 8 * kGiB);
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->batch, 0);
  EXPECT_EQ(estimate->batch_at_least_kept, 0);
}

TEST(TwoPoint, MemoryThatGrowsFasterThanTheBatchHasANegativeRest) {
  const auto estimate = two_point_estimate({{{10, mib(1000)}, {20, mib(3000)}}}, 16 * kGiB);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->fixed_bytes, static_cast<double>(mib(-1000).count()));
  EXPECT_EQ(estimate->batch, (16384 - 1536 + 1000) / 200);
}

TEST(TwoPoint, ContradictionsAreRefusedWithTheCure) {
  const auto refused = [](MemoryReading a, MemoryReading b) {
    const auto estimate = two_point_estimate({{a, b}}, 16 * kGiB);
    EXPECT_FALSE(estimate);
    return estimate ? std::string() : estimate.error().text();
  };
  EXPECT_NE(refused({10, mib(3000)}, {50, mib(2000)}).find("contradict"), std::string::npos);
  EXPECT_NE(refused({50, mib(2000)}, {10, mib(3000)}).find("2.0 GiB at batch 50"),
            std::string::npos);
  EXPECT_NE(refused({10, mib(3000)}, {50, mib(3000)}).find("contradict"), std::string::npos);
  EXPECT_NE(refused({10, mib(3000)}, {10, mib(4000)}).find("far apart"), std::string::npos);
  EXPECT_NE(refused({0, mib(3000)}, {10, mib(4000)}).find("at least 1"), std::string::npos);
  EXPECT_NE(refused({5, Bytes(0)}, {10, mib(4000)}).find("some memory"), std::string::npos);
}

TEST(TwoPoint, ReadingsTooCloseToTellAreRefused) {
  const auto estimate = two_point_estimate(
      {{{1, Bytes(1 << 30)}, {std::int64_t{1} << 32, Bytes((1 << 30) + 1)}}}, 16 * kGiB);
  ASSERT_FALSE(estimate);
  EXPECT_NE(estimate.error().text().find("too close"), std::string::npos);
}

}  // namespace
}  // namespace stoker
