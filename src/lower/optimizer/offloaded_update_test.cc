#include "lower/optimizer/offloaded_update.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rewrite/shard.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

constexpr int kRanks = 4;

Job offloading(OptimizerKind kind) {
  Job job;
  job.gpus = kRanks;
  job.parallel = Parallel::kFsdpZero3;
  job.fsdp_offload = true;
  job.optimizer.kind = kind;
  job.optimizer.momentum = 0;
  return job;
}

/// Four blocks of a transformer in FP32.
Step transformer() {
  return read_step_file(std::filesystem::path(STOKER_SOURCE_DIR) / "tests/fsdp/transformer.step.gz")
      .value();
}

Kernel update_of(const Step& captured, const Job& job) {
  const Step sharded = sharded_step(captured, {.ranks = kRanks,
                                               .reshard_after_forward = true,
                                               .dimensions = {},
                                               .precision = {},
                                               .replicas = 1,
                                               .offload = true})
                           .value();
  return offloaded_update(captured, sharded, Sizes::at(sharded, {}).value(), job);
}

std::int64_t elements(const Step& step) {
  const Sizes sizes = Sizes::at(step, {}).value();
  std::int64_t count = 0;
  for (const Parameter& p : step.parameters) count += sizes.elements(p.type);
  return count;
}

TEST(OffloadedUpdate, PlainSgdReadsParameterAndGradientAndWritesTheParameter) {
  const Step step = transformer();
  const Kernel update = update_of(step, offloading(OptimizerKind::kSgd));
  EXPECT_GE(update.elements, elements(step) / kRanks);
  EXPECT_LT(update.elements, 1.1 * elements(step) / kRanks);  // rows are padded
  EXPECT_EQ(update.read.count(), 8 * update.elements);
  EXPECT_EQ(update.written.count(), 4 * update.elements);
  EXPECT_EQ(update.launches, step.parameters.size());
}

TEST(OffloadedUpdate, FurtherMicroBatchesAreAddedUp) {
  Job job = offloading(OptimizerKind::kSgd);
  job.accumulate = 3;
  const Kernel update = update_of(transformer(), job);
  EXPECT_EQ(update.read.count(), (8 + 2 * 8) * update.elements);
  EXPECT_EQ(update.written.count(), (4 + 2 * 4) * update.elements);
}

TEST(OffloadedUpdate, AFusedAdamGoesThroughSevenTensorsOnce) {
  Job job = offloading(OptimizerKind::kAdamW);
  const Kernel loop = update_of(transformer(), job);
  job.optimizer.loop = OptimizerLoop::kFused;
  job.optimizer.loop_asked = true;
  const Kernel fused = update_of(transformer(), job);
  EXPECT_EQ(fused.read.count(), 16 * fused.elements);
  EXPECT_EQ(fused.written.count(), 12 * fused.elements);
  // Tensor by tensor each pass reads and writes again, and two of them make new memory.
  EXPECT_GT(loop.read.count() + loop.written.count(),
            2 * (fused.read.count() + fused.written.count()));
}

TEST(OffloadedUpdate, WhatIsFrozenIsNotStepped) {
  Step step = transformer();
  const std::int64_t all = update_of(step, offloading(OptimizerKind::kSgd)).elements;
  step.parameters[0].gradient = -1;
  step.parameters[0].requires_grad = false;
  EXPECT_LT(update_of(step, offloading(OptimizerKind::kSgd)).elements, all);
}

}  // namespace
}  // namespace stoker
