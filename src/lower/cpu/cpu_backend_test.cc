#include "lower/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lower/common/test_jobs.h"
#include "lower/common/test_live.h"
#include "lower/cpu/cpu_attention.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

using testing_support::linear_step;
using testing_support::Live;
using testing_support::plain_job;

Machine two_cores() {
  Cpu cpu;
  cpu.name = "test CPU";
  cpu.cores = 2;
  cpu.peak.fp32 = 100e9;
  cpu.bandwidth = 20e9;
  cpu.memory = cpu.usable_memory = kGiB * 16;
  Machine machine;
  machine.device = cpu;
  return machine;
}

Step step_for_cpu() {
  Step step = linear_step();
  step.provenance.capture = CaptureKind::kFakeCpu;
  return step;
}

std::int64_t count_of(const Program& program, KernelClass kernel_class) {
  return std::count_if(program.kernels.begin(), program.kernels.end(),
                       [&](const Kernel& k) { return k.kernel_class == kernel_class; });
}

TEST(LowerForCpu, NeitherWorkspacesNorCopiesNorContext) {
  const Step step = step_for_cpu();
  const auto program = lower(step, plain_job(), two_cores());
  ASSERT_TRUE(program) << program.error().text();
  Live live(*program);
  EXPECT_EQ(live.live(BufferRole::kParameter), Bytes(48));
  EXPECT_EQ(live.live(BufferRole::kInput), Bytes(160));  // the loader's own tensor
  for (int i = 0; i < 3; ++i) {
    live.iterate();
    EXPECT_EQ(live.live(BufferRole::kGradient), Bytes(48)) << i;
    EXPECT_EQ(live.live(BufferRole::kInput), Bytes(160)) << i;
    EXPECT_EQ(live.live(BufferRole::kOutput), Bytes(4)) << i;
    EXPECT_EQ(live.live(BufferRole::kWorkspace), Bytes(0)) << i;
  }
  EXPECT_EQ(count_of(*program, KernelClass::kHostToDevice), 0);
  EXPECT_EQ(program->input_bytes, Bytes(0));
  ASSERT_EQ(program->outside.size(), 2U);
  EXPECT_EQ(program->outside[0].name, "Python and PyTorch");
  EXPECT_EQ(program->diagnostics.count("captured_for_cuda"), 0);
  EXPECT_EQ(program->diagnostics.count("captured_on_cpu"), 0);
}

TEST(LowerForCpu, TheMachineFileSaysWhatTheProcessTakesBefore) {
  Machine machine = two_cores();
  machine.device->context_memory = kMiB * 300;
  const auto program = lower(step_for_cpu(), plain_job(), machine);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->outside[0].bytes, kMiB * 300);
  EXPECT_EQ(program->outside[0].basis, "machine file");
}

TEST(LowerForCpu, TheCompilerStaysInTheProcess) {
  Job job = plain_job();
  job.compile = true;
  const auto alone = lower(step_for_cpu(), job, two_cores());
  ASSERT_TRUE(alone);
  ASSERT_EQ(alone->outside.size(), 3U);
  EXPECT_EQ(alone->outside[2].name, "torch.compile");
  EXPECT_EQ(alone->outside[2].bytes, kMiB * 72);
  job.precision = Precision::kAmpBf16;
  const Step step = read_step_file(std::filesystem::path(STOKER_SOURCE_DIR) /
                                   "tests/rewrites/transformer.amp-bf16.compiled.step.gz")
                        .value();
  const auto compiled = lower(step, job, two_cores());
  ASSERT_TRUE(compiled) << compiled.error().text();
  const auto kernels = std::count_if(compiled->kernels.begin(), compiled->kernels.end(),
                                     [](const Kernel& k) { return k.compiled; });
  EXPECT_GT(kernels, 20);
  EXPECT_EQ(compiled->outside[2].bytes, kMiB * 72 + Bytes(340 * 1024) * kernels);
}

TEST(LowerForCpu, OptimizersGoTensorByTensorUnlessToldOtherwise) {
  const Step step = step_for_cpu();
  Job job = plain_job();
  job.optimizer.kind = OptimizerKind::kAdam;
  const auto kernels = [&](OptimizerLoop loop, bool asked, const Machine& machine) {
    job.optimizer.loop = loop;
    job.optimizer.loop_asked = asked;
    const auto program = lower(step, job, machine);
    EXPECT_TRUE(program);
    return program ? count_of(*program, KernelClass::kOptimizer) : 0;
  };
  const std::int64_t foreach_loop = kernels(OptimizerLoop::kForeach, true, two_cores());
  const std::int64_t loop = kernels(OptimizerLoop::kForLoop, true, two_cores());
  EXPECT_EQ(kernels(OptimizerLoop::kForeach, false, two_cores()), loop);
  EXPECT_EQ(kernels(OptimizerLoop::kForeach, false, testing_support::ampere()), foreach_loop);
  EXPECT_EQ(kernels(OptimizerLoop::kFused, false, two_cores()), 1);
}

