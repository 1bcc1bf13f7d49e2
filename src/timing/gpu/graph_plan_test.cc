#include "timing/gpu/graph_plan.h"

#include <gtest/gtest.h>

#include "timing/common/testing.h"

namespace stoker {
namespace {

using timing_test::launch;
using timing_test::moving;

Program graphed() {
  Program program;
  program.cuda_graphs = true;
  return program;
}

Kernel batch_copy() {
  Kernel copy = moving(1);
  copy.kernel_class = KernelClass::kHostToDevice;
  return copy;
}

TEST(GraphPlan, AGraphBeforeTheRepetitionsHoldsTheKernelsOfAll) {
  Program program = graphed();
  for (int i = 0; i < 4; ++i) launch(program, moving(1));
  program.repeated = {1, 3, 100};
  const GraphPlan plan(program, program.iteration);
  EXPECT_EQ(plan.launched_at(0), 1U + 100 * 2 + 1);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(plan.launched_at(i), 0U) << i;
}

TEST(GraphPlan, AGraphThatABatchBeginsIsLaunchedInEachRepetition) {
  Program program = graphed();
  launch(program, moving(1));
  launch(program, batch_copy());
  launch(program, moving(1));
  launch(program, moving(1));
  program.repeated = {1, 4, 100};
  const GraphPlan plan(program, program.iteration);
  EXPECT_EQ(plan.launched_at(0), 1U);
  EXPECT_EQ(plan.launched_at(1), 0U);
  EXPECT_EQ(plan.launched_at(2), 2U);
}

TEST(GraphPlan, WhatFollowsTheRepetitionsIsInNoneOfTheirGraphs) {
  Program program = graphed();
  launch(program, batch_copy());
  launch(program, moving(1));
  for (int i = 0; i < 3; ++i) launch(program, moving(1, StepPhase::kOptimizer));
  program.repeated = {0, 2, 100};
  const GraphPlan plan(program, program.iteration);
  EXPECT_EQ(plan.launched_at(1), 1U);
  EXPECT_EQ(plan.launched_at(2), 3U);
}

TEST(GraphPlan, TheOptimizerIsOutsideWhereTheHostWaits) {
  Program program = graphed();
  launch(program, moving(1));
  program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
  launch(program, moving(1, StepPhase::kOptimizer));
  const GraphPlan plan(program, program.iteration);
  EXPECT_EQ(plan.launched_at(0), 1U);
  EXPECT_FALSE(plan.holds(program.kernels[1]));
}

}  // namespace
}  // namespace stoker
