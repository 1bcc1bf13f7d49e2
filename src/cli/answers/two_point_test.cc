#include "cli/answers/two_point.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(Readings, BatchAndMemoryOrAuto) {
  const auto both = parse_readings({"10:3.1GiB", "50:auto"});
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_EQ((*both)[0].batch, 10);
  EXPECT_EQ((*both)[0].bytes, Bytes(3328599654))
      << "3.1 times 2^30, without the fraction of a byte";
  EXPECT_EQ((*both)[1].batch, 50);
  EXPECT_FALSE((*both)[1].bytes);
}

TEST(Readings, NoneGivenAreSimulatedAtTheThesisBatches) {
  const auto both = parse_readings({});
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0].batch, kThesisBatches[0]);
  EXPECT_EQ((*both)[1].batch, kThesisBatches[1]);
  EXPECT_FALSE((*both)[0].bytes || (*both)[1].bytes);
}

TEST(Readings, WhatIsNoneSaysWhy) {
  struct Case {
    std::vector<std::string> texts;
    const char* why;
  };
  for (const Case& c :
       {Case{{"10:1GB"}, "exactly two readings, not 1"},
        Case{{"1:1GB", "2:2GB", "3:3GB"}, "exactly two readings, not 3"},
        Case{{"10", "50:2GB"}, "no colon"}, Case{{"ten:1GB", "50:2GB"}, "its batch"},
        Case{{"0:1GB", "50:2GB"}, "its batch"}, Case{{"10x:1GB", "50:2GB"}, "its batch"},
        Case{{"-5:1GB", "50:2GB"}, "its batch"}, Case{{":1GB", "50:2GB"}, "its batch"},
        Case{{"10:3000", "50:2GB"}, "no unit"}, Case{{"10:lots", "50:2GB"}, "its memory"},
        Case{{"10:", "50:2GB"}, "its memory"}}) {
    const auto both = parse_readings(c.texts);
    ASSERT_FALSE(both) << c.texts[0];
    EXPECT_NE(both.error().text().find(c.why), std::string::npos) << both.error().text();
    EXPECT_NE(both.error().text().find("--reading"), std::string::npos) << both.error().text();
  }
}

TEST(Measured, AStraightLineByHand) {
  // 2 GiB at 10 and 4 GiB at 30: 102.4 MiB a sample on 1 GiB; 16 GiB - 1.5 GiB - 1 GiB hold 135.
  DeviceFacts gpu;
  gpu.name = "mine";
  gpu.memory = kGiB * 16;
  const auto answer = answer_measured({{{30, kGiB * 4}, {10, kGiB * 2}}}, gpu, 4);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->gpu_name, "mine");
  EXPECT_DOUBLE_EQ(answer->estimate.per_sample_bytes, 102.4 * 1024 * 1024);
  EXPECT_NEAR(answer->estimate.fixed_bytes, 1024.0 * 1024 * 1024, 1);
  EXPECT_EQ(answer->estimate.batch, 135);
  EXPECT_EQ(answer->estimate.batch_at_least_kept, 140);
  EXPECT_EQ(answer->estimate.global_batch(), 540);
  EXPECT_EQ(answer->readings[0].batch, 30) << "as they were given";
  EXPECT_FALSE(answer->simulated[0] || answer->simulated[1]);
}

TEST(Measured, ReadingsThatContradictAreRefused) {
  DeviceFacts gpu;
  gpu.memory = kGiB * 16;
  EXPECT_FALSE(answer_measured({{{10, kGiB * 4}, {30, kGiB * 2}}}, gpu, 1));
  EXPECT_FALSE(answer_measured({{{10, kGiB}, {10, kGiB * 2}}}, gpu, 1));
}

}  // namespace
}  // namespace stoker::cli
