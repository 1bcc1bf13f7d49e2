#include <algorithm>
#include <fstream>

#include "scenario/resolve/test_request.h"

namespace stoker {
namespace {

using testing_support::RequestTest;

TEST_F(RequestTest, WhatIsNotAskedForHasItsDocumentedDefault) {
  const Resolved r = exactly();
  const Scenario& s = r.base;
  EXPECT_EQ(r.model.name, "resnet18");
  EXPECT_EQ(s.job.precision, Precision::kFp32);
  EXPECT_EQ(s.job.batch, s.step->dimensions[0].default_value);
  EXPECT_EQ(s.job.gpus, 1);
  EXPECT_EQ(s.job.nodes, 1);
  EXPECT_EQ(s.job.accumulate, 1);
  EXPECT_EQ(s.job.copy, CopyWay::kOverlapped);
  EXPECT_EQ(s.job.parallel, Parallel::kDdp);
  EXPECT_EQ(s.job.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_TRUE(s.job.zero_grad_before_forward);
  EXPECT_FALSE(s.job.clip);
  EXPECT_TRUE(s.loader.pin);
  EXPECT_TRUE(s.loader.persistent);
  EXPECT_EQ(s.loader.workers, 16);
  EXPECT_EQ(s.loader.prefetch, 2);
  EXPECT_EQ(s.machine.device->name, "V100-SXM2-16GB");
  EXPECT_EQ(s.machine.host.cores, 16);
  EXPECT_FALSE(s.sample.known);
}

TEST_F(RequestTest, WorkersLiveOnOrNotAsItIsSaid) {
  request_.data.sample_cost = Nanos(4e6);
  const auto words = [](const Resolved& r) {
    std::string all;
    for (const std::string& text : r.facts.assumed) all += text + "; ";
    return all;
  };
  Resolved r = exactly();
  EXPECT_TRUE(r.base.loader.persistent);
  EXPECT_NE(words(r).find("workers live on between epochs ({no-persistent-workers})"),
            std::string::npos)
      << words(r);
  request_.persistent_workers = false;
  request_.start_method = StartMethod::kSpawn;
  r = exactly();
  EXPECT_FALSE(r.base.loader.persistent);
  EXPECT_EQ(r.base.loader.start_method, StartMethod::kSpawn);
  EXPECT_EQ(words(r).find("between epochs"), std::string::npos) << words(r);
  EXPECT_NE(words(r).find("workers start by spawn;"), std::string::npos) << words(r);
}

TEST_F(RequestTest, AStatedCostOfASampleIsWhatTheAnswerRestsOn) {
  const auto rests = [&] { return exactly().facts.rests_on; };
  const auto stated = std::string("CPU time a sample as given");
  const auto without = rests();
  EXPECT_EQ(std::count(without.begin(), without.end(), stated), 0);
  request_.data.sample_cost = Nanos(4e6);
  const auto with = rests();
  EXPECT_EQ(std::count(with.begin(), with.end(), stated), 1);
}

TEST_F(RequestTest, WhatIsAskedForIsTaken) {
  request_.batch = 48;
  request_.precisions = {Precision::kAmpFp16};
  request_.workers = 3;
  request_.prefetch = 5;
  request_.job.accumulate = 4;
  request_.job.clip = true;
  request_.job.ema = true;
  request_.job.zero_grad_after = true;
  request_.job.optimizer = {.kind = OptimizerKind::kAdamW,
                            .loop = OptimizerLoop::kFused,
                            .momentum = {},
                            .weight_decay = 0.01};
  request_.job.checkpoint = {"layer1", "layer2.*"};
  request_.job.copy = CopyWay::kBlocking;
  request_.data.sample_cost = Nanos(4e6);
  request_.data.samples = 100'000;
  request_.job.epochs = 90;
  request_.job.last_batch = RestOfDataSet{};
  const Scenario s = exactly().base;
  EXPECT_EQ(s.job.batch, 48);
  EXPECT_EQ(s.job.precision, Precision::kAmpFp16);
  EXPECT_TRUE(s.job.grad_scaler);  // what people do in amp-fp16
  EXPECT_EQ(s.loader.workers, 3);
  EXPECT_EQ(s.loader.prefetch, 5);
  EXPECT_EQ(s.job.accumulate, 4);
  EXPECT_TRUE(s.job.clip);
  EXPECT_TRUE(s.job.ema);
  EXPECT_FALSE(s.job.zero_grad_before_forward);
  EXPECT_EQ(s.job.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(s.job.optimizer.loop, OptimizerLoop::kFused);
  EXPECT_EQ(s.job.optimizer.momentum, 0);
  EXPECT_EQ(s.job.optimizer.weight_decay, 0.01);
  EXPECT_EQ(s.job.checkpoint, (std::vector<std::string>{"layer1", "layer2.*"}));
  EXPECT_EQ(s.job.copy, CopyWay::kBlocking);
  EXPECT_TRUE(s.sample.known);
  EXPECT_EQ(s.dataset_samples, 100'000);
  EXPECT_EQ(s.epochs, 90);
  EXPECT_EQ(s.job.last_batch, 100'000 % 48);
}

TEST_F(RequestTest, WorkersShareTheCoresOfTheFullestNode) {
  request_.gpus = 8;
  request_.job.nodes = 2;
  EXPECT_EQ(exactly().base.machine.gpu_count, 4);
  EXPECT_EQ(exactly().base.loader.workers, 4);
  request_.job.nodes = 3;  // 3 + 3 + 2: the hosts of three decide, not the one of two
  EXPECT_EQ(exactly().base.machine.gpu_count, 3);
  EXPECT_EQ(exactly().base.loader.workers, 5);
  request_.gpus = 64;
  request_.job.nodes = 1;  // never fewer than one
  EXPECT_EQ(exactly().base.loader.workers, 1);
}

TEST_F(RequestTest, TheLargestBatchIsTheSafeOneOfTheMemoryForecast) {
  request_.batch = LargestSafeBatch{};
  const Resolved r = exactly();
  const auto limits = batch_limits_of(r);
  ASSERT_TRUE(limits);
  EXPECT_EQ(r.base.job.batch, limits->low);
  EXPECT_GT(r.base.job.batch, 64);
  EXPECT_FALSE(has(r.facts.assumed, "batch 32 ({batch})"));
}

TEST_F(RequestTest, PageableMemoryHoldsTheHostWhateverIsAsked) {
  request_.pin = false;
  EXPECT_EQ(exactly().base.job.copy, CopyWay::kPageable);
  EXPECT_FALSE(exactly().base.loader.pin);
  request_.job.copy = CopyWay::kBlocking;  // no contradiction
  EXPECT_EQ(exactly().base.job.copy, CopyWay::kPageable);
  request_.job.copy = CopyWay::kNonBlocking;
  EXPECT_TRUE(refusal().starts_with("{copy}: copies from pageable memory ({no-pin})"));
}

TEST_F(RequestTest, APriceIsTheMachinesUnlessItIsGiven) {
  EXPECT_EQ(exactly().base.price_per_gpu_hour, 0);
  EXPECT_TRUE(has(exactly().facts.excluded, "cost ({price})"));
  request_.price_per_gpu_hour = 2.5;
  EXPECT_EQ(exactly().base.price_per_gpu_hour, 2.5);
  EXPECT_FALSE(has(exactly().facts.excluded, "cost ({price})"));
  request_.price_per_gpu_hour = 0;
  EXPECT_EQ(refusal(), "{price}: must be a positive price per GPU and hour, not 0");
}

TEST_F(RequestTest, AMachineFileSaysGpusPriceAndHost) {
  const std::string path = testing::TempDir() + "request_machine.toml";
  std::ofstream(path) << "format_version = 1\nname = \"lab\"\n"
                         "[gpu]\nbase = \"a100-40gb\"\ncount = 4\nprice_per_hour = 1.25\n"
                         "[host]\ncores = 24\nmemory = \"256GiB\"\n";
  request_.machine = path;
  request_.host = "";
  const Scenario s = exactly().base;
  EXPECT_TRUE(s.machine.device->name.starts_with("A100")) << s.machine.device->name;
  EXPECT_EQ(s.machine.host.cores, 24);
  EXPECT_EQ(s.price_per_gpu_hour, 1.25);
  EXPECT_EQ(s.machine.gpu_count, 1);  // of one GPU's job
  const auto searched = resolve(request_, tools_);
  ASSERT_TRUE(searched);
  EXPECT_EQ(searched->base.machine.gpu_count, 4);  // what a search may use
}

TEST_F(RequestTest, SaysWhatItAssumed) {
  request_.data.sample_cost = Nanos(1e6);
  request_.data.samples = 10;
  const Facts facts = exactly().facts;
  EXPECT_TRUE(has(facts.assumed, "16 workers ({workers})"));
  EXPECT_TRUE(has(facts.assumed, "the next batch is copied to the GPU while a step runs ({copy})"));
  EXPECT_TRUE(has(facts.excluded, "validation pass ({validation})"));
  EXPECT_EQ(facts.sample_word, "img");
  EXPECT_EQ(facts.dataset_samples, 10);
  EXPECT_TRUE(facts.data.empty());
  request_.workers = 2;
  request_.job.copy = CopyWay::kOverlapped;
  EXPECT_FALSE(has(exactly().facts.assumed, "2 workers ({workers})"));
  EXPECT_FALSE(has(exactly().facts.assumed,
                   "the next batch is copied to the GPU while a step runs ({copy})"));
}

}  // namespace
}  // namespace stoker
