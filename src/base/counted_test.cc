#include "base/counted.h"

#include <gtest/gtest.h>

#include "base/percent.h"

namespace stoker {
namespace {

TEST(Counted, OneIsOneAndTheOthersAreSeveral) {
  EXPECT_EQ(counted(1, "worker"), "1 worker");
  EXPECT_EQ(counted(0, "worker"), "0 workers");
  EXPECT_EQ(counted(1234, "piece"), "1,234 pieces");
}

TEST(Counted, EndingsFollowTheNoun) {
  EXPECT_EQ(counted(2, "batch"), "2 batches");
  EXPECT_EQ(counted(2, "pass"), "2 passes");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "day"), "2 days");
  EXPECT_EQ(counted(1, "batch"), "1 batch");
}

TEST(Percent, SharesAndChanges) {
  EXPECT_EQ(percent(0.423), "42 %");
  EXPECT_EQ(exact_percent(0.4234), "42.3 %");
  EXPECT_EQ(fine_percent(0.0423), "4.2 %") << "below ten per cent a digit more";
  EXPECT_EQ(fine_percent(0.1), "10 %");
  EXPECT_EQ(signed_percent(0.0423), "+4.2 %");
  EXPECT_EQ(signed_percent(-0.5), "-50.0 %");
}

}  // namespace
}  // namespace stoker
