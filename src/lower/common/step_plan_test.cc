#include "lower/common/step_plan.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(StepPlan, CountsTheModulesThatWereCalledOnTheWay) {
  Step step;
  step.operator_names.emplace_back("aten::relu");
  step.attributes.emplace_back();
  const std::vector<std::string> paths{
      "conv1", "layer1.0.conv1", "layer1.0.conv10", "layer1.0.conv10", "layer1.0", "layer1.1.conv1",
      "",      "layer1"};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    step.module_names.push_back(paths[i]);
    Operator op;
    op.module = ModuleId(static_cast<std::uint32_t>(i));
    step.operators.push_back(op);
    step.events.push_back({EventKind::kOperator, static_cast<std::uint32_t>(i)});
  }
  // conv1; layer1, 0, conv1; a sibling; the same module; back in the block; 1, conv1; the model
  // itself; layer1
  EXPECT_EQ(plan_step(step).calls, (std::vector<std::uint16_t>{1, 3, 1, 0, 0, 2, 0, 1}));
}

}  // namespace
}  // namespace stoker
