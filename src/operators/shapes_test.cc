#include "operators/shapes.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// Pairs of query and key, counted one by one: PyTorch's causal mask begins at the upper left,
/// flash-attn's windows at the lower right.
double counted_pairs(const AttentionShape& s) {
  const std::int64_t offset = s.windowed() ? s.key_length - s.query_length : 0;
  double pairs = 0;
  for (std::int64_t i = 0; i < s.query_length; ++i) {
    for (std::int64_t j = 0; j < s.key_length; ++j) {
      const std::int64_t place = i + offset;
      const bool ahead = s.causal ? j > place : s.after >= 0 && j > place + s.after;
      const bool behind = s.before >= 0 && j < place - s.before;
      pairs += ahead || behind ? 0 : 1;
    }
  }
  return pairs;
}

TEST(AttentionShape, PairsAreThoseThatAMaskLeaves) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t queries : {1, 2, 5, 9}) {
      for (const std::int64_t keys : {1, 3, 5, 12}) {
        for (const std::int64_t before : {-1, 0, 2, 20}) {
          for (const std::int64_t after : {-1, 0, 3, 20}) {
            AttentionShape s;
            s.query_length = queries;
            s.key_length = keys;
            s.causal = causal;
            s.before = before;
            s.after = after;
            EXPECT_EQ(s.pairs(), counted_pairs(s))
                << queries << " x " << keys << ", window " << before << " " << after
                << (causal ? ", causal" : "");
          }
        }
      }
    }
  }
}

TEST(AttentionShape, LongSequencesDoNotOverflow) {
  AttentionShape s;
  s.query_length = s.key_length = 1LL << 32;
  EXPECT_EQ(s.pairs(), 0x1p64);
  s.causal = true;
  EXPECT_NEAR(s.pairs() / 0x1p63, 1, 1e-9);
}

TEST(AttentionBackend, NamesAreThoseOfAnswers) {
  EXPECT_EQ(name_of(AttentionBackend::kFlash), "flash");
  EXPECT_EQ(name_of(AttentionBackend::kMemoryEfficient), "memory_efficient");
  EXPECT_EQ(name_of(AttentionBackend::kMath), "math");
}

}  // namespace
}  // namespace stoker
