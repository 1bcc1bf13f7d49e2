#include "lower/common/compiled_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "step/step_reader.h"

namespace stoker {
namespace {

Step captured() {
  return read_step_file(std::filesystem::path(STOKER_SOURCE_DIR) /
                        "tests/rewrites/convolutional.amp-bf16.compiled.step.gz")
      .value();
}

bool decided(const Step& step, CompiledFor device) {
  return compiled_channels_last(step, Sizes::at(step, {}).value(), device);
}

Operator& first_convolution(Step& step) {
  return *std::find_if(step.operators.begin(), step.operators.end(), [&](const Operator& op) {
    return step.operator_name(op) == "aten::convolution";
  });
}

TEST(CompiledLayout, CpusAlwaysTakeChannelsLast) {
  EXPECT_TRUE(decided(captured(), CompiledFor::kCpu));
}

TEST(CompiledLayout, GpusTakeItForWideConvolutionsThatAreNotGrouped) {
  Step step = captured();
  EXPECT_FALSE(decided(step, CompiledFor::kGpu));  // 32 channels at most
  Operator& convolution = first_convolution(step);
  step.types[index(convolution.inputs[1].type)].shape[0] = Polynomial(128);
  EXPECT_TRUE(decided(step, CompiledFor::kGpu));
  step.types[index(convolution.inputs[1].type)].shape[1] = Polynomial(256);
  EXPECT_FALSE(decided(step, CompiledFor::kGpu));  // makes half of what it reads
  step.types[index(convolution.inputs[1].type)].shape[1] = Polynomial(2);
  Attributes grouped = step.attributes_of(convolution);
  grouped.groups = 4;
  convolution.attributes = static_cast<std::uint32_t>(step.attributes.size());
  step.attributes.push_back(grouped);
  EXPECT_FALSE(decided(step, CompiledFor::kGpu));
}

TEST(CompiledLayout, AnEagerStepHasNoSuchConvolution) {
  Step step = captured();
  for (Attributes& attributes : step.attributes) attributes.graph = 0;
  EXPECT_FALSE(decided(step, CompiledFor::kCpu));
}

}  // namespace
}  // namespace stoker
