#include "timing/gpu/launch_queue.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace stoker {
namespace {

TEST(LaunchQueue, HostBound) {
  // Issued at 10, 20, 30; each runs 4: the device is idle for 10, then twice for 6.
  LaunchQueue queue(1024);
  for (int i = 0; i < 3; ++i) {
    queue.host_work(10_ns);
    queue.launch(Stream::kCompute, 4_ns);
  }
  EXPECT_EQ(queue.end_of(Stream::kCompute), 34_ns);
  EXPECT_EQ(queue.starved(Stream::kCompute), 10_ns + 6_ns + 6_ns);
  EXPECT_EQ(queue.host(), 30_ns);
}

TEST(LaunchQueue, DeviceBound) {
  LaunchQueue queue(1024);
  for (int i = 0; i < 3; ++i) {
    queue.host_work(1_ns);
    queue.launch(Stream::kCompute, 10_ns);
  }
  EXPECT_EQ(queue.end_of(Stream::kCompute), 31_ns);
  EXPECT_EQ(queue.starved(Stream::kCompute), 1_ns);
  EXPECT_EQ(queue.host(), 3_ns);
}

TEST(LaunchQueue, DepthHoldsTheHostBack) {
  // Two may be outstanding. Ends are 10, 20, 30; the third launch waits for the first to end.
  LaunchQueue queue(2);
  for (int i = 0; i < 3; ++i) queue.launch(Stream::kCompute, 10_ns);
  EXPECT_EQ(queue.host(), 10_ns);
  EXPECT_EQ(queue.end_of(Stream::kCompute), 30_ns);
}

TEST(LaunchQueue, SynchronizeWaitsForEveryStream) {
  LaunchQueue queue(8);
  queue.launch(Stream::kCompute, 5_ns);
  queue.launch(Stream::kCopy, 9_ns);
  queue.synchronize();
  EXPECT_EQ(queue.host(), 9_ns);
  queue.launch(Stream::kCompute, 1_ns);
  EXPECT_EQ(queue.end_of(Stream::kCompute), 10_ns);
  EXPECT_EQ(queue.starved(Stream::kCompute), 4_ns);
}

TEST(LaunchQueue, WaitingForAnotherStreamIsNotStarving) {
  LaunchQueue queue(8);
  const Nanos copied = queue.launch(Stream::kCopy, 7_ns);
  queue.launch(Stream::kCompute, 2_ns, copied);
  EXPECT_EQ(queue.end_of(Stream::kCompute), 9_ns);
  EXPECT_EQ(queue.starved(Stream::kCompute), 0_ns);
}

}  // namespace
}  // namespace stoker
