#include "scenario/resolve/test_request.h"

namespace stoker {
namespace {

using testing_support::RequestTest;

TEST_F(RequestTest, RefusesCountsOutOfRange) {
  request_.batch = 0;
  EXPECT_EQ(refusal(), "{batch}: must be between 1 and 16,777,216, not 0");
  request_.batch.reset();
  request_.workers = 1025;
  EXPECT_EQ(refusal(), "{workers}: must be between 0 and 1,024, not 1025");
  request_.workers.reset();
  request_.job.accumulate = 0;
  EXPECT_EQ(refusal(), "{accumulate}: must be between 1 and 4,096, not 0");
}

TEST_F(RequestTest, RefusesSettingsOfAnotherOptimizer) {
  OptimizerRequest& optimizer = request_.job.optimizer;
  optimizer = {.kind = OptimizerKind::kAdam, .loop = {}, .momentum = 0.9, .weight_decay = {}};
  EXPECT_EQ(refusal(), "{momentum}: is a setting of sgd and rmsprop; leave it out with adam");
  optimizer = {.kind = OptimizerKind::kAdam,
               .loop = {},
               .momentum = {},
               .weight_decay = {},
               .nesterov = true};
  EXPECT_EQ(refusal(), "{nesterov}: is a setting of sgd; leave it out with adam");
  optimizer = {
      .kind = OptimizerKind::kSgd, .loop = {}, .momentum = 0, .weight_decay = {}, .nesterov = true};
  EXPECT_EQ(refusal(), "{nesterov}: Nesterov momentum needs a momentum: {momentum} 0.9");
  optimizer = {.kind = {}, .loop = {}, .momentum = 1.5, .weight_decay = {}};
  EXPECT_EQ(refusal(), "{momentum}: must lie between 0 and 1");
  optimizer = {.kind = OptimizerKind::kLion,
               .loop = OptimizerLoop::kFused,
               .momentum = {},
               .weight_decay = {}};
  EXPECT_TRUE(refusal().starts_with("{optimizer-loop}: PyTorch has no fused lion"));
}

TEST_F(RequestTest, RefusesToShareAJobOfOneGpu) {
  request_.job.parallel = Parallel::kFsdpZero3;
  EXPECT_EQ(refusal(),
            "{parallel}: fsdp-zero3 shares a job between GPUs; give {gpus} 2 or more, or leave it "
            "out");
  request_.job.parallel.reset();
  request_.job.bucket_view = true;
  EXPECT_EQ(refusal(),
            "{bucket-view}: needs DDP on more than one GPU; give {gpus} 2 or more, or leave it "
            "out");
  request_.gpus = 2;
  EXPECT_EQ(refusal(), "");
  request_.job.parallel = Parallel::kFsdpZero2;
  EXPECT_TRUE(refusal().starts_with("{bucket-view}: is a setting of DDP"));
}

TEST_F(RequestTest, RefusesSettingsOfFsdpWithoutIt) {
  request_.gpus = 8;
  request_.job.fsdp_precision = FsdpPrecision::kReduceFp32;
  EXPECT_EQ(refusal(), "{fsdp-mixed-precision}: is a setting of FSDP; add {parallel} fsdp");
  request_.job.parallel = Parallel::kFsdpZero3;
  EXPECT_EQ(refusal(), "{fsdp-mixed-precision}: computes in half precision; add {precision} bf16");
  request_.job.fsdp_precision.reset();
  request_.job.fsdp_group = 3;
  EXPECT_EQ(refusal(), "{fsdp-group}: 8 GPUs cannot be parted into groups of 3");
  request_.job.fsdp_group = 4;
  EXPECT_EQ(refusal(), "");
  request_.job.parallel.reset();
  EXPECT_EQ(refusal(), "{fsdp-group}: is a setting of FSDP; add {parallel} fsdp");
}

TEST_F(RequestTest, RefusesPassesThatNobodyCanLayOut) {
  request_.job.epochs = 3;
  EXPECT_EQ(refusal(), "{epochs}: needs the size of an epoch: give {samples} or {data}");
  request_.job.epochs.reset();
  request_.job.last_batch = RestOfDataSet{};
  EXPECT_EQ(refusal(), "{last-batch}: auto needs the size of the data set: {data} or {samples}");
  request_.batch = 32;
  request_.job.last_batch = 32;
  EXPECT_EQ(refusal(),
            "{last-batch}: what is left of an epoch is smaller than the batch of 32, not 32");
  request_.job.last_batch.reset();
  request_.job.validation_with_grad = true;
  EXPECT_EQ(refusal(),
            "{validation-with-grad}: says how the validation runs; give its batch with "
            "{validation}");
}

TEST_F(RequestTest, RefusesContradictions) {
  request_.job.prefetching_loader = true;
  request_.job.copy = CopyWay::kBlocking;
  EXPECT_TRUE(refusal().starts_with("{copy}: contradicts {prefetching-loader}"));
  request_.job.copy.reset();
  request_.job.clip_checks = true;
  EXPECT_EQ(refusal(), "{clip-checks}: is a setting of clip_grad_norm_; add {clip}");
  request_.job.clip = true;
  EXPECT_EQ(refusal(), "");
  request_.data = {.path = "images", .sample_cost = Nanos(1e6)};
  EXPECT_EQ(refusal(), "{sample-cost}: give either {data} or {sample-cost}");
}

TEST_F(RequestTest, RefusesWhatTheDeviceHasNoUseFor) {
  request_.job.threads = 4;
  EXPECT_TRUE(refusal().starts_with("{threads}: is of CPUs, and V100-SXM2-16GB is a GPU"));
  request_.job.threads.reset();
  request_.data.image_size = 512;
  EXPECT_TRUE(refusal().starts_with("{image-size}: "));
  request_.data.image_size = 224;
  EXPECT_EQ(refusal(), "");
}

TEST_F(RequestTest, NamesTheNearestModel) {
  request_.model = "resnet19";
  const std::string text = refusal();
  EXPECT_TRUE(text.starts_with("unknown model \"resnet19\"; did you mean resnet")) << text;
  EXPECT_TRUE(orders_.empty());
}

TEST_F(RequestTest, WhatTheCaptureHasExplainedIsPassedOn) {
  request_.model = "torchvision:no_such_model_of_this_test";
  const auto resolved = resolve_exactly(request_, tools_);
  ASSERT_FALSE(resolved);
  EXPECT_TRUE(is_already_explained(resolved.error()));
  ASSERT_EQ(orders_.size(), 1U);
  EXPECT_EQ(orders_[0].spec, request_.model);
  EXPECT_EQ(orders_[0].precision, Precision::kFp32);
  EXPECT_EQ(orders_[0].device, ModelDevice::kGpu);
  EXPECT_FALSE(std::filesystem::exists(orders_[0].into));
}

}  // namespace
}  // namespace stoker
