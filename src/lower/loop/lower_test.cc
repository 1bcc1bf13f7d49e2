#include "lower/loop/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "lower/common/test_jobs.h"
#include "lower/common/test_live.h"
#include "lower/gpu/workspace.h"
#include "step/sizes.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

using testing_support::ampere;
using testing_support::linear_step;
using testing_support::Live;
using testing_support::plain_job;

TEST(Lower, TheSmallStepByHand) {
  const Step step = linear_step();
  const auto program = lower(step, plain_job(), ampere());
  ASSERT_TRUE(program) << program.error().text();
  Live live(*program);
  EXPECT_EQ(live.live(BufferRole::kParameter), Bytes(48));
  for (int i = 0; i < 3; ++i) {
    live.iterate();
    EXPECT_EQ(live.live(BufferRole::kGradient), Bytes(48)) << i;
    EXPECT_EQ(live.live(BufferRole::kOptimizerState), Bytes(48)) << i;
    EXPECT_EQ(live.live(BufferRole::kInput), Bytes(160)) << i;
    EXPECT_EQ(live.live(BufferRole::kOutput), Bytes(4)) << i;
    EXPECT_EQ(live.live(BufferRole::kActivation), Bytes(0)) << i;
    EXPECT_EQ(live.live(BufferRole::kWorkspace), 2 * cublas_workspace(*ampere().device.gpu())) << i;
  }
}

TEST(Lower, AccumulationKeepsGradientsAndAddsTemporaries) {
  const Step step = linear_step();
  Job job = plain_job();
  job.accumulate = 3;
  const auto program = lower(step, job, ampere());
  ASSERT_TRUE(program);
  Live live(*program);
  for (int i = 0; i < 3; ++i) live.iterate();
  EXPECT_EQ(live.live(BufferRole::kGradient), Bytes(48));
  EXPECT_EQ(live.live(BufferRole::kTemporary), Bytes(0));
  EXPECT_EQ(live.live(BufferRole::kInput), Bytes(160));
  EXPECT_EQ(live.live(BufferRole::kOutput), Bytes(4));
  int products = 0;
  for (const Kernel& k : program->kernels) products += k.kernel_class == KernelClass::kGemm ? 1 : 0;
  EXPECT_EQ(products, 6);
}

void expect_same_memory(const Program& a, const Program& b) {
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (std::size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_EQ(a.buffers[i].bytes, b.buffers[i].bytes) << i;
    EXPECT_EQ(a.buffers[i].stream, b.buffers[i].stream) << i;
    EXPECT_EQ(a.buffers[i].optional, b.buffers[i].optional) << i;
  }
  ASSERT_EQ(a.iteration.size(), b.iteration.size());
  for (std::size_t i = 0; i < a.iteration.size(); ++i) {
    EXPECT_EQ(a.iteration[i].kind, b.iteration[i].kind) << i;
    EXPECT_EQ(a.iteration[i].when, b.iteration[i].when) << i;
    EXPECT_EQ(a.iteration[i].value, b.iteration[i].value) << i;
  }
  ASSERT_EQ(a.outside.size(), b.outside.size());
  for (std::size_t i = 0; i < a.outside.size(); ++i)
    EXPECT_EQ(a.outside[i].bytes, b.outside[i].bytes) << i;
}

// A plan lowers such a job once for all numbers of GPUs.
TEST(Lower, DdpRunsTheSameProgramOnTwoGpusAndOnMore) {
  Job job = plain_job();
  job.gpus = 2;
  const auto two = lower(linear_step(), job, ampere());
  job.gpus = 8;
  job.nodes = 2;
  const auto more = lower(linear_step(), job, ampere());
  ASSERT_TRUE(two && more);
  expect_same_memory(*two, *more);
  ASSERT_EQ(two->buckets.size(), 1u);
  ASSERT_EQ(more->buckets.size(), 1u);
  EXPECT_EQ(two->buckets[0].bytes, more->buckets[0].bytes);
  ASSERT_EQ(two->kernels.size(), more->kernels.size());
  for (std::size_t k = 0; k < two->kernels.size(); ++k) {
    EXPECT_EQ(two->kernels[k].kernel_class, more->kernels[k].kernel_class) << k;
    EXPECT_EQ(two->kernels[k].read, more->kernels[k].read) << k;
    EXPECT_EQ(two->kernels[k].unit, more->kernels[k].unit) << k;
  }
}

// Their batch limits are searched once.
TEST(Lower, Tf32ComputesWithOtherUnitsInTheMemoryOfFp32) {
  Job job = plain_job();
  const auto fp32 = lower(linear_step(), job, ampere());
  job.precision = Precision::kTf32;
  const auto tf32 = lower(linear_step(), job, ampere());
  ASSERT_TRUE(fp32 && tf32);
  expect_same_memory(*fp32, *tf32);
  const auto uses_tf32 = [](const Program& program) {
    return std::any_of(program.kernels.begin(), program.kernels.end(),
                       [](const Kernel& k) { return k.unit == MathUnit::kTf32Tensor; });
  };
  EXPECT_FALSE(uses_tf32(*fp32));
  EXPECT_TRUE(uses_tf32(*tf32));
}

TEST(Lower, OperatorsWithoutARuleAreNamedEachAndCounted) {
  Step step = linear_step();
  step.operator_names[1] = "mine::first";
  step.operator_names[2] = "mine::second";
  const auto program = lower(step, plain_job(), ampere());
  ASSERT_TRUE(program) << program.error().text();
  std::map<std::string, std::int64_t> named;
  for (const Diagnostic& d : program->diagnostics.all()) {
    if (d.name == "uncosted_operator") named[d.advice.substr(0, d.advice.find(' '))] += d.count;
  }
  EXPECT_EQ(named, (std::map<std::string, std::int64_t>{{"mine::first", 1}, {"mine::second", 1}}));
  for (const Kernel& kernel : program->kernels) {
    if (kernel.kernel_class != KernelClass::kUncosted) continue;
    EXPECT_GT(kernel.read.count(), 0);
  }
}

