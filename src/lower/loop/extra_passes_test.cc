// The last, smaller batch and the validation, on a step small enough to check by hand.

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"
#include "lower/common/test_live.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

using testing_support::ampere;
using testing_support::linear_step;
using testing_support::Live;
using testing_support::plain_job;

Program lowered(const Step& step, const Job& job) {
  auto program = lower(step, job, ampere());
  EXPECT_TRUE(program) << program.error().text();
  return std::move(*program);
}

/// Runs iterations, passes, iterations, and expects the same bytes alive after each iteration.
void expect_no_leak(const Program& program) {
  Live live(program);
  live.iterate();
  live.iterate();
  const Bytes before = live.total();
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const ExtraPass& pass : program.passes) live.pass(pass);
    live.iterate();
    EXPECT_EQ(live.total(), before) << "after epoch " << epoch;
    live.iterate();
    EXPECT_EQ(live.total(), before) << "after epoch " << epoch;
  }
}

TEST(LastBatch, IsATrainingIterationOverTheSameParameters) {
  Job job = plain_job();
  job.last_batch = 3;
  const Program program = lowered(linear_step(), job);
  ASSERT_EQ(program.passes.size(), 1U);
  EXPECT_EQ(program.passes[0].name, "last batch, 3");
  EXPECT_EQ(program.passes[0].repeats, 1);
  expect_no_leak(program);
  Live live(program);
  live.iterate();
  live.iterate();
  live.pass(program.passes[0]);
  EXPECT_EQ(live.live(BufferRole::kInput), Bytes(0));  // replaced, and the smaller one is gone
  EXPECT_EQ(live.live(BufferRole::kOutput), Bytes(0));
  EXPECT_EQ(live.live(BufferRole::kGradient), Bytes(48));
  EXPECT_EQ(live.live(BufferRole::kOptimizerState), Bytes(48));
  // The optimizer's step is that of the iteration: the same kernels, no second state.
  std::size_t shared = 0;
  for (const Instruction& i : program.passes[0].instructions) {
    shared += i.kind == InstructionKind::kLaunch &&
                      program.kernels[i.value].phase == StepPhase::kOptimizer
                  ? 1
                  : 0;
  }
  EXPECT_GT(shared, 0U);
}

TEST(Validation, SharesParametersAndFindsTheTrainingAlive) {
  Job job = plain_job();
  job.validation_batch = 20;
  const Program program = lowered(linear_step(), job);
  ASSERT_EQ(program.passes.size(), 1U);
  EXPECT_EQ(program.passes[0].name, "validation, batch 20");
  expect_no_leak(program);
  Live live(program);
  live.iterate();
  live.pass(program.passes[0]);
  // Batches: the training's, the one before and the new one; 16 bytes a sample.
  EXPECT_EQ(live.peak(BufferRole::kInput), Bytes(160 + 320 + 320));
  EXPECT_EQ(live.peak(BufferRole::kGradient), Bytes(48));
  EXPECT_EQ(live.live(BufferRole::kInput), Bytes(160));
  EXPECT_EQ(live.live(BufferRole::kOutput), Bytes(4));
  for (const Instruction& i : program.passes[0].instructions) {
    if (i.kind != InstructionKind::kLaunch) continue;
    EXPECT_LE(program.kernels[i.value].phase, StepPhase::kLoss);
  }
}

TEST(Validation, ZeroGradAfterTheStepLeavesNoGradientsBeside) {
  Job job = plain_job();
  job.validation_batch = 20;
  job.zero_grad_before_forward = false;
  const Program program = lowered(linear_step(), job);
  expect_no_leak(program);
  Live live(program);
  live.iterate();
  live.pass(program.passes[0]);
  EXPECT_EQ(live.peak(BufferRole::kGradient), Bytes(0));
}

TEST(Validation, ForgottenNoGradHoldsTheGraphUntilTheNextLoss) {
  Job job = plain_job();
  job.validation_batch = 20;
  const Program with = lowered(linear_step(), job);
  job.validation_no_grad = false;
  const Program without = lowered(linear_step(), job);
  EXPECT_EQ(without.passes[0].name, "validation without no_grad, batch 20");
  expect_no_leak(without);
  const auto peak = [](const Program& program) {
    Live live(program);
    live.iterate();
    live.pass(program.passes[0]);
    return live.peak();
  };
  // What the backward would need (the product, 12 bytes a sample) of the pass before is alive when
  // the loss of the next one is computed.
  EXPECT_EQ(peak(without) - peak(with), Bytes(12 * 20));
}

TEST(ExtraPasses, GoTogetherWithEverythingElse) {
  for (int bits = 0; bits < 64; ++bits) {
    SCOPED_TRACE(bits);
    Job job = plain_job();
    job.last_batch = 3;
    job.validation_batch = 7;
    job.zero_grad_fills = (bits & 1) != 0;
    job.zero_grad_before_forward = (bits & 2) != 0;
    job.prefetching_loader = (bits & 4) != 0;
    job.clip = job.ema = job.grad_scaler = (bits & 8) != 0;
    job.accumulate = (bits & 16) != 0 ? 3 : 1;
    job.gpus = (bits & 32) != 0 ? 2 : 1;
    expect_no_leak(lowered(linear_step(), job));
    job.gradient_as_bucket_view = true;
    expect_no_leak(lowered(linear_step(), job));
  }
}

TEST(ExtraPasses, RefuseABatchThatTheModelCannotTake) {
  Job job = plain_job();
  Step step = linear_step();
  step.dimensions[0].maximum = 12;
  job.validation_batch = 20;
  EXPECT_FALSE(lower(step, job, ampere()));
}

/// Steps whose peak lies where one does not look.
TEST(Peaks, InTheOptimizer) {
  Job job = plain_job();
  job.batch = 1;
  job.optimizer.kind = OptimizerKind::kAdamW;
  job.cublas_workspaces_in_allocator = false;
  const Program program = lowered(linear_step(), job);
  Live live(program);
  live.iterate();
  live.iterate();
  EXPECT_EQ(live.peak(BufferRole::kOptimizerState), Bytes(96));
  EXPECT_GE(live.peak(BufferRole::kTemporary), Bytes(48));
  EXPECT_EQ(live.peak(BufferRole::kActivation), Bytes(0));
}

TEST(Peaks, InTheValidation) {
  Job job = plain_job();
  job.validation_batch = 1000;
  const Program program = lowered(linear_step(), job);
  Live live(program);
  live.iterate();
  live.iterate();
  const Bytes training = live.peak();
  live.pass(program.passes[0]);
  EXPECT_GT(live.peak(), training + Bytes(16000));  // two batches of 16 kB, 160 bytes each before
}

TEST(Peaks, WithoutParameters) {
  Step step = linear_step();
  step.parameters.clear();
  step.storages[0].kind = StorageKind::kBuffer;
  step.storages[5].kind = StorageKind::kOutput;  // what was the gradient is returned
  Job job = plain_job();
  job.validation_batch = 7;
  job.last_batch = 3;
  job.clip = job.ema = job.grad_scaler = job.zero_grad_fills = true;
  for (const int gpus : {1, 2}) {
    job.gpus = gpus;
    const Program program = lowered(step, job);
    EXPECT_TRUE(program.buckets.empty());
    expect_no_leak(program);
  }
}

}  // namespace
}  // namespace stoker
