#include "cli/request/run_request.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

RunOptions options() {
  RunOptions o;
  o.model = "resnet18";
  o.gpu = "v100-16gb,t4";
  return o;
}

TEST(RunRequest, NumbersOfGpusAreListsAndRanges) {
  EXPECT_EQ(parse_counts("4").value(), (std::vector<int>{4}));
  EXPECT_EQ(parse_counts("4,1,2,4").value(), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(parse_counts("1..4").value(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(parse_counts("14..40").value(), (std::vector<int>{14, 15, 16, 24, 32, 40}));
  for (const char* text : {"0", "4..2", "1,,2", "many", "1025", "1.."})
    EXPECT_EQ(parse_counts(text).error().where, "--gpus") << text;
}

TEST(RunRequest, AGpusNameMaySayHowMany) {
  RunOptions o = options();
  o.gpu = "4xa100-80gb,8 x a10g,rtx2080,x4,0xt4,aws:g5.2xlarge";
  const auto gpus = named_gpus(o);
  ASSERT_EQ(gpus.size(), 6U);
  EXPECT_EQ(gpus[0].name, "a100-80gb");
  EXPECT_EQ(gpus[0].count, 4);
  EXPECT_EQ(gpus[1].name, "a10g");
  EXPECT_EQ(gpus[1].count, 8);
  for (const std::size_t i : {2U, 3U, 4U, 5U}) EXPECT_EQ(gpus[i].count, 0) << gpus[i].name;
  EXPECT_EQ(exact_request(o, gpus[1])->gpus, 8);
  EXPECT_EQ(exact_request(o, gpus[2])->gpus, 1);
  o.gpus = "2";
  EXPECT_EQ(exact_request(o, gpus[2])->gpus, 2);
  EXPECT_EQ(exact_request(o, gpus[0]).error().text(),
            "--gpus: --gpu 4xa100-80gb says how many already; leave out --gpus");
}

TEST(RunRequest, ANumberMayStandBehindTheNameOfAGpu) {
  RunOptions o = options();
  o.gpu = "t4x2,A100 x 8,a100-80gbx4,gtx970,4x4090,rtx4090,p4d.24xlarge";
  const auto gpus = named_gpus(o);
  ASSERT_EQ(gpus.size(), 7U);
  EXPECT_EQ(gpus[0].name, "t4");
  EXPECT_EQ(gpus[0].count, 2);
  EXPECT_EQ(gpus[1].name, "A100");
  EXPECT_EQ(gpus[1].count, 8);
  EXPECT_EQ(gpus[2].name, "a100-80gb");
  EXPECT_EQ(gpus[2].count, 4);
  EXPECT_EQ(gpus[3].name, "gtx970");
  EXPECT_EQ(gpus[3].count, 0);
  EXPECT_EQ(gpus[4].name, "4090");
  EXPECT_EQ(gpus[4].count, 4);
  for (const std::size_t i : {5U, 6U}) EXPECT_EQ(gpus[i].count, 0) << gpus[i].name;
}

TEST(RunRequest, AGpuIsNotComparedWithItself) {
  const auto refusal = [](const std::string& typed) {
    RunOptions o = options();
    o.gpu = typed;
    const Status status = check_different(named_gpus(o));
    return status ? std::string() : status.error().text();
  };
  EXPECT_EQ(refusal("t4,T4"),
            "--gpu: t4 and T4 are one GPU; give it once. Two in one machine are "
            "--gpus 2, or --gpu 2xT4");
  EXPECT_NE(refusal("l4,t4,t4").find("names t4 twice"), std::string::npos);
  EXPECT_NE(refusal("t4,1xt4").find("twice"), std::string::npos);
  EXPECT_EQ(refusal("t4,2xt4,l4"), "");
  EXPECT_EQ(refusal("this.toml,that.toml"), "");
  EXPECT_EQ(refusal("node-1.toml,node1.toml"), "") << "two files";
}

TEST(RunRequest, EachGpuHasItsOwnPriceOrAllHaveOne) {
  RunOptions o = options();
  const auto gpus = named_gpus(o);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].name, "t4");
  EXPECT_EQ(gpus[1].position, 1U);
  EXPECT_FALSE(run_request(o, gpus[1])->price_per_gpu_hour);
  o.price = "2.5,0.4";
  EXPECT_EQ(run_request(o, gpus[0])->price_per_gpu_hour, 2.5);
  EXPECT_EQ(run_request(o, gpus[1])->price_per_gpu_hour, 0.4);
  o.price = "3";
  EXPECT_EQ(run_request(o, gpus[1])->price_per_gpu_hour, 3.0);
  o.price = "1,2,3";
  EXPECT_EQ(run_request(o, gpus[0]).error().message,
            "3 prices for 2 GPUs; give one, or one for each");
}

TEST(RunRequest, APriceIsReadAsPeopleWriteIt) {
  RunOptions o;
  o.gpu = "t4";
  o.price = "$0.35/h";
  EXPECT_EQ(run_request(o, named_gpus(o)[0])->price_per_gpu_hour, 0.35);
  o.price = "0,35";
  EXPECT_EQ(run_request(o, named_gpus(o)[0]).error().message,
            "2 prices for 1 GPU; give one; a decimal point is written 0.35");
  EXPECT_NE(parse_price("cheap").error().message.find("a number as 0.35"), std::string::npos);
}

TEST(RunRequest, PairsAreYesNoOrNothing) {
  RunOptions o;
  EXPECT_TRUE(run_request(o, {})->pin);
  EXPECT_FALSE(run_request(o, {})->job.clip);
  o.pin = o.job.ema = false;
  o.job.clip = true;
  EXPECT_FALSE(run_request(o, {})->pin);
  EXPECT_EQ(run_request(o, {})->job.clip, true);
  EXPECT_EQ(run_request(o, {})->job.ema, false);
  EXPECT_FALSE(run_request(o, {})->persistent_workers);
  o.persistent_workers = false;
  EXPECT_EQ(run_request(o, {})->persistent_workers, false);
  o.start_method = "Spawn";
  EXPECT_EQ(run_request(o, {})->start_method, StartMethod::kSpawn);
  o.start_method = "hatch";
  EXPECT_EQ(run_request(o, {}).error().message, "\"hatch\" is none of fork, forkserver, spawn");
}

TEST(RunRequest, TextsBecomeValues) {
  JobOptions o;
  o.optimizer = "adamw";
  o.optimizer_loop = "fused";
  o.copy = "non_blocking";
  o.parallel = "fsdp";
  o.checkpoint = "layer1,layer2.*";
  o.last_batch = "auto";
  o.seq_len = "128";
  o.dimensions = {"frames=16"};
  const auto job = job_request(o);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(job->optimizer.loop, OptimizerLoop::kFused);
  EXPECT_EQ(job->copy, CopyWay::kNonBlocking);
  EXPECT_EQ(job->parallel, Parallel::kFsdpZero3);
  EXPECT_EQ(job->checkpoint, (std::vector<std::string>{"layer1", "layer2.*"}));
  EXPECT_TRUE(std::holds_alternative<RestOfDataSet>(*job->last_batch));
  EXPECT_EQ(job->dimensions,
            (std::map<std::string, std::int64_t>{{"frames", 16}, {"seq_len", 128}}));
  o.last_batch = "7";
  EXPECT_EQ(std::get<std::int64_t>(*job_request(o)->last_batch), 7);
}

TEST(RunRequest, WhatIsNoValueIsRefusedByItsFlag) {
  JobOptions o;
  o.copy = "pageable";
  EXPECT_EQ(job_request(o).error().where, "--copy");
  o = {};
  o.last_batch = "0";
  EXPECT_EQ(job_request(o).error().where, "--last-batch");
  o = {};
  o.parallel = "horizontally";
  EXPECT_EQ(job_request(o).error().where, "--parallel");
  EXPECT_EQ(parse_dimensions("long", {}).error().text(),
            "--seq-len: \"long\" is no length; write one number");
  EXPECT_EQ(parse_dimensions("4k", {}).error().text(),
            "--seq-len: \"4k\" is no length; write 4096");
  EXPECT_EQ(parse_dimensions({}, {"=4"}).error().where, "--dim");
  EXPECT_EQ(parse_dimensions({}, {"batch=4"}).error().text(), "--dim: the batch is --batch 4");
  EXPECT_EQ(parse_dimensions("128", {"seq_len=256"}).error().text(),
            "--dim: seq_len is said to be 128 and 256; say it once");
  EXPECT_TRUE(parse_dimensions("128", {"seq_len=128"}));
  EXPECT_EQ(parse_dimensions({}, {"a=99999999999999999999"}).error().message,
            "the number of \"a=99999999999999999999\" is too large");
}

TEST(RunRequest, ABatchIsANumberOrTheLargestSafeOne) {
  EXPECT_FALSE(*parse_batch(""));
  EXPECT_TRUE(std::holds_alternative<LargestSafeBatch>(**parse_batch("max")));
  EXPECT_EQ(std::get<std::int64_t>(**parse_batch("64")), 64);
  EXPECT_EQ(parse_batch("64x").error().where, "--batch");
}

TEST(RunRequest, ExactlyTakesOnePrecisionAndOneNumberOfGpus) {
  RunOptions o = options();
  o.precision = "amp-fp16";
  o.gpus = "4";
  const auto request = exact_request(o, {"t4"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->machine, "t4");
  EXPECT_EQ(request->precisions, std::vector{Precision::kAmpFp16});
  EXPECT_EQ(request->gpus, 4);
  o.gpus = "1..4";
  EXPECT_EQ(exact_request(o, {"t4"}).error().where, "--gpus");
  o.gpus = "4";
  o.precision = "fp32,amp-fp16";
  EXPECT_FALSE(exact_request(o, {"t4"}));
}

TEST(RunRequest, TimesCarryAUnit) {
  EXPECT_EQ(parse_time("2.5ms", "--sample-cost")->count(), 2.5e6);
  EXPECT_EQ(parse_time("300 us", "--sample-cost")->count(), 3e5);
  EXPECT_EQ(parse_time("0.1s", "--sample-cost")->count(), 1e8);
  for (const char* text : {"2.5", "ms", "-1ms", "0s", "1e9s"})
    EXPECT_EQ(parse_time(text, "--budget").error().where, "--budget") << text;
}

}  // namespace
}  // namespace stoker::cli
