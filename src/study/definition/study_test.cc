#include "study/definition/study.h"

#include <gtest/gtest.h>

namespace stoker::study {
namespace {

Study study_of(std::vector<std::string> command) {
  Study study;
  study.command = std::move(command);
  for (const char* name : {"lr", "batch"}) {
    Axis axis;
    axis.names = {name};
    axis.rows = {{"1"}, {"2"}};
    study.axes.push_back(axis);
  }
  return study;
}

TEST(UnusedAxes, AreThoseWithoutAPlace) {
  EXPECT_EQ(unused_axes(study_of({"python", "train.py"})),
            (std::vector<std::string>{"lr", "batch"}));
  EXPECT_EQ(unused_axes(study_of({"python", "--batch={2*batch}"})),
            (std::vector<std::string>{"lr"}));
  EXPECT_TRUE(unused_axes(study_of({"{lr}", "{batch}"})).empty());
}

TEST(UnusedAxes, OneValueDoesNotVary) {
  Study study = study_of({"python", "{batch}"});
  study.axes[0].rows = {{"1"}};
  EXPECT_TRUE(unused_axes(study).empty());
}

TEST(UnusedAxes, EnvironmentAndResourcesArePlaces) {
  Study study = study_of({"python"});
  study.environment["RATE"] = "{lr}";
  study.resources.cores = "{batch}";
  EXPECT_TRUE(unused_axes(study).empty());
}

}  // namespace
}  // namespace stoker::study
