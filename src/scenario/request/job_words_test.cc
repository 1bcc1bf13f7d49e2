#include "scenario/request/job_words.h"

#include <gtest/gtest.h>

#include <functional>

#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

using Words = std::vector<std::string>;

Step linear() { return parse_step(testing_support::linear_step_json(), "test").value(); }

Device gpu() {
  Gpu gpu;
  gpu.name = "V100-SXM2-16GB";
  return Device(gpu);
}

TEST(UnusualSettings, ThePlainestLoopHasNone) { EXPECT_EQ(unusual_settings(Job()), Words{}); }

TEST(UnusualSettings, EachThatIsUnusualIsOnePhrase) {
  struct Case {
    std::function<void(Job&)> change;
    const char* words;
  };
  const std::vector<Case> cases{
      {[](Job& j) { j.optimizer.loop = OptimizerLoop::kFused; }, "fused optimizer"},
      {[](Job& j) { j.optimizer.nesterov = true; }, "Nesterov momentum"},
      {[](Job& j) { j.accumulate = 4; }, "accumulates 4 batches"},
      {[](Job& j) { j.grad_scaler = true; }, "gradient scaler"},
      {[](Job& j) { j.precision = Precision::kAmpFp16; }, "no gradient scaler"},
      {[](Job& j) { j.clip_checks = true; }, "clipping checks its norm"},
      {[](Job& j) {
         j.checkpoint = {"layer1", "layer2.*"};
       },
       "checkpoints layer1,layer2.*"},
      {[](Job& j) { j.zero_grad_before_forward = false; }, "zero_grad() after the step"},
      {[](Job& j) { j.zero_grad_fills = true; }, "zero_grad(set_to_none=False)"},
      {[](Job& j) { j.channels_last = true; }, "channels-last"},
      {[](Job& j) { j.drop_output = true; }, "drops its output"},
      {[](Job& j) { j.cudnn = CudnnProfile::kBenchmark; }, "cudnn.benchmark"},
      {[](Job& j) { j.cuda_graphs = true; }, "CUDA graphs"},
      {[](Job& j) { j.gpus = 16, j.nodes = 2; }, "2 nodes"},
      {[](Job& j) { j.fsdp_precision = FsdpPrecision::kReduceFp32; },
       "mixed precision of FSDP: reduce-fp32"},
      {[](Job& j) { j.gpus = 8, j.fsdp_group = 4; }, "hybrid sharding in groups of 4"},
      {[](Job& j) { j.fsdp_offload = true; }, "shards in the host's memory"},
      {[](Job& j) { j.loss = LossKernel::kFused; }, "fused cross entropy"},
      {[](Job& j) { j.ddp_alone = true; }, "DDP's buckets"},
      {[](Job& j) { j.gradient_as_bucket_view = true; }, "gradient_as_bucket_view"},
      {[](Job& j) { j.prefetching_loader = true; }, "prefetching loader"},
      {[](Job& j) { j.last_batch = 7; }, "last batch of 7"},
      {[](Job& j) { j.validation_batch = 64; }, "validation in batches of 64"}};
  for (const Case& c : cases) {
    Job job;
    c.change(job);
    EXPECT_EQ(unusual_settings(job), Words{c.words});
  }
}

