#include "memory/replay/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "memory/replay/replay.h"
#include "memory/replay/test_program.h"

namespace stoker {
namespace {

using testing_support::ProgramBuilder;
using testing_support::operator""_MiB;

constexpr std::size_t kActivation = static_cast<std::size_t>(BufferRole::kActivation);
constexpr std::size_t kParameter = static_cast<std::size_t>(BufferRole::kParameter);

TEST(Timeline, ShowsASettledIterationByPhaseAndRole) {
  ProgramBuilder b;
  b.setup(b.buffer(40_MiB, BufferRole::kParameter));
  const auto state = b.buffer(20_MiB, BufferRole::kOptimizerState);
  const auto activation = b.buffer(30_MiB);
  b.allocate(activation);
  b.launch(StepPhase::kForward);
  b.free(activation);
  b.launch(StepPhase::kBackward);
  b.allocate(state, When::kFirst);
  b.launch(StepPhase::kOptimizer);
  const Timeline timeline = replay(b.program).timeline;
  ASSERT_EQ(timeline.marks.size(), 3u);
  EXPECT_EQ(timeline.marks[0].name, "forward");
  EXPECT_EQ(timeline.marks[0].first, 0u);
  EXPECT_EQ(timeline.marks[1].name, "backward");
  EXPECT_EQ(timeline.marks[1].first, 2u);
  EXPECT_EQ(timeline.marks[2].name, "optimizer step");
  ASSERT_EQ(timeline.points.size(), 6u);  // one an instruction, what is skipped among them
  EXPECT_EQ(timeline.points[0].allocated, 90_MiB);
  EXPECT_EQ(timeline.points[0].by_role[kActivation], 30_MiB);
  EXPECT_EQ(timeline.points[0].by_role[kParameter], 40_MiB);
  EXPECT_EQ(timeline.points[2].allocated, 60_MiB);
  EXPECT_EQ(timeline.points[2].by_role[kActivation], Bytes{0});
  EXPECT_EQ(timeline.points[2].reserved, 100_MiB);  // the state split the first activation's 30
}

TEST(Timeline, EveryPointAddsUpToWhatIsAllocated) {
  ProgramBuilder b;
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 40; ++i)
    ids.push_back(b.buffer(Bytes((1 + i % 7) * 700'000), static_cast<BufferRole>(i % 10)));
  for (const auto id : ids) b.allocate(id);
  b.launch(StepPhase::kForward);
  for (const auto id : ids) b.free(id);
  for (const TimelinePoint& point : replay(b.program).timeline.points) {
    Bytes sum;
    for (const Bytes bytes : point.by_role) sum += bytes;
    EXPECT_EQ(sum, point.allocated);
    EXPECT_LE(point.allocated, point.reserved);
  }
}

TEST(Timeline, StaysShortAndLosesNoMaximum) {
  ProgramBuilder b;
  const auto spike = b.buffer(300_MiB);
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 20'000; ++i) {
    const auto id = b.buffer(Bytes(4096));
    b.allocate(id);
    ids.push_back(id);
    if (i == 7'777) {
      b.allocate(spike);
      b.free(spike);
    }
  }
  b.launch(StepPhase::kForward);
  for (const auto id : ids) b.free(id);
  const MemoryOutcome outcome = replay(b.program);
  const auto& points = outcome.timeline.points;
  EXPECT_LE(points.size(), TimelineRecorder::kMostPoints + outcome.timeline.marks.size());
  EXPECT_GT(points.size(), TimelineRecorder::kMostPoints / 2);
  const auto highest = std::max_element(
      points.begin(), points.end(),
      [](const TimelinePoint& x, const TimelinePoint& y) { return x.allocated < y.allocated; });
  EXPECT_EQ(highest->allocated, outcome.allocated_peak);
  EXPECT_EQ(highest->by_role[kActivation], outcome.allocated_peak);
}

TEST(Timeline, PassesFollowUnderTheirNames) {
  ProgramBuilder b;
  const auto buffer = b.buffer(30_MiB);
  b.allocate(buffer);
  b.launch(StepPhase::kForward);
  b.free(buffer);
  b.pass("validation, batch 64");
  const auto evaluated = b.buffer(50_MiB);
  b.allocate(evaluated);
  b.launch(StepPhase::kForward);
  b.free(evaluated);
  const Timeline timeline = replay(b.program).timeline;
  ASSERT_EQ(timeline.marks.size(), 2u);
  EXPECT_EQ(timeline.marks[1].name, "validation, batch 64");
  EXPECT_EQ(timeline.points[timeline.marks[1].first].allocated, 50_MiB);
}

TEST(Timeline, ManyMicroBatchesAreOnePhase) {
  ProgramBuilder b;
  for (int i = 0; i < 8; ++i) {
    b.launch(StepPhase::kForward);
    b.launch(StepPhase::kBackward);
  }
  b.launch(StepPhase::kOptimizer);
  b.program.micro_batches = 8;
  const Timeline many = replay(b.program).timeline;
  ASSERT_EQ(many.marks.size(), 2u);
  EXPECT_EQ(many.marks[0].name, "8 micro-batches");
  EXPECT_EQ(many.marks[1].name, "optimizer step");
  b.program.micro_batches = 2;
  EXPECT_EQ(replay(b.program).timeline.marks.size(), 17u);
}

TEST(Timeline, AVerdictHasNone) {
  ProgramBuilder b;
  const auto buffer = b.buffer(30_MiB);
  b.allocate(buffer);
  b.free(buffer);
  ReplayOptions options;
  options.detail = ReplayDetail::kVerdict;
  EXPECT_TRUE(replay(b.program, options).timeline.points.empty());
}

}  // namespace
}  // namespace stoker