TEST(LowerForCpu, ClippingTakesTheNormOfEachTensor) {
  const Step step = step_for_cpu();
  Job job = plain_job();
  job.optimizer.kind = OptimizerKind::kNone;
  job.clip = true;
  const auto program = lower(step, job, two_cores());
  ASSERT_TRUE(program);
  const auto tensors =
      static_cast<std::int64_t>(std::count_if(step.parameters.begin(), step.parameters.end(),
                                              [](const Parameter& p) { return p.gradient >= 0; }));
  EXPECT_EQ(count_of(*program, KernelClass::kOptimizer), 2 * tensors);
}

TEST(LowerForCpu, WhatOnlyGpusHaveIsRefusedByItsFlag) {
  const Step step = step_for_cpu();
  const auto refused = [&](auto change) {
    Job job = plain_job();
    change(job);
    const auto program = lower(step, job, two_cores());
    EXPECT_FALSE(program);
    return program ? std::string() : program.error().text();
  };
  const auto expect = [](const std::string& text, const char* flag) {
    EXPECT_NE(text.find(flag), std::string::npos) << text;
  };
  expect(refused([](Job& j) { j.gpus = 2; }), "{gpus}");
  expect(refused([](Job& j) { j.precision = Precision::kTf32; }), "{precision}");
  expect(refused([](Job& j) { j.cudnn = CudnnProfile::kBenchmark; }), "{cudnn-benchmark}");
  expect(refused([](Job& j) { j.cuda_graphs = true; }), "{cuda-graphs}");
  expect(refused([](Job& j) { j.prefetching_loader = true; }), "{prefetching-loader}");
  expect(refused([](Job& j) { j.attention = AttentionBackend::kMemoryEfficient; }), "attention");
}

TEST(LowerForCpu, AStepOfAGpuRunsWithANote) {
  const auto program = lower(linear_step(), plain_job(), two_cores());
  ASSERT_TRUE(program);
  EXPECT_EQ(program->diagnostics.count("captured_for_cuda"), 1);
}

TEST(LowerForCpu, ExtraPassesBringTheirOwnBatch) {
  const Step step = step_for_cpu();
  Job job = plain_job();
  job.validation_batch = 20;
  job.last_batch = 4;
  const auto program = lower(step, job, two_cores());
  ASSERT_TRUE(program);
  Live live(*program);
  for (int i = 0; i < 2; ++i) live.iterate();
  const Bytes before = live.live(BufferRole::kInput);
  for (const ExtraPass& pass : program->passes) {
    live.reset_peak();
    live.pass(pass);
    EXPECT_EQ(live.live(BufferRole::kInput), before) << pass.name;
    EXPECT_GT(live.peak(BufferRole::kInput), before) << pass.name;
  }
  live.iterate();
}

TEST(CpuAttention, FlashTakesMasksButNoDropout) {
  AttentionShape shape;
  shape.query_length = shape.key_length = 128;
  shape.head_dim = shape.value_dim = 64;
  Attributes attributes;
  EXPECT_EQ(choose_cpu_attention(shape, attributes), AttentionBackend::kFlash);
  attributes.mask_kind = "tensor";
  EXPECT_EQ(choose_cpu_attention(shape, attributes), AttentionBackend::kFlash);
  attributes.dropout = 0.1;
  EXPECT_EQ(choose_cpu_attention(shape, attributes), AttentionBackend::kMath);
  attributes.dropout = 0;
  shape.value_dim = 32;
  EXPECT_EQ(choose_cpu_attention(shape, attributes), AttentionBackend::kMath);
}

TEST(CpuAttention, ScratchGrowsWithThreadsNotWithTheBatch) {
  AttentionShape shape;
  shape.batch = 8;
  shape.heads = 4;
  shape.query_length = shape.key_length = 1024;
  shape.head_dim = shape.value_dim = 64;
  // 256 queries by 512 keys: scores, two numbers a row, 64 outputs a row.
  EXPECT_EQ(cpu_attention_scratch(shape, DType::kF32, 1),
            Bytes(4 * (256 * 512 + 2 * 256 + 256 * 64)));
  EXPECT_EQ(cpu_attention_scratch(shape, DType::kF32, 2),
            2 * cpu_attention_scratch(shape, DType::kF32, 1));
  shape.backward = true;
  EXPECT_EQ(cpu_attention_scratch(shape, DType::kF32, 1), Bytes(4 * 2 * 256 * 512));
  EXPECT_EQ(cpu_attention_scratch(shape, DType::kBf16, 1), Bytes((4 + 2) * 2 * 256 * 512));
}

}  // namespace
}  // namespace stoker
