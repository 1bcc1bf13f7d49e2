#include "report/text/measured/trained_words.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Step with_adapter() {
  Step step;
  step.mode = "train";
  step.types = {{DType::kF32, {Polynomial(1000), Polynomial(40)}, Layout::kRowMajor, {}},
                {DType::kF32, {Polynomial(2'000'000), Polynomial(1)}, Layout::kRowMajor, {}}};
  step.parameters = {{"adapter", TypeId{0}, StorageId{0}, true, 2, 0},
                     {"base", TypeId{1}, StorageId{1}, false, -1, 0}};
  return step;
}

TEST(TrainedWords, SayHowMuchIsTrained) {
  EXPECT_EQ(trained_words(with_adapter()), "trains 40 k of 2.04 M parameters (1.96 %)");
}

TEST(TrainedWords, SayNothingWhereAllIsTrained) {
  Step step = with_adapter();
  step.parameters.pop_back();
  EXPECT_EQ(trained_words(step), "");
}

}  // namespace
}  // namespace stoker
