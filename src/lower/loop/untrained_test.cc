#include "lower/loop/untrained.h"

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

using testing_support::ampere;
using testing_support::linear_step;
using testing_support::plain_job;

/// The linear layer's parameter, trained, beside `more` of the same shape that get no gradient.
Step with_untrained(const std::vector<std::string>& more) {
  Step step = linear_step();
  Parameter untrained = step.parameters.front();
  untrained.gradient = -1;
  for (const std::string& name : more) {
    untrained.name = name;
    step.parameters.push_back(untrained);
  }
  return step;
}

TEST(Untrained, NothingIsSaidWhereEachParameterGetsItsGradient) {
  EXPECT_EQ(untrained_words(linear_step()), "");
}

TEST(Untrained, NamesTheOutermostModulesAndTheShareOfTheWeights) {
  const Step step = with_untrained({"blocks.0.a", "blocks.0.b", "blocks.1.a", "fc.bias"});
  ASSERT_EQ(step.parameters.front().name, "fc.weight");
  const std::string words = untrained_words(step);
  EXPECT_NE(words.find("4 of 5 parameters that require a gradient get none (80 % of the weights): "
                       "blocks, fc.bias; "),
            std::string::npos)
      << words;
}

TEST(Untrained, WhatIsFrozenOrSteppedInTheBackwardIsMeantToBeSo) {
  Step frozen = with_untrained({"stem"});
  frozen.parameters.back().requires_grad = false;
  EXPECT_EQ(untrained_words(frozen), "");
  Step hooked = with_untrained({"stem"});
  hooked.optimizer.in_backward = "sgd";
  EXPECT_EQ(untrained_words(hooked), "");
}

TEST(Untrained, IsADiagnosticOfTheLoweredJob) {
  const auto plain = lower(linear_step(), plain_job(), ampere());
  const auto some = lower(with_untrained({"stem"}), plain_job(), ampere());
  ASSERT_TRUE(plain && some);
  EXPECT_EQ(plain->diagnostics.count(kNotTrained), 0);
  EXPECT_EQ(some->diagnostics.count(kNotTrained), 1);
}

}  // namespace
}  // namespace stoker
