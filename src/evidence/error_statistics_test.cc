#include "evidence/error_statistics.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ErrorStatistics, ErrorsAreOfWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(relative_error(110, 100), 110.0 / 100 - 1);
  EXPECT_DOUBLE_EQ(relative_error(50, 100), -0.5);
}

TEST(ErrorStatistics, TheMedianOfAnEvenNumberLiesBetween) {
  EXPECT_DOUBLE_EQ(median_of({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median_of({7}), 7);
  EXPECT_DOUBLE_EQ(median_of({}), 0);
}

TEST(ErrorStatistics, SumsUpErrorsOfBothSigns) {
  ErrorStatistics errors;
  errors.add(0.1, "a");
  errors.add(-0.4, "b", false);
  errors.add(0.2, "c");
  errors.add(0.4, "d", false);
  EXPECT_EQ(errors.count(), 4u);
  EXPECT_NEAR(errors.mean(), 0.275, 1e-12);
  EXPECT_NEAR(errors.median(), 0.3, 1e-12);
  EXPECT_NEAR(errors.bias(), 0.075, 1e-12);
  EXPECT_DOUBLE_EQ(errors.worst(), 0.4);
  EXPECT_EQ(errors.worst_label(), "b") << "the first of two that are alike";
  EXPECT_DOUBLE_EQ(errors.coverage(), 0.5);
}

TEST(ErrorStatistics, OfNothingAreZero) {
  const ErrorStatistics none;
  EXPECT_EQ(none.count(), 0u);
  EXPECT_DOUBLE_EQ(none.mean(), 0);
  EXPECT_DOUBLE_EQ(none.median(), 0);
  EXPECT_DOUBLE_EQ(none.bias(), 0);
  EXPECT_DOUBLE_EQ(none.worst(), 0);
  EXPECT_DOUBLE_EQ(none.coverage(), 0);
  EXPECT_EQ(none.worst_label(), "");
}

TEST(ErrorStatistics, AForecastWithoutErrorHasALabelToo) {
  ErrorStatistics exact;
  exact.add(0, "first");
  exact.add(0, "second");
  EXPECT_EQ(exact.worst_label(), "first");
}

}  // namespace
}  // namespace stoker
