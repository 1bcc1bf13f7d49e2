#include "timing/gpu/launch_queue.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(LaunchQueue, HostBound) {
  // Issued at 10, 20, 30; each runs 4: the device is idle for 10, then twice for 6.
  LaunchQueue queue(1024);
  for (int i = 0; i < 3; ++i) {
    queue.host_work(10);
    queue.launch(Stream::kCompute, 4);
  }
  EXPECT_DOUBLE_EQ(queue.end_of(Stream::kCompute), 34);
  EXPECT_DOUBLE_EQ(queue.starved(Stream::kCompute), 10 + 6 + 6);
  EXPECT_DOUBLE_EQ(queue.host(), 30);
}

TEST(LaunchQueue, DeviceBound) {
  LaunchQueue queue(1024);
  for (int i = 0; i < 3; ++i) {
    queue.host_work(1);
    queue.launch(Stream::kCompute, 10);
  }
  EXPECT_DOUBLE_EQ(queue.end_of(Stream::kCompute), 31);
  EXPECT_DOUBLE_EQ(queue.starved(Stream::kCompute), 1);
  EXPECT_DOUBLE_EQ(queue.host(), 3);
}

TEST(LaunchQueue, DepthHoldsTheHostBack) {
  // Two may be outstanding. Ends are 10, 20, 30; the third launch waits for the first to end.
  LaunchQueue queue(2);
  for (int i = 0; i < 3; ++i) queue.launch(Stream::kCompute, 10);
  EXPECT_DOUBLE_EQ(queue.host(), 10);
  EXPECT_DOUBLE_EQ(queue.end_of(Stream::kCompute), 30);
}

TEST(LaunchQueue, SynchronizeWaitsForEveryStream) {
  LaunchQueue queue(8);
  queue.launch(Stream::kCompute, 5);
  queue.launch(Stream::kCopy, 9);
  queue.synchronize();
  EXPECT_DOUBLE_EQ(queue.host(), 9);
  queue.launch(Stream::kCompute, 1);
  EXPECT_DOUBLE_EQ(queue.end_of(Stream::kCompute), 10);
  EXPECT_DOUBLE_EQ(queue.starved(Stream::kCompute), 4);
}

TEST(LaunchQueue, WaitingForAnotherStreamIsNotStarving) {
  LaunchQueue queue(8);
  const double copied = queue.launch(Stream::kCopy, 7);
  queue.launch(Stream::kCompute, 2, copied);
  EXPECT_DOUBLE_EQ(queue.end_of(Stream::kCompute), 9);
  EXPECT_DOUBLE_EQ(queue.starved(Stream::kCompute), 0);
}

}  // namespace
}  // namespace stoker
