#include "lower/gpu/attention.h"

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"

namespace stoker {
namespace {

using testing_support::ampere;

TEST(Attention, BackendByGpuAndPrecision) {
  AttentionShape shape{1, 8, 128, 128, 64};
  Attributes plain;
  Attributes masked;
  masked.mask_kind = "float";
  const Gpu gpu = *ampere().device.gpu();
  Gpu volta = gpu;
  volta.compute_capability = 70;
  EXPECT_EQ(choose_attention(shape, DType::kF16, plain, gpu), AttentionBackend::kFlash);
  EXPECT_EQ(choose_attention(shape, DType::kF16, masked, gpu), AttentionBackend::kMemoryEfficient);
  EXPECT_EQ(choose_attention(shape, DType::kF32, plain, gpu), AttentionBackend::kMemoryEfficient);
  EXPECT_EQ(choose_attention(shape, DType::kF16, plain, volta), AttentionBackend::kMemoryEfficient);
  EXPECT_EQ(choose_attention(shape, DType::kBf16, plain, volta), AttentionBackend::kMath);
  shape.head_dim = 33;
  EXPECT_EQ(choose_attention(shape, DType::kF32, plain, gpu), AttentionBackend::kMath);
  // Without tensor cores for the type, nothing has to be aligned.
  EXPECT_EQ(choose_attention(shape, DType::kF32, plain, volta), AttentionBackend::kMemoryEfficient);
  EXPECT_EQ(choose_attention(shape, DType::kF16, plain, volta), AttentionBackend::kMath);
  // FlashAttention-2 aligns a causal mask at the lower right, PyTorch at the upper left.
  AttentionShape oblong{1, 8, 128, 256, 64};
  EXPECT_EQ(choose_attention(oblong, DType::kF16, plain, gpu), AttentionBackend::kFlash);
  oblong.causal = true;
  EXPECT_EQ(choose_attention(oblong, DType::kF16, plain, gpu), AttentionBackend::kMemoryEfficient);
  oblong.causal = false;
  oblong.value_dim = 32;
  EXPECT_EQ(choose_attention(oblong, DType::kF16, plain, gpu), AttentionBackend::kMemoryEfficient);
}

}  // namespace
}  // namespace stoker
