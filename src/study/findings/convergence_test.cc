#include "study/findings/convergence.h"

#include <gtest/gtest.h>

namespace stoker::study {
namespace {

/// A trial of this batch that gets nearer to 1 by `share` of what is left with each epoch.
void add(StudyView& view, Curves& curves, const std::string& batch, double epoch_s, double share) {
  TrialRow row{static_cast<std::int64_t>(view.rows.size()) + 1, {{batch}}};
  row.state = TrialState::kDone;
  double value = 0;
  for (int epoch = 1; epoch <= 10; ++epoch) {
    value += (1 - value) * share;
    curves[row.id].push_back({"accuracy", epoch, epoch * epoch_s, value});
  }
  view.rows.push_back(row);
}

TEST(Convergence, TimeToATargetIsNotEpochsToIt) {
  StudyView view;
  view.axes = {"batch"};
  Curves curves;
  add(view, curves, "16", 4, 0.5);  // learns most in an epoch, whose epochs are long
  add(view, curves, "64", 1, 0.3);
  add(view, curves, "512", 0.5, 0.02);
  const auto c = convergence(view, "accuracy", curves, true, 0.7);
  ASSERT_TRUE(c.has_value());
  ASSERT_EQ(c->approaches.size(), 3u);
  EXPECT_EQ(c->approaches[0].values[0], "64");
  EXPECT_EQ(c->approaches[0].step, 4);
  EXPECT_EQ(c->approaches[0].seconds, 4);
  EXPECT_EQ(c->approaches[1].step, 2);
  EXPECT_EQ(c->approaches[1].seconds, 8);
  EXPECT_FALSE(c->approaches[2].seconds.has_value());
  EXPECT_EQ(c->approaches[2].reached, 0);
  // All three ran for five seconds.
  EXPECT_DOUBLE_EQ(c->times[2], 5);
  EXPECT_NEAR(c->approaches[0].at[2].value(), 0.832, 1e-3);
  EXPECT_DOUBLE_EQ(c->approaches[1].at[2].value(), 0.5);
  EXPECT_FALSE(c->approaches[1].at[0].has_value());  // its first epoch was not over
}

TEST(Convergence, TheTargetIsWhatHalfOfTheSettingsReach) {
  StudyView view;
  view.axes = {"batch"};
  Curves curves;
  add(view, curves, "1", 1, 0.5);
  add(view, curves, "2", 1, 0.1);
  add(view, curves, "3", 1, 0.05);
  const auto c = convergence(view, "accuracy", curves, true);
  ASSERT_TRUE(c.has_value());
  EXPECT_FALSE(c->asked);
  EXPECT_EQ(c->approaches[1].reached, 1);
  EXPECT_EQ(c->approaches[2].reached, 0);
}

TEST(Convergence, NeedsCurvesOfTwoSettings) {
  StudyView view;
  view.axes = {"batch"};
  Curves curves;
  add(view, curves, "1", 1, 0.5);
  EXPECT_FALSE(convergence(view, "accuracy", curves, true).has_value());
}

}  // namespace
}  // namespace stoker::study
