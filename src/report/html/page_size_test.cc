#include <gtest/gtest.h>

#include "report/model/recording_page.h"
#include "report/study/study_page.h"
#include "report/tune/tune_page.h"

namespace stoker {
namespace {

constexpr std::size_t kMostBytes = 500'000;

/// Trials by the thousand with three metrics that report on their way, each with a reason.
StudyPicture large_study() {
  StudyPicture p;
  p.store = "large.db";
  p.view.axes = {"lr", "batch", "workers"};
  p.view.metrics = {"loss", "accuracy", "samples_per_s"};
  constexpr std::int64_t kTrials = 2'500, kPoints = 500;
  for (std::int64_t id = 1; id <= kTrials; ++id) {
    study::TrialRow row;
    row.id = id;
    row.trial.values = {std::to_string(0.001 * static_cast<double>(id)), std::to_string(id % 64),
                        std::to_string(id % 5)};
    row.state = study::TrialState::kDone;
    row.cause = "stopped";
    row.reason = std::string(300, 'x');
    row.wall_s = 1.0 / 3 + static_cast<double>(id);
    for (const std::string& metric : p.view.metrics)
      row.metrics[metric] = 1.0 / static_cast<double>(id + 2);
    row.resources["peak_bytes"] = 1e9 + static_cast<double>(id);
    row.forecast = {{"wall_s", 1.0}, {"wall_s_low", 0.5}, {"wall_s_high", 2.0}};
    p.view.rows.push_back(std::move(row));
    for (const char* metric : {"loss", "accuracy"}) {
      auto& points = p.curves[metric][id];
      for (std::int64_t i = 1; id <= 400 && i <= kPoints; ++i)
        points.push_back({metric, static_cast<double>(i), static_cast<double>(i) / 7,
                          1.0 / static_cast<double>(i + id)});
    }
  }
  p.view.counts[study::TrialState::kDone] = kTrials;
  p.findings = study::findings(p.view);
  return p;
}

TEST(PageSize, AStudyOfManyTrialsStaysBelowItsLimitAndSaysWhatIsLeftOut) {
  const std::string page = study_page(large_study(), "0");
  EXPECT_LT(page.size(), kMostBytes);
  EXPECT_NE(page.find("of 2,500 trials; `stoker study --csv` has all."), std::string::npos);
}

TEST(PageSize, SoDoesASearch) {
  StudyPicture p = large_study();
  TuneReport report;
  report.store = "/a/large.db";
  report.objective.metric = "loss";
  for (int i = 0; i < 300; ++i)
    report.decisions.push_back({"lr 0.1: accuracy 0.5", std::string(200, 'y'), 1.5});
  EXPECT_LT(tune_page(report, p.view, p.curves["loss"], "0").size(), kMostBytes);
}

TEST(PageSize, SoDoesASnapshotOfManySegments) {
  SnapshotExplanation e;
  Snapshot snapshot;
  snapshot.streams = {0};
  snapshot.pools = {kDefaultPool};
  SnapshotPicture picture;
  const std::string line = "a_package_with_a_name/a_module_with_a_name.py:1234 a_function_of_it";
  for (int i = 0; i < 5000; ++i) {
    e.live.holders.push_back({line + std::to_string(i), kNoStack, Bytes(1 << 20), Bytes(1), 3, {}});
    SegmentFill segment{
        0x7f0000000000 + (1LL << 30) * i, 1 << 30, 1 << 20, 1 << 19, 9, 0, 0, false, {}};
    for (int b = 0; b < 50; ++b)
      segment.parts.push_back({SegmentPart::Kind::kInUse, b * 1000001LL, 1000001, line});
    picture.segments.push_back(std::move(segment));
  }
  for (int h = 0; h < 10; ++h) picture.course.holders.push_back({line + std::to_string(h), {}});
  for (int i = 0; i < 500; ++i) {
    picture.course.event.push_back(i * 100);
    picture.course.reserved.emplace_back((1LL << 34) + i);
    for (auto& holder : picture.course.holders) holder.bytes.emplace_back((1LL << 30) + 512LL * i);
  }
  const std::string page = snapshot_page(e, snapshot, picture, "s.pickle", "0");
  EXPECT_LT(page.size(), kMostBytes);
  EXPECT_NE(page.find("The first of 5,000 are drawn."), std::string::npos);
}

}  // namespace
}  // namespace stoker