TEST(UnusualSettings, WhatIsUsualInItsPlaceIsNotSaid) {
  const std::vector<std::function<void(Job&)>> usual{
      // PyTorch walks Adafactor's parameters one by one, and so does a CPU unasked.
      [](Job& j) {
        j.optimizer.kind = OptimizerKind::kAdafactor;
        j.optimizer.loop = OptimizerLoop::kForLoop;
      },
      [](Job& j) { j.optimizer.loop = OptimizerLoop::kForLoop; },
      [](Job& j) {
        j.optimizer.kind = OptimizerKind::kNone;
        j.optimizer.loop = OptimizerLoop::kFused;
        j.optimizer.nesterov = true;
        j.precision = Precision::kAmpFp16;
      },
      [](Job& j) { j.precision = Precision::kAmpFp16, j.grad_scaler = true; },
      [](Job& j) { j.nodes = 2; },                    // of one GPU
      [](Job& j) { j.gpus = 4, j.fsdp_group = 4; }};  // one group: no hybrid
  for (std::size_t i = 0; i < usual.size(); ++i) {
    Job job;
    usual[i](job);
    EXPECT_EQ(unusual_settings(job), Words{}) << i;
  }
  Job asked;
  asked.optimizer.loop = OptimizerLoop::kForLoop;
  asked.optimizer.loop_asked = true;
  EXPECT_EQ(unusual_settings(asked), Words{"for-loop optimizer"});
  Job forgotten;
  forgotten.validation_batch = 32;
  forgotten.validation_no_grad = false;
  EXPECT_EQ(unusual_settings(forgotten), Words{"validation in batches of 32 with gradients"});
  Job between;
  between.zero_grad_before_forward = false;
  between.zero_grad_before_backward = true;
  EXPECT_EQ(unusual_settings(between), Words{"zero_grad() between forward and backward"});
}

TEST(ModelLine, SaysModelStepDeviceAndJob) {
  const Step step = linear();
  Job job;
  EXPECT_EQ(model_line("mine", step, gpu(), job).text(),
            "mine | train, SGD momentum | V100-SXM2-16GB | eager, fp32");
  job.optimizer.momentum = 0;
  EXPECT_EQ(model_line("mine", step, gpu(), job).step, "train, SGD");
  job.optimizer.kind = OptimizerKind::kAdamW;
  job.optimizer.state_bits = 8;
  job.clip = job.ema = true;
  job.checkpoint = {"fc"};
  EXPECT_EQ(model_line("mine", step, gpu(), job).step,
            "train, adamw8bit, clipped, EMA, checkpointed");
  job.compile = true;
  job.precision = Precision::kAmpBf16;
  job.gpus = 2;
  const std::vector<std::pair<Parallel, const char*>> ways{
      {Parallel::kDdp, "DDP"},
      {Parallel::kDataParallel, "DataParallel"},
      {Parallel::kFsdpZero2, "FSDP ZeRO-2"},
      {Parallel::kFsdpZero3, "FSDP ZeRO-3"}};
  for (const auto& [parallel, name] : ways) {
    job.parallel = parallel;
    EXPECT_EQ(model_line("mine", step, gpu(), job).job, std::string(name) + ", compiled, amp-bf16");
  }
  EXPECT_EQ(model_line("mine", step, gpu(), Job()).text_without_gpu(),
            "mine | train, SGD momentum | eager, fp32");
}

TEST(ModelLine, OfACpuSaysItsThreads) {
  Cpu cpu;
  cpu.name = "Xeon";
  Job job;
  job.threads = 1;
  EXPECT_EQ(model_line("mine", linear(), Device(cpu), job).job, "1 thread, eager, fp32");
  job.threads = 16;
  EXPECT_EQ(model_line("mine", linear(), Device(cpu), job).job, "16 threads, eager, fp32");
}

TEST(ModelLine, NamesWhatTheStepSaysOfItself) {
  Step step = linear();
  step.dimensions.push_back({.name = "seq_len", .default_value = 128});
  Job job;
  EXPECT_EQ(model_line("m", step, gpu(), job).step, "train, SGD momentum, seq_len 128");
  job.dimensions["seq_len"] = 512;
  EXPECT_EQ(model_line("m", step, gpu(), job).step, "train, SGD momentum, seq_len 512");
  step.optimizer.in_backward = "sgd";
  EXPECT_EQ(model_line("m", step, gpu(), job).step, "train, sgd in the backward, seq_len 512");
  step.mode = "inference";
  EXPECT_EQ(model_line("m", step, gpu(), job).step, "inference, seq_len 512");
  EXPECT_EQ(model_line("a\x1b[31mb", step, gpu(), job).model.find('\x1b'), std::string::npos)
      << "a model's name comes from a file";
}

}  // namespace
}  // namespace stoker
