#include "diagnosis/timeline/receive_track.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ReceiveTrack, TwoTensorsTakeFourteenReads) {
  ReceiveTrack track;
  for (int i = 0; i < 100; ++i) track.add(2, 28);
  EXPECT_DOUBLE_EQ(track.reads_a_batch(), 14);
  EXPECT_DOUBLE_EQ(tensors_of(track.reads_a_batch()), 2);
}

TEST(ReceiveTrack, WhatIsReadNowAndThenDoesNotCount) {
  ReceiveTrack track;
  for (int i = 0; i < 400; ++i) track.add(1, i % 40 == 0 ? 900 : 14);
  EXPECT_DOUBLE_EQ(track.reads_a_batch(), 14);
}

TEST(ReceiveTrack, AFewBatchesTellNothing) {
  ReceiveTrack track;
  track.add(3, 42);
  EXPECT_DOUBLE_EQ(track.reads_a_batch(), 0);
}

TEST(ReceiveTrack, ForgetsEvenly) {
  ReceiveTrack track;
  for (int i = 0; i < 5000; ++i) track.add(8, 8 * 62.0);
  EXPECT_DOUBLE_EQ(tensors_of(track.reads_a_batch()), 10);
}

TEST(ReceiveTrack, PickledBatchesHoldNoTensors) {
  EXPECT_DOUBLE_EQ(tensors_of(2), 0);
  EXPECT_DOUBLE_EQ(tensors_of(0), 0);
}

TEST(ReceiveTrack, HandingOverIsCountedApartFromReadingData) {
  // As counted of real workers.
  EXPECT_EQ(hand_over_reads(tensors_of(8)), 10);
  EXPECT_EQ(hand_over_reads(tensors_of(14.1)), 18);
  EXPECT_NEAR(hand_over_reads(tensors_of(369.8)), 492, 3);
}

}  // namespace
}  // namespace stoker
