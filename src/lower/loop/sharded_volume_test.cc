#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "lower/common/test_jobs.h"
#include "lower/loop/lower.h"
#include "lower/loop/untrained.h"
#include "step/step_reader.h"

/// What the ways of sharing a job send in a step, against sums by hand: P bytes of parameters.
namespace stoker {
namespace {

constexpr int kRanks = 2;  // every parameter of this model has an even number of rows but two

Step captured(const std::string& name) {
  return read_step_file(std::filesystem::path(STOKER_SOURCE_DIR) / "tests/fsdp" / name).value();
}

/// Four blocks and an embedding, a norm and a head around them, which are the root.
const Step& transformer() {
  static const Step step = captured("transformer.step.gz");
  return step;
}

struct Parameters {
  std::int64_t blocks = 0, root = 0;
  [[nodiscard]] std::int64_t all() const { return blocks + root; }
};

/// Bytes with the rows that fill the last rank's shard.
Parameters padded(int ranks) {
  Parameters sum;
  const Sizes sizes = Sizes::at(transformer(), {}).value();
  for (const Parameter& p : transformer().parameters) {
    const auto shape = sizes.shape(p.type);
    const std::int64_t rows = (shape[0] + ranks - 1) / ranks * ranks;
    const std::int64_t bytes = 4 * rows * (sizes.elements(p.type) / shape[0]);
    (p.name.rfind("blocks.", 0) == 0 ? sum.blocks : sum.root) += bytes;
  }
  return sum;
}

Job job_of(Parallel parallel, int gpus, int accumulate) {
  Job job = testing_support::plain_job();
  job.gpus = gpus;
  job.parallel = parallel;
  job.accumulate = accumulate;
  return job;
}

/// Bytes that each kind of collective of one step is of, as a whole tensor.
std::map<CollectiveKind, std::int64_t> volume(const Job& job, const Step& step = transformer()) {
  Machine machine = testing_support::ampere();
  machine.gpu_count = job.gpus;
  const auto program = lower(step, job, machine);
  if (!program) ADD_FAILURE() << program.error().text();
  if (!program) return {};
  std::map<CollectiveKind, std::int64_t> sums;
  for (const Instruction& in : program->iteration) {
    if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
    const Kernel& kernel = program->kernels[in.value];
    const auto* shape = std::get_if<CollectiveShape>(&kernel.shape);
    if (shape == nullptr) continue;
    const bool gathers = shape->kind == CollectiveKind::kAllGather;
    sums[shape->kind] += (gathers ? kernel.written : kernel.read).count();
  }
  for (const GradientBucket& bucket : program->buckets)
    sums[CollectiveKind::kAllReduce] += bucket.bytes.count();
  return sums;
}

TEST(ShardedVolume, Zero3GathersBlocksTwiceAndTheRootOnce) {
  const Parameters p = padded(kRanks);
  auto sent = volume(job_of(Parallel::kFsdpZero3, kRanks, 1));
  EXPECT_EQ(sent[CollectiveKind::kAllGather], 2 * p.blocks + p.root);
  EXPECT_EQ(sent[CollectiveKind::kReduceScatter], p.all());
  EXPECT_EQ(sent.count(CollectiveKind::kAllReduce), 0U);
}

TEST(ShardedVolume, Zero2GathersOnce) {
  const Parameters p = padded(kRanks);
  auto sent = volume(job_of(Parallel::kFsdpZero2, kRanks, 1));
  EXPECT_EQ(sent[CollectiveKind::kAllGather], p.all());
  EXPECT_EQ(sent[CollectiveKind::kReduceScatter], p.all());
}

TEST(ShardedVolume, EveryMicroBatchReducesWithoutNoSync) {
  const Parameters p = padded(kRanks);
  auto sent = volume(job_of(Parallel::kFsdpZero3, kRanks, 3));
  EXPECT_EQ(sent[CollectiveKind::kAllGather], 3 * (2 * p.blocks + p.root));
  EXPECT_EQ(sent[CollectiveKind::kReduceScatter], 3 * p.all());
}

TEST(ShardedVolume, HybridShardingSumsShardsOverTheGroups) {
  const Parameters p = padded(2);
  Job job = job_of(Parallel::kFsdpZero3, 8, 1);
  job.fsdp_group = 2;
  auto sent = volume(job);
  EXPECT_EQ(sent[CollectiveKind::kAllGather], 2 * p.blocks + p.root);
  EXPECT_EQ(sent[CollectiveKind::kReduceScatter], p.all());
  EXPECT_EQ(sent[CollectiveKind::kAllReduce], p.all() / 2);
}

TEST(ShardedVolume, MixedPrecisionHalvesWhatIsGathered) {
  const Parameters p = padded(kRanks);
  Job job = job_of(Parallel::kFsdpZero3, kRanks, 1);
  const Step half = captured("transformer-bf16.step.gz");
  job.precision = Precision::kBf16;
  job.fsdp_precision = FsdpPrecision::kReduceFp32;
  auto sent = volume(job, half);
  EXPECT_EQ(sent[CollectiveKind::kAllGather], (2 * p.blocks + p.root) / 2);
  EXPECT_EQ(sent[CollectiveKind::kReduceScatter], p.all());
  job.fsdp_precision = FsdpPrecision::kReduceHalf;
  sent = volume(job, half);
  EXPECT_EQ(sent[CollectiveKind::kReduceScatter], p.all() / 2);
}

TEST(ShardedVolume, OffloadedShardsAreTrainedByTheHost) {
  Job job = job_of(Parallel::kFsdpZero3, kRanks, 1);
  job.fsdp_offload = true;
  Machine machine = testing_support::ampere();
  machine.gpu_count = kRanks;
  const auto program = lower(transformer(), job, machine);
  ASSERT_TRUE(program) << program.error().text();
  const Kernel& last = program->kernels[program->iteration.back().value];
  EXPECT_TRUE(last.on_host);
  EXPECT_EQ(last.elements, padded(kRanks).all() / 4 / kRanks);
  EXPECT_EQ(program->diagnostics.count(kNotTrained), 0);
  job.gpus = machine.gpu_count = 1;  // nothing is sharded, so nothing leaves the device
  const auto alone = lower(transformer(), job, machine);
  ASSERT_TRUE(alone);
  EXPECT_TRUE(std::none_of(alone->kernels.begin(), alone->kernels.end(),
                           [&](const Kernel& k) { return k.on_host; }));
}

TEST(ShardedVolume, DistributedDataParallelSumsGradientsOnceAStep) {
  const std::int64_t gradients = padded(1).all();
  for (const int accumulate : {1, 3}) {
    auto sent = volume(job_of(Parallel::kDdp, kRanks, accumulate));
    EXPECT_EQ(sent[CollectiveKind::kAllReduce], gradients);
    EXPECT_EQ(sent.count(CollectiveKind::kAllGather), 0U);
  }
}

}  // namespace
}  // namespace stoker
