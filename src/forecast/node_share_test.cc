#include "forecast/node_share.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(NodeShare, TheFullestNodeCounts) {
  EXPECT_EQ(gpus_per_node(8, 1), 8);
  EXPECT_EQ(gpus_per_node(8, 2), 4);
  EXPECT_EQ(gpus_per_node(8, 3), 3);  // 3 + 3 + 2
  EXPECT_EQ(gpus_per_node(9, 2), 5);
  EXPECT_EQ(gpus_per_node(1, 4), 1);
  EXPECT_EQ(gpus_per_node(4, 0), 4);  // nothing was said of nodes
}

TEST(NodeShare, WorkersShareTheWholeCores) {
  EXPECT_EQ(workers_of_cores(16, 3), 5);
  EXPECT_EQ(workers_of_cores(2.5, 1), 2);  // a quota's fraction runs no worker
  EXPECT_EQ(workers_of_cores(2, 8), 1);
}

}  // namespace
}  // namespace stoker
