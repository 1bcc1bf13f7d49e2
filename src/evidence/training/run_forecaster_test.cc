#include "evidence/training/run_forecaster.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

MeasuredRun measured() {
  MeasuredRun run;
  run.model = "resnet18";
  run.batch = 16;
  run.precision = "amp-bf16";
  run.optimizer = "sgd";
  run.momentum = 0.9;
  run.weight_decay = 1e-4;
  run.dimensions = {{"seq_len", 64}};
  run.threads = 2;
  return run;
}

TEST(RequestOfMeasuredRun, AsksForWhatWasMeasured) {
  const auto request = request_of(measured(), "V100-SXM2-16GB", false);
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->model, "resnet18");
  EXPECT_EQ(request->machine, "V100-SXM2-16GB");
  EXPECT_EQ(request->given_batch(), 16);
  EXPECT_EQ(request->precisions, std::vector{Precision::kAmpBf16});
  EXPECT_EQ(request->job.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(request->job.optimizer.momentum, 0.9);
  EXPECT_EQ(request->job.optimizer.weight_decay, 1e-4);
  EXPECT_EQ(request->job.dimensions.at("seq_len"), 64);
  EXPECT_EQ(request->job.copy, CopyWay::kNonBlocking);
  EXPECT_FALSE(request->job.threads);  // a GPU has none
}

TEST(RequestOfMeasuredRun, ACpuHasThreadsAndNoCopies) {
  const auto request = request_of(measured(), "cpu", true);
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->job.threads, 2);
  EXPECT_FALSE(request->job.copy);
}

TEST(RequestOfMeasuredRun, LeavesOutWhatTheOptimizerDoesNotTake) {
  MeasuredRun run = measured();
  run.optimizer = "adamw";
  const auto adamw = request_of(run, "V100-SXM2-16GB", false);
  ASSERT_TRUE(adamw);
  EXPECT_FALSE(adamw->job.optimizer.momentum);
  EXPECT_EQ(adamw->job.optimizer.weight_decay, 1e-4);
  run.optimizer = "";
  const auto captured = request_of(run, "V100-SXM2-16GB", false);
  ASSERT_TRUE(captured);
  EXPECT_FALSE(captured->job.optimizer.kind);
  EXPECT_FALSE(captured->job.optimizer.weight_decay);
}

TEST(RequestOfMeasuredRun, RefusesNamesThatItDoesNotKnow) {
  MeasuredRun run = measured();
  run.optimizer = "gradient-by-guess";
  EXPECT_FALSE(request_of(run, "cpu", true));
  run = measured();
  run.precision = "fp7";
  EXPECT_FALSE(request_of(run, "cpu", true));
}

}  // namespace
}  // namespace stoker
