#include <gtest/gtest.h>

#include "timing/common/testing.h"
#include "timing/gpu/kernel_cost.h"

namespace stoker {
namespace {

using timing_test::ideal;
using timing_test::round_gpu;

/// Time of fused attention without the bytes of its operands, in nanoseconds.
double attention_time(const AttentionShape& s, DType dtype = DType::kF16,
                      const Gpu& gpu = round_gpu()) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kAttention;
  kernel.dtype = dtype;
  kernel.shape = s;
  return cost_of(kernel, gpu, ideal()).compute.count();
}

// 10 x 16 heads of 4 tiles of queries fill 10 SMs in 64 whole waves.
const AttentionShape kEvenAttention{.batch = 10,
                                    .heads = 16,
                                    .query_length = 512,
                                    .key_length = 512,
                                    .head_dim = 64,
                                    .backend = AttentionBackend::kFlash};

TEST(AttentionCost, FusedAttentionCountsItsTiles) {
  AttentionShape s = kEvenAttention;
  const double forward = attention_time(s);
  EXPECT_DOUBLE_EQ(forward, 4.0 * 10 * 16 * 512 * 512 * 64 / 1e12 * 1e9);
  s.causal = true;  // of 4 x 8 tiles of 128 x 64, 2 + 4 + 6 + 8 touch the lower triangle
  EXPECT_DOUBLE_EQ(attention_time(s), forward * 20 / 32);
  s.causal = false;
  s.backward = true;  // 5 products for 2, at three quarters of the rate
  EXPECT_NEAR(attention_time(s), forward * 2.5 / 0.75, 1e-6 * forward);
  s.backward = false;
  s.dropout = true;
  EXPECT_GT(attention_time(s), forward);
}

TEST(AttentionCost, FusedAttentionPadsTilesAndHeads) {
  AttentionShape s = kEvenAttention;
  const double whole = attention_time(s);
  s.head_dim = 40;  // runs as 64
  EXPECT_DOUBLE_EQ(attention_time(s), whole);
  s.head_dim = 80;  // runs as 96
  EXPECT_DOUBLE_EQ(attention_time(s), whole * 1.5);
  s.head_dim = 64;
  s.query_length = s.key_length = 449;  // 4 tiles of 128 queries, 8 of 64 keys
  EXPECT_DOUBLE_EQ(attention_time(s), whole);
  s = kEvenAttention;
  s.batch = s.heads = 1;  // 4 blocks for 10 SMs: as long as a whole wave
  EXPECT_DOUBLE_EQ(attention_time(s), whole / 64);
}

TEST(AttentionCost, SinglePrecisionAttentionSplitsItsNumbersOnTensorCores) {
  AttentionShape s = kEvenAttention;
  s.backend = AttentionBackend::kMemoryEfficient;
  const double plain = attention_time(s, DType::kF32);
  Gpu gpu = round_gpu();
  gpu.peak.tf32_tensor = 6e12;
  EXPECT_NEAR(attention_time(s, DType::kF32, gpu), plain / 2, 1e-6 * plain);  // 6 / 3
}

/// Nanoseconds of a recurrent layer whose time step is above any product, unless it stays on the
/// chip.
double recurrent_time(const RnnShape& s, Micros recurrence) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kRnn;
  kernel.shape = s;
  Coefficients c = ideal();
  c.kernel.recurrence = recurrence;
  return cost_of(kernel, round_gpu(), c).time.count();
}

TEST(RnnCost, RecurrenceIsSerialInTime) {
  RnnShape s{.batch = 4, .length = 50, .input = 16, .hidden = 16};
  const double once = recurrent_time(s, 100_us);
  EXPECT_GE(once, 50 * 100e3 / 2);  // small enough to stay on the chip
  s.length = 100;
  EXPECT_NEAR(recurrent_time(s, 100_us) / once, 2, 0.05);
}

TEST(RnnCost, LayersOverlapAsAWavefront) {
  RnnShape s{.batch = 4, .length = 50, .input = 16, .hidden = 512, .layers = 4};
  const double four = recurrent_time(s, 100_us);
  EXPECT_LT(four, 4 * 50 * 100e3);        // not one layer after the other
  EXPECT_GE(four, (50 + 4 - 1) * 100e3);  // but each a step behind the one before
  s.directions = 2;  // both directions of a layer beside each other, layers in turn
  EXPECT_GE(recurrent_time(s, 100_us), 4 * 50 * 100e3);
}

TEST(RnnCost, SmallStatesStayOnTheChip) {
  RnnShape s{.batch = 4, .length = 50, .input = 16, .hidden = 192, .gates = 3};
  const double small = recurrent_time(s, 1000_us);
  s.hidden = 193;
  EXPECT_NEAR(recurrent_time(s, 1000_us) / small, 2, 0.05);
  s.hidden = 192;
  s.projection = 64;  // only the standard algorithm knows projections
  EXPECT_NEAR(recurrent_time(s, 1000_us) / small, 2, 0.05);
}

}  // namespace
}  // namespace stoker
