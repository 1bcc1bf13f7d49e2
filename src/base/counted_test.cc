#include "base/counted.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stoker
