#include "lower/gpu/cuda_graphs.h"

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

using testing_support::ampere;
using testing_support::linear_step;
using testing_support::plain_job;

Job graphs_job() {
  Job job = plain_job();
  job.cuda_graphs = true;
  return job;
}

TEST(CudaGraphs, TheProgramSaysSoAndWhatIsLeftOut) {
  const auto program = lower(linear_step(), graphs_job(), ampere());
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_TRUE(program->cuda_graphs);
  EXPECT_EQ(program->diagnostics.count("cuda_graphs_memory"), 1);
  EXPECT_EQ(program->diagnostics.count("optimizer_outside_graphs"), 0);
  EXPECT_FALSE(lower(linear_step(), plain_job(), ampere())->cuda_graphs);
}

TEST(CudaGraphs, AScalerLeavesTheOptimizerOutside) {
  Job job = graphs_job();
  job.grad_scaler = true;
  EXPECT_EQ(lower(linear_step(), job, ampere())->diagnostics.count("optimizer_outside_graphs"), 1);
  job.optimizer.loop = OptimizerLoop::kFused;
  EXPECT_EQ(lower(linear_step(), job, ampere())->diagnostics.count("optimizer_outside_graphs"), 0);
}

TEST(CudaGraphs, RefusedOverASynchronisation) {
  Step step = linear_step();
  step.events.push_back({EventKind::kSynchronize, 0});
  const auto refused = lower(step, graphs_job(), ampere());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "{cuda-graphs}");
  EXPECT_NE(refused.error().message.find("1 time a step"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(lower(step, plain_job(), ampere()));
}

TEST(CudaGraphs, RefusedUnderDataParallelAndFsdp) {
  for (const Parallel parallel :
       {Parallel::kDataParallel, Parallel::kFsdpZero2, Parallel::kFsdpZero3}) {
    Job job = graphs_job();
    job.gpus = 2;
    job.parallel = parallel;
    const auto refused = lower(linear_step(), job, ampere());
    ASSERT_FALSE(refused) << name_of(parallel);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    job.gpus = 1;  // nothing is shared
    EXPECT_TRUE(lower(linear_step(), job, ampere()));
  }
}

}  // namespace
}  // namespace stoker
