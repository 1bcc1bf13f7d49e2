#include "lower/loop/step_rewrites.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker {
namespace {

class StepRewrites : public testing::Test {
 protected:
  static bool calls(const Step& step, const std::string& name) {
    return std::any_of(step.operators.begin(), step.operators.end(),
                       [&](const Operator& op) { return step.operator_name(op) == name; });
  }
  std::optional<Step> rewritten() {
    auto result = rewritten_step(step_, job_);
    EXPECT_TRUE(result) << result.error().text();
    return std::move(*result);
  }
  Step step_ = parse_step(testing_support::linear_step_json(), "test").value();
  Job job_;
};

TEST_F(StepRewrites, NothingIsRewrittenForOneGpuOrForDdp) {
  EXPECT_FALSE(rewritten());
  job_.parallel = Parallel::kFsdpZero3;
  EXPECT_FALSE(rewritten());  // one GPU: there is nothing to share
  job_.gpus = 4;
  job_.parallel = Parallel::kDdp;
  EXPECT_FALSE(rewritten());
  job_.parallel = Parallel::kFsdpZero3;
  step_.mode = "inference";
  EXPECT_FALSE(rewritten());  // each GPU by itself
}

TEST_F(StepRewrites, EachKindOfSharingIsItsOwn) {
  job_.gpus = 2;
  job_.parallel = Parallel::kFsdpZero3;
  const auto sharded = rewritten();
  ASSERT_TRUE(sharded);
  EXPECT_TRUE(calls(*sharded, "stoker::all_gather"));
  EXPECT_FALSE(calls(*sharded, "stoker::scatter"));
  job_.parallel = Parallel::kDataParallel;
  const auto scattered = rewritten();
  ASSERT_TRUE(scattered);
  EXPECT_TRUE(calls(*scattered, "stoker::scatter"));
  EXPECT_FALSE(calls(*scattered, "stoker::all_gather"));
}

TEST_F(StepRewrites, AModuleThatIsNotThereIsRefused) {
  job_.checkpoint = {"fd"};
  const auto result = rewritten_step(step_, job_);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("fc"), std::string::npos) << result.error().text();
}

}  // namespace
}  // namespace stoker
