#include "lower/common/rnn_reserve.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(RnnReserve, IsGatesCellAndOutputOfEachStep) {
  RnnShape lstm;
  lstm.batch = 2;
  lstm.length = 3;
  lstm.hidden = 5;
  lstm.layers = 2;
  lstm.directions = 2;
  lstm.gates = 4;
  EXPECT_EQ(rnn_reserve(lstm, DType::kF32), Bytes(2 * 2 * 3 * 2 * 5 * (4 + 2) * 4));
  EXPECT_EQ(rnn_reserve(lstm, DType::kF16), Bytes(2 * 2 * 3 * 2 * 5 * (4 + 2) * 2));
}

}  // namespace
}  // namespace stoker
