#include "scenario/request/given_settings.h"

#include <gtest/gtest.h>

#include <set>

#include "scenario/request/request_checks.h"
#include "scenario/settings/settings_table.h"

namespace stoker {
namespace {

/// Says something about everything that the table restricts.
RunRequest everything() {
  RunRequest r;
  r.batch = 8;
  r.gpus = 2;
  r.workers = 4;
  r.prefetch = 2;
  r.pin = false;
  r.link = GpuLink::kPcie;
  r.data = {.path = {}, .samples = 1000, .image_size = 224};
  r.allocator = {.config = {"expandable_segments:True", mark(Setting::kAllocConf)},
                 .cublas_workspace = {":4096:8", mark(Setting::kCublasWorkspace)},
                 .cublaslt_workspace = {},
                 .memory_fraction = 0.5};
  JobRequest& j = r.job;
  j.optimizer = {.kind = OptimizerKind::kSgd,
                 .loop = OptimizerLoop::kForeach,
                 .momentum = 0.9,
                 .weight_decay = 0.1,
                 .nesterov = true};
  j.clip = j.ema = j.grad_scaler = true;
  j.clip_checks = j.zero_grad_after = j.zero_grad_between = j.zero_grad_fills = true;
  j.accumulate = j.threads = j.epochs = j.nodes = 2;
  j.checkpoint = {"blocks"};
  j.cudnn_benchmark = j.cuda_graphs = j.prefetching_loader = j.bucket_view = true;
  j.copy = CopyWay::kBlocking;
  j.validation_batch = j.validation_samples = 16;
  j.validation_with_grad = true;
  j.parallel = Parallel::kDdp;
  j.fsdp_precision = FsdpPrecision::kReduceFp32;
  j.fsdp_group = 2;
  j.fsdp_offload = true;
  j.loss = LossKernel::kFused;
  return r;
}

std::string text_of(const Status& status) { return status ? "" : status.error().text(); }

TEST(GivenSettings, KnowsEachSettingThatTheTableRestricts) {
  std::set<std::string_view> given;
  for (const GivenSetting& g : given_settings(everything())) given.insert(g.row().name);
  // Not of the run; a global batch has become a batch and an accumulation before.
  const std::set<std::string_view> of_an_answer{"step-ms", "gpus-per-node", "global-batch"};
  for (const std::span<const SettingRow> part : {job_settings(), search_settings()}) {
    for (const SettingRow& row : part) {
      const bool of_the_run =
          find_setting("predict", row.name) != nullptr && !of_an_answer.contains(row.name);
      const bool restricted = row.range || row.training || row.devices != SettingDevices::kAny;
      EXPECT_TRUE(!of_the_run || !restricted || given.contains(row.name)) << row.name;
    }
  }
}

TEST(GivenSettings, SaysNothingOfDefaults) { EXPECT_TRUE(given_settings({}).empty()); }

TEST(GivenSettings, TextsOfTheEnvironmentAreNotGiven) {
  RunRequest r;
  r.allocator.config = {"expandable_segments:True", "PYTORCH_ALLOC_CONF"};
  EXPECT_TRUE(given_settings(r).empty());
}

TEST(RequestChecks, NumbersAreHeldToTheTable) {
  RunRequest r = everything();
  EXPECT_EQ(text_of(check_ranges(r)), "");
  r.workers = 1025;
  EXPECT_EQ(text_of(check_ranges(r)), "{workers}: must be between 0 and 1,024, not 1025");
  r.workers = 0;
  r.batch = 16'777'217;
  EXPECT_EQ(text_of(check_ranges(r)), "{batch}: must be between 1 and 16,777,216, not 16777217");
  r.batch = LargestSafeBatch{};
  r.allocator.memory_fraction = 0;
  EXPECT_EQ(text_of(check_ranges(r)), "{memory-fraction}: must be above 0 and at most 1");
  r.allocator.memory_fraction = 1;
  r.price_per_gpu_hour = -1;
  EXPECT_EQ(text_of(check_ranges(r)), "{price}: must be a positive price per GPU and hour, not -1");
  r.price_per_gpu_hour = 1e9;
  EXPECT_EQ(text_of(check_ranges(r)),
            "{price}: must be a price per GPU and hour below 1,000,000, not 1e+09");
}

TEST(RequestChecks, WhatADeviceHasNotIsRefused) {
  Device cpu{Cpu{}}, gpu{Gpu{}};
  cpu->name = "The CPU";
  gpu->name = "The GPU";
  RunRequest r;
  r.gpus = 1;
  r.job.nodes = 1;
  EXPECT_EQ(text_of(check_device_settings(r, cpu)), "") << "one is what a CPU has";
  r.gpus = 2;
  EXPECT_EQ(text_of(check_device_settings(r, cpu)),
            "{gpus}: is of GPUs, and The CPU is a CPU; leave it out");
  r = {};
  r.pin = false;
  EXPECT_EQ(text_of(check_device_settings(r, cpu)),
            "{no-pin}: is of GPUs, and The CPU is a CPU; leave it out");
  EXPECT_EQ(text_of(check_device_settings(r, gpu)), "");
  r = {};
  r.job.copy = CopyWay::kBlocking;
  EXPECT_EQ(text_of(check_device_settings(r, cpu)),
            "{copy}: is of GPUs, and The CPU is a CPU; leave it out");
  r = {};
  r.job.threads = 4;
  EXPECT_EQ(text_of(check_device_settings(r, gpu)),
            "{threads}: is of CPUs, and The GPU is a GPU; leave it out (cores around the GPU: "
            "{host} cores=16)");
  EXPECT_EQ(text_of(check_device_settings(r, cpu)), "");
}

TEST(RequestChecks, WhatBelongsToTrainingIsRefusedOfInference) {
  Step step;
  step.name = "net";
  step.mode = "inference";
  RunRequest r;
  r.job.threads = 4;
  r.workers = 2;
  EXPECT_EQ(text_of(check_training_settings(r, step)), "");
  r.job.clip = false;
  EXPECT_EQ(text_of(check_training_settings(r, step)),
            "{no-clip}: net was captured for inference, which has no backward; leave the flag out, "
            "or capture it for training");
  step.mode = "train";
  EXPECT_EQ(text_of(check_training_settings(r, step)), "");
}

}  // namespace
}  // namespace stoker
