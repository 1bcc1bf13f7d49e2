#include "rewrite/compile/compiled_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "rewrite/rewrite_testing.h"
#include "step/test_step.h"

namespace stoker {
namespace {

using testing_support::live_bytes;
using testing_support::operator_counts;
using testing_support::rewrite_case;

Step compiled(const std::string& name) {
  Step step = compiled_step(rewrite_case(name));
  const Status valid = check_lifetimes(step, name);
  EXPECT_TRUE(valid) << valid.error().text();
  return step;
}

int launched(const Step& step) {
  int count = 0;
  for (const auto& [name, times] : operator_counts(step)) count += times;
  return count;
}

class CompiledStep : public testing::TestWithParam<const char*> {};

TEST_P(CompiledStep, KeepsForTheBackwardWhatThePartitionerChose) {
  const Step captured = rewrite_case(GetParam());
  const Step step = compiled(GetParam());
  for (const std::int64_t batch : {4, 32}) {
    const auto before = live_bytes(captured, batch), after = live_bytes(step, batch);
    EXPECT_EQ(after.at_backward, before.at_backward);
    EXPECT_EQ(after.transient_at_end, before.transient_at_end);
    EXPECT_LT(after.peak, before.peak);
  }
}

TEST_P(CompiledStep, RunsFewerKernelsAndTheSameLibraryCalls) {
  const Step captured = rewrite_case(GetParam());
  const Step step = compiled(GetParam());
  EXPECT_LT(launched(step), launched(captured) / 2);
  auto before = operator_counts(captured), after = operator_counts(step);
  for (const std::string name :
       {"aten::mm", "aten::addmm", "aten::convolution", "aten::convolution_backward",
        "stoker::attention", "stoker::attention_backward", "aten::embedding"})
    EXPECT_EQ(after[name], before[name]) << name;
}

TEST_P(CompiledStep, ReadsOnlyWhatIsInMemory) {
  const Step step = compiled(GetParam());
  std::set<std::uint32_t> alive;
  for (std::uint32_t s = 0; s < step.storages.size(); ++s) {
    const StorageKind kind = step.storages[s].kind;
    if (kind == StorageKind::kParameter || kind == StorageKind::kBuffer ||
        kind == StorageKind::kInput)
      alive.insert(s);
  }
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kAllocate) alive.insert(event.value);
    if (event.kind == EventKind::kFree) alive.erase(event.value);
    if (event.kind != EventKind::kOperator) continue;
    for (const TensorRef& in : step.operators[event.value].inputs)
      EXPECT_TRUE(alive.contains(static_cast<std::uint32_t>(index(in.storage))));
  }
}

TEST_P(CompiledStep, LeavesAnEagerStepAsItIs) {
  Step eager = rewrite_case(GetParam());
  for (Attributes& attributes : eager.attributes) attributes.graph = 0;
  const Step step = compiled_step(eager);
  EXPECT_EQ(step.events.size(), eager.events.size());
  EXPECT_EQ(operator_counts(step), operator_counts(eager));
}

INSTANTIATE_TEST_SUITE_P(Captures, CompiledStep,
                         testing::Values("transformer.amp-bf16.compiled",
                                         "convolutional.amp-bf16.compiled"));

}  // namespace
}  // namespace stoker
