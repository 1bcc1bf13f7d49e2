#include "cli/request/global_batch.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

RunRequest request_on(std::int64_t gpus) {
  RunRequest request;
  request.gpus = gpus;
  return request;
}

/// Multiples of `part` around `samples`, counted up one by one: "below and above can", or where
/// there is none below "above can be".
std::string neighbours(std::int64_t samples, std::int64_t part) {
  std::int64_t above = part;
  while (above <= samples) above += part;
  const std::string next = std::to_string(above);
  return above == part ? next + " can be" : std::to_string(above - part) + " and " + next + " can";
}

TEST(GlobalBatch, IsBatchTimesAccumulationTimesGpus) {
  for (std::int64_t gpus = 1; gpus <= 4; ++gpus) {
    for (std::int64_t batch = 1; batch <= 9; ++batch) {
      for (std::int64_t global = 1; global <= 80; ++global) {
        RunRequest request = request_on(gpus);
        request.batch = BatchRequest(batch);
        const auto said = share_out(global, request, {});
        if (global % (gpus * batch) != 0) {
          ASSERT_FALSE(said) << global << " by " << batch << " on " << gpus;
          const std::string& message = said.error().message;
          const std::string near = neighbours(global, global % gpus != 0 ? gpus : gpus * batch);
          ASSERT_TRUE(message.ends_with("; " + near)) << message << " " << near;
          continue;
        }
        ASSERT_TRUE(said) << said.error().text();
        const std::int64_t steps = request.job.accumulate.value_or(1);
        ASSERT_EQ(*request.given_batch() * steps * gpus, global);
        ASSERT_EQ(*request.given_batch(), batch);
      }
    }
  }
}

TEST(GlobalBatch, TheAccumulationThatIsGivenDecidesTheBatch) {
  RunRequest request = request_on(8);
  request.job.accumulate = 4;
  EXPECT_EQ(share_out(2048, request, {}).value(),
            "--batch 64 --accumulate 4 on 8 GPUs for the global batch of 2048 (--global-batch)");
  EXPECT_EQ(request.given_batch(), 64);
  RunRequest uneven = request_on(8);
  uneven.job.accumulate = 3;
  EXPECT_EQ(share_out(2048, uneven, {}).error().message,
            "2048 samples cannot be shared evenly by 3 batches on 8 GPUs; 2040 and 2064 can");
}

TEST(GlobalBatch, OneOfTheThreeIsLeftOut) {
  RunRequest request = request_on(2);
  request.batch = BatchRequest(std::int64_t{8});
  request.job.accumulate = 2;
  EXPECT_FALSE(share_out(32, request, {}));
}

TEST(GlobalBatch, NoMoreIsAccumulatedThanAJobMay) {
  RunRequest request = request_on(1);
  request.batch = BatchRequest(std::int64_t{2});
  EXPECT_TRUE(share_out(8192, request, {}));
  RunRequest beyond = request_on(1);
  beyond.batch = BatchRequest(std::int64_t{2});
  EXPECT_EQ(share_out(8194, beyond, {}).error().message,
            "would take 4097 batches of 2 on 1 GPU, and at most 4,096 are accumulated; take more "
            "GPUs or a smaller one");
}

/// Whatever is chosen makes the global batch, and no larger divisor of a GPU's share is safe.
TEST(GlobalBatch, WhatIsLeftOpenIsTheLargestSafeBatchThatDivides) {
  for (const std::int64_t global : {64, 720, 1021, 4096}) {
    RunRequest request = request_on(1);
    request.model = "resnet50";
    request.machine = "t4";
    const auto said = share_out(global, request, {});
    ASSERT_TRUE(said) << said.error().text();
    const std::int64_t batch = *request.given_batch();
    const std::int64_t steps = request.job.accumulate.value_or(1);
    EXPECT_EQ(batch * steps, global);
    if (global == 64) {
      EXPECT_EQ(batch, 64);  // all at once: a T4 holds more than a hundred images in FP32
    }
    if (global == 1021) {
      EXPECT_EQ(batch, 1);  // a prime number that does not fit at once
    }
    if (global == 4096) {
      EXPECT_EQ(batch & (batch - 1), 0);  // a power of two
      EXPECT_GE(batch, 64);
      EXPECT_LE(batch, 256);
    }
  }
}

}  // namespace
}  // namespace stoker::cli
