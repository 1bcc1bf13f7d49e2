#include "step/trained_share.h"

#include <gtest/gtest.h>

#include "step/test_step.h"

namespace stoker {
namespace {

Polynomial constant(std::int64_t value) { return Polynomial(value); }

Step with_weights(DType frozen) {
  Step step;
  step.mode = "train";
  step.types = {{DType::kF32, {constant(1000), constant(40)}, Layout::kRowMajor, {}},
                {frozen, {constant(2'000'000), constant(1)}, Layout::kRowMajor, {}}};
  step.parameters = {{"adapter", TypeId{0}, StorageId{0}, true, 2, 0},
                     {"base", TypeId{1}, StorageId{1}, false, -1, 0}};
  return step;
}

TEST(TrainedShare, CountsWhatRequiresAGradient) {
  const TrainedShare found = trained_share(with_weights(DType::kF32));
  EXPECT_EQ(found.trained, 40'000);
  EXPECT_EQ(found.total, 2'040'000);
}

TEST(TrainedShare, FourBitWeightsCountAsTwoAByte) {
  EXPECT_EQ(trained_share(with_weights(DType::kU8)).total, 4'040'000);
}

TEST(TrainedShare, TiedWeightsCountOnce) {
  Step step = with_weights(DType::kF32);
  step.parameters.push_back({"tied", TypeId{1}, StorageId{1}, false, -1, 0});
  EXPECT_EQ(trained_share(step).total, 2'040'000);
}

}  // namespace
}  // namespace stoker
