#include "input/probe/batched_indexing.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// 64 floats and a label a sample; collating takes `collate_us` a sample, fetching `cpu_us`.
SampleCost table(double cpu_us, double collate_us) {
  SampleCost cost;
  cost.known = true;
  cost.cpu = {cpu_us * kMicrosecond};
  constexpr std::int64_t kBatch = 1024;
  BatchFacts facts;
  facts.batch = kBatch;
  facts.samples = kBatch;
  facts.bytes = Bytes(kBatch * (64 * 4 + 8));
  facts.collate_shared = facts.collate_private = kBatch * collate_us * kMicrosecond;
  cost.batches = {facts};
  cost.transport.collate_shared_ns = 0.63;
  cost.transport.collate_private_ns = 0.42;
  return cost;
}

TEST(BatchedIndexing, IsForSamplesThatAreOnlyFetched) {
  EXPECT_TRUE(handles_samples_singly(table(1.7, 2.7), 1024)) << "a TensorDataset";
  EXPECT_TRUE(handles_samples_singly(table(0.5, 3.9), 1024)) << "collated longer than made";
  EXPECT_FALSE(handles_samples_singly(table(0.05, 0.3), 1024)) << "indexed already";
  EXPECT_FALSE(handles_samples_singly(table(150, 2), 1024)) << "pictures are made";
  SampleCost files = table(1.7, 2.7);
  files.read_bytes = 264;
  EXPECT_FALSE(handles_samples_singly(files, 1024));
  SampleCost stream = table(1.7, 2.7);
  stream.iterable = true;
  EXPECT_FALSE(handles_samples_singly(stream, 1024)) << "nothing to index";
}

TEST(BatchedIndexing, CostsBytesRowsAndOneOperation) {
  const SampleCost whole = indexed_by_batches(table(1.7, 2.7));
  EXPECT_EQ(whole.mean_cpu().count(), 0);
  const double bytes = 1024 * 264;
  EXPECT_NEAR(whole.batches[0].collate_private.count(),
              30'000 + 1024 * 170 + whole.transport.collate_private_ns * bytes, 1);
  EXPECT_NEAR(whole.batches[0].collate_shared.count(), 30'000 + 1024 * 170 + (0.42 + 0.63) * bytes,
              1)
      << "copied once more out of a worker";
  EXPECT_EQ(indexed_by_batches(table(150, 2)).mean_cpu(), 150 * kMicrosecond)
      << "what is made stays to be made";
}

}  // namespace
}  // namespace stoker