TEST(Lower, ASoftmaxsBackwardIsAProductAndTheRows) {
  Step step = linear_step();
  step.operator_names[2] = "aten::_softmax_backward_data";
  const auto program = lower(step, plain_job(), ampere());
  ASSERT_TRUE(program) << program.error().text();
  std::vector<KernelClass> classes;
  for (const Kernel& kernel : program->kernels) {
    if (kernel.source == 2) classes.push_back(kernel.kernel_class);
  }
  EXPECT_EQ(classes, (std::vector{KernelClass::kElementwise, KernelClass::kSoftmax}));
}

TEST(Lower, DataParallelBucketsHoldAllGradientsOnce) {
  const Step step = linear_step();
  Job job = plain_job();
  job.gpus = 2;
  const auto program = lower(step, job, ampere());
  ASSERT_TRUE(program);
  ASSERT_EQ(program->buckets.size(), 1U);
  EXPECT_EQ(program->buckets[0].bytes, Bytes(48));
  Live live(*program);
  live.iterate();
  EXPECT_EQ(live.live(BufferRole::kBucket), Bytes(48));
  job.gradient_as_bucket_view = true;
  const auto views = lower(step, job, ampere());
  Live live_views(*views);
  live_views.iterate();
  EXPECT_EQ(live_views.live(BufferRole::kGradient), Bytes(0));
  EXPECT_EQ(live_views.live(BufferRole::kBucket), Bytes(48));
}

TEST(Lower, ModelsWrappedInDdpHaveBucketsOnOneGpu) {
  const Step step = linear_step();
  Job job = plain_job();
  ASSERT_TRUE(lower(step, job, ampere())->buckets.empty());
  job.ddp_alone = true;
  const auto program = lower(step, job, ampere());
  ASSERT_EQ(program->buckets.size(), 1U);
  Live live(*program);
  live.iterate();
  EXPECT_EQ(live.live(BufferRole::kBucket), Bytes(48));
}

TEST(Lower, ZeroGradAfterTheStepLeavesNoGradients) {
  const Step step = linear_step();
  Job job = plain_job();
  job.zero_grad_before_forward = false;
  const auto program = lower(step, job, ampere());
  Live live(*program);
  live.iterate();
  live.iterate();
  EXPECT_EQ(live.live(BufferRole::kGradient), Bytes(0));
}

TEST(Lower, RefusesWhatItCannotServe) {
  const Step step = linear_step();
  Job job = plain_job();
  job.precision = Precision::kAmpFp16;
  EXPECT_NE(lower(step, job, ampere()).error().message.find("{precision} amp-fp16"),
            std::string::npos);
  job = plain_job();
  job.batch = 0;
  EXPECT_NE(lower(step, job, ampere()).error().message.find("batch must be at least 1"),
            std::string::npos);
  job = plain_job();
  job.dimensions["seq_len"] = 3;
  EXPECT_NE(lower(step, job, ampere()).error().message.find("no dimension"), std::string::npos);
}

/// What must hold for every captured model that ships.
TEST(Zoo, EveryModelLowersToAConsistentProgram) {
  const std::filesystem::path zoo = std::filesystem::path(STOKER_SOURCE_DIR) / "data" / "zoo";
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(zoo)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".step.gz")) continue;
    SCOPED_TRACE(file);
    ++models;
    const auto step = read_step_file(entry.path());
    ASSERT_TRUE(step) << step.error().text();
    Job job;
    job.batch = step->dimensions[0].default_value;
    job.precision = *parse_precision(step->precision);
    job.gpus = 2;
    const auto program = lower(*step, job, ampere());
    ASSERT_TRUE(program) << program.error().text();
    EXPECT_EQ(program->diagnostics.count("uncosted_operator"), 0);

    const auto sizes = Sizes::at(*step, {{"batch", job.batch}});
    Bytes trained;
    std::size_t parameters = 0;
    for (const Parameter& p : step->parameters) {
      if (p.gradient < 0) continue;
      trained += sizes->tensor(*step, p.type);
      ++parameters;
    }
    Bytes in_buckets;
    std::size_t bucketed = 0;
    for (const GradientBucket& bucket : program->buckets) {
      in_buckets += bucket.bytes;
      bucketed += bucket.parameters;
    }
    EXPECT_EQ(in_buckets, trained);
    EXPECT_EQ(bucketed, parameters);
    std::map<std::uint32_t, int> ready;
    for (const Instruction& i : program->iteration) {
      if (i.kind == InstructionKind::kBucketReady) ++ready[i.value];
    }
    EXPECT_EQ(ready.size(), program->buckets.size());
    for (const auto& [bucket, times] : ready) EXPECT_EQ(times, 1) << bucket;

    Live live(*program);
    live.iterate();
    const Bytes after_one = live.total();
    live.iterate();
    live.iterate();
    EXPECT_EQ(live.total(), after_one);  // nothing leaks from one iteration to the next
    EXPECT_EQ(live.live(BufferRole::kOptimizerState), trained);
    EXPECT_EQ(live.live(BufferRole::kActivation), Bytes(0));
    EXPECT_EQ(live.live(BufferRole::kTemporary), Bytes(0));
  }
  EXPECT_GE(models, 28 * 3);
}

}  // namespace
}  // namespace stoker
