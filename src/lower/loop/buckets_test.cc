#include "lower/loop/buckets.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Buckets, CloseWhenTheyHaveReachedTheirCap) {
  std::vector<ReadyGradient> gradients;
  for (const int mib : {1, 20, 4, 1, 30, 2}) gradients.push_back({mib * kMiB, 0});
  // 1 MiB fills the first; 20 + 4 + 1 fill the second exactly; 30 overfills the third; 2 is left
  // over.
  EXPECT_EQ(assign_buckets(gradients), (std::vector<std::uint32_t>{0, 1, 1, 1, 2, 3}));
}

}  // namespace
}  // namespace stoker
