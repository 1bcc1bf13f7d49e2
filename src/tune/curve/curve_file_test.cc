#include "tune/curve/curve_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stoker::tune {
namespace {

namespace fs = std::filesystem;

class CurveFile : public testing::Test {
 protected:
  CurveFile() : folder_(fs::path(testing::TempDir()) / "stoker-curve-file") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CurveFile() override { fs::remove_all(folder_); }

  [[nodiscard]] study::TrialFiles files() const { return study::TrialFiles{folder_}; }
  static void append(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }
  static study::Metric metric(const std::string& pattern) {
    study::Metric m;
    m.name = "accuracy";
    m.pattern = pattern;
    return m;
  }

  fs::path folder_;
};

std::vector<double> scores(const Curve& curve) {
  std::vector<double> all;
  for (const Point& point : curve.points) all.push_back(point.score);
  return all;
}

using Scores = std::vector<double>;

TEST_F(CurveFile, ReportsAreReadAsTheyCome) {
  CurveReader reader(files(), metric(""), {});
  EXPECT_TRUE(reader.read().points.empty());
  append(files().reports(),
         "{\"step\": 10, \"accuracy\": 0.5, \"samples\": 64, \"monotonic\": 100}\n"
         "{\"step\": 20, \"samples\": 64, \"monotonic\": 101}\n{\"step\": 30, \"acc");
  EXPECT_EQ(scores(reader.read()), Scores{0.5});
  append(files().reports(), "uracy\": 0.75, \"samples\": 64, \"monotonic\": 104}\n");
  const Curve& curve = reader.read();
  EXPECT_EQ(scores(curve), (Scores{0.5, 0.75}));
  EXPECT_EQ(curve.points[1].step, 30);
  EXPECT_EQ(curve.points[1].seconds, 4);
  EXPECT_EQ(curve.marks.size(), 3U);
}

TEST_F(CurveFile, StepsThatBeginAnewWithEachEpochAreCountedOn) {
  CurveReader reader(files(), metric(""), {});
  for (const char* step : {"0", "1", "2", "0", "1"})
    append(files().reports(),
           std::string("{\"step\": ") + step + ", \"accuracy\": 0.5, \"monotonic\": 1}\n");
  const Curve& curve = reader.read();
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(curve.points[i].step, static_cast<double>(i));
}

TEST_F(CurveFile, APatternSeesEachLineOfAProgressBar) {
  CurveReader reader(files(), metric("acc: ([0-9.]+)"), {});
  append(files().output(), "epoch 1\r acc: 0.25\r acc: 0.50");
  EXPECT_EQ(scores(reader.read()), Scores{0.25});
  append(files().output(), "\r acc: 0.75\nacc: 1\n");
  const Curve& curve = reader.read();
  EXPECT_EQ(scores(curve), (Scores{0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(curve.last_step(), 4);  // a pattern's evaluations are steps 1, 2, 3 ...
}

TEST_F(CurveFile, OfALineWithoutEndTheBeginningIsRead) {
  CurveReader reader(files(), metric("acc: ([0-9.]+).*"), {});
  append(files().output(), "acc: 0.25 " + std::string(400'000, 'x') + "\nacc: 0.5\n");
  EXPECT_EQ(scores(reader.read()), (Scores{0.25, 0.5}));
}

TEST_F(CurveFile, WhatIsNoNumberThreeTimesRunningHasDiverged) {
  CurveReader reader(files(), metric(""), {"loss", false});
  const auto tell = [&](const std::string& step, const std::string& loss) {
    append(files().reports(),
           "{\"step\": " + step + ", \"loss\": " + loss + ", \"monotonic\": 1}\n");
  };
  tell("1", "\"nan\"");
  tell("2", "\"inf\"");
  tell("3", "0.5");
  EXPECT_FALSE(reader.read().diverged_at);
  for (const char* step : {"4", "5", "6"}) tell(step, "\"nan\"");
  EXPECT_EQ(reader.read().diverged_at, 6);
}

}  // namespace
}  // namespace stoker::tune
