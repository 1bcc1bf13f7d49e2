#include "memory/replay.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

/// Builds small programs by hand: buffers by size, instructions by name.
class ProgramBuilder {
 public:
  std::uint32_t buffer(Bytes bytes, BufferRole role = BufferRole::kActivation,
                       bool optional = false, std::uint32_t module = 0) {
    program.buffers.push_back({bytes, role, Stream::kCompute, optional, ModuleId{module}});
    return static_cast<std::uint32_t>(program.buffers.size() - 1);
  }
  void setup(std::uint32_t id) {
    program.setup.push_back({InstructionKind::kAllocate, When::kAlways, id});
  }
  void allocate(std::uint32_t id, When when = When::kAlways) {
    program.iteration.push_back({InstructionKind::kAllocate, when, id});
  }
  void free(std::uint32_t id, When when = When::kAlways) {
    program.iteration.push_back({InstructionKind::kFree, when, id});
  }
  void free_previous(std::uint32_t id) {
    program.iteration.push_back({InstructionKind::kFreePrevious, When::kAlways, id});
  }
  void launch(StepPhase phase) {
    Kernel kernel;
    kernel.phase = phase;
    program.kernels.push_back(kernel);
    program.iteration.push_back({InstructionKind::kLaunch, When::kAlways,
                                 static_cast<std::uint32_t>(program.kernels.size() - 1)});
  }
  Program program;
};

constexpr Bytes operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n) * kMiB; }

TEST(Replay, AnEmptyProgramFitsIntoNothing) {
  ReplayOptions options;
  options.capacity = Bytes{0};
  const MemoryOutcome outcome = replay(Program{}, options);
  EXPECT_TRUE(outcome.fits());
  EXPECT_EQ(outcome.reserved_peak, Bytes{0});
  EXPECT_TRUE(outcome.steady);
  EXPECT_EQ(smallest_capacity(Program{}), Bytes{0});
}

TEST(Replay, StateBornInTheFirstIterationMovesThePeakIntoTheSecond) {
  ProgramBuilder b;
  const auto weight = b.buffer(40_MiB, BufferRole::kParameter, false, 1);
  const auto activation = b.buffer(30_MiB, BufferRole::kActivation, false, 2);
  const auto state = b.buffer(80_MiB, BufferRole::kOptimizerState, false, 1);
  b.setup(weight);
  b.allocate(activation);
  b.launch(StepPhase::kForward);
  b.free(activation);
  b.allocate(state, When::kFirst);
  b.launch(StepPhase::kOptimizer);

  const MemoryOutcome outcome = replay(b.program);
  ASSERT_TRUE(outcome.fits());
  EXPECT_EQ(outcome.allocated_peak, 150_MiB);
  EXPECT_EQ(outcome.peak.iteration, 1);
  EXPECT_EQ(outcome.peak.instruction, 0u);
  EXPECT_EQ(outcome.peak.phase, StepPhase::kForward);
  ASSERT_EQ(outcome.iterations.size(), 3u);
  EXPECT_EQ(outcome.iterations[0].allocated_peak, 120_MiB);
  EXPECT_EQ(outcome.iterations[1].allocated_peak, 150_MiB);
  EXPECT_EQ(outcome.iterations[2].allocated_end, 120_MiB);
  EXPECT_TRUE(outcome.steady);
  EXPECT_EQ(outcome.malformed, 0);
  EXPECT_EQ(outcome.live.by_role[static_cast<std::size_t>(BufferRole::kParameter)], 40_MiB);
  EXPECT_EQ(outcome.live.by_role[static_cast<std::size_t>(BufferRole::kOptimizerState)], 80_MiB);
  EXPECT_EQ(outcome.live.by_role[static_cast<std::size_t>(BufferRole::kActivation)], 30_MiB);
  ASSERT_EQ(outcome.live.by_module.size(), 2u);
  EXPECT_EQ(outcome.live.by_module[0].module, ModuleId{1});
  EXPECT_EQ(outcome.live.by_module[0].bytes, 120_MiB);
}

TEST(Replay, OneIterationOrTwoThatDifferAreNotSteady) {
  ProgramBuilder b;
  const auto state = b.buffer(8_MiB);
  b.allocate(state, When::kFirst);
  ReplayOptions options;
  options.iterations = 1;
  EXPECT_FALSE(replay(b.program, options).steady);
  const auto leak = b.buffer(8_MiB);
  b.allocate(leak);
  EXPECT_FALSE(replay(b.program).steady);
  EXPECT_GT(replay(b.program).malformed, 0);
}

TEST(Replay, TheLossOfTheLastStepDiesWhenTheNewOneTakesItsName) {
  ProgramBuilder b;
  const auto loss = b.buffer(30_MiB, BufferRole::kOutput);
  b.allocate(loss);
  b.free_previous(loss);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.malformed, 0);
  EXPECT_EQ(outcome.iterations[0].allocated_peak, 30_MiB);
  EXPECT_EQ(outcome.iterations[1].allocated_peak, 60_MiB);
  EXPECT_EQ(outcome.iterations[1].allocated_end, 30_MiB);
  EXPECT_TRUE(outcome.steady);
}

TEST(Replay, GradientsSetToNoneAreThoseOfTheIterationBefore) {
  ProgramBuilder b;
  const auto gradient = b.buffer(30_MiB, BufferRole::kGradient);
  b.free_previous(gradient);
  b.allocate(gradient);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.malformed, 0);
  EXPECT_EQ(outcome.allocated_peak, 30_MiB);
  EXPECT_EQ(outcome.reserved_peak, 30_MiB);
}

TEST(Replay, AnEmptiedCacheIsNotThereForTheNextBuffer) {
  ProgramBuilder b;
  const auto small = b.buffer(12_MiB), large = b.buffer(32_MiB);
  b.allocate(small);
  b.free(small);
  b.program.iteration.push_back({InstructionKind::kEmptyCache, When::kFirst, 0});
  b.allocate(large);
  b.free(large);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.iterations[0].reserved_peak, 32_MiB);  // the 12 MiB were given back before
  EXPECT_EQ(outcome.device_mallocs,
            2);  // later ones fit into the 32 MiB: the cache is not emptied again
}

TEST(Replay, LaterInstructionsWaitForTheSecondIteration) {
  ProgramBuilder b;
  const auto first = b.buffer(2_MiB), later = b.buffer(4_MiB);
  b.allocate(first, When::kFirst);
  b.free(first, When::kFirst);
  b.allocate(later, When::kLater);
  b.free(later, When::kLater);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.iterations[0].requested_peak, 2_MiB);
  EXPECT_EQ(outcome.iterations[2].requested_peak, 4_MiB);
  EXPECT_EQ(outcome.malformed, 0);
}

TEST(Replay, AWorkspaceThatDoesNotFitIsDoneWithoutAndNeverTriedAgain) {
  ProgramBuilder b;
  const auto weight = b.buffer(40_MiB, BufferRole::kParameter);
  const auto workspace = b.buffer(100_MiB, BufferRole::kWorkspace, true);
  b.setup(weight);
  b.allocate(workspace);
  b.launch(StepPhase::kForward);
  b.free(workspace);
  ReplayOptions options;
  options.capacity = 100_MiB;
  const MemoryOutcome outcome = replay(b.program, options);
  EXPECT_TRUE(outcome.fits());
  ASSERT_EQ(outcome.skipped.size(), 1u);
  EXPECT_EQ(outcome.skipped[0], BufferId{workspace});
  EXPECT_EQ(outcome.retries, 1);
  EXPECT_EQ(outcome.allocated_peak, 40_MiB);
  EXPECT_EQ(outcome.malformed, 0);
  EXPECT_EQ(replay(b.program).allocated_peak, 140_MiB);
}

TEST(Replay, AFailureNamesTheBufferThePlaceAndPyTorchsNumbers) {
  ProgramBuilder b;
  const auto weight = b.buffer(40_MiB, BufferRole::kParameter);
  const auto gradient = b.buffer(5_MiB, BufferRole::kGradient, false, 7);
  b.setup(weight);
  b.launch(StepPhase::kForward);
  b.allocate(gradient);
  b.launch(StepPhase::kBackward);
  ReplayOptions options;
  options.capacity = 48_MiB;
  options.total = 64_MiB;
  const MemoryOutcome outcome = replay(b.program, options);
  ASSERT_FALSE(outcome.fits());
  const ReplayFailure& failure = *outcome.failure;
  EXPECT_EQ(failure.buffer, BufferId{gradient});
  EXPECT_EQ(failure.role, BufferRole::kGradient);
  EXPECT_EQ(failure.module, ModuleId{7});
  EXPECT_EQ(failure.moment.iteration, 0);
  EXPECT_EQ(failure.moment.instruction, 1u);
  EXPECT_EQ(failure.moment.phase, StepPhase::kBackward);
  EXPECT_EQ(failure.numbers.tried, 20_MiB);
  EXPECT_EQ(failure.numbers.free, 8_MiB);
  EXPECT_EQ(failure.numbers.total, 64_MiB);
  EXPECT_EQ(failure.numbers.allocated, 40_MiB);
  EXPECT_TRUE(outcome.iterations.empty());
  EXPECT_FALSE(outcome.steady);
}

TEST(Replay, FragmentationIsWhatThePeaksDifferBy) {
  ProgramBuilder b;
  const auto small = b.buffer(30_MiB), large = b.buffer(31_MiB);
  b.allocate(small);
  b.free(small);
  b.allocate(large);  // the 30 MiB segment is too small and stays
  b.free(large);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.reserved_peak, 62_MiB);   // 30 + 32
  EXPECT_EQ(outcome.allocated_peak, 32_MiB);  // the whole block: 1 MiB of slack is not split off
  EXPECT_EQ(outcome.requested_peak, 31_MiB);
  EXPECT_EQ(outcome.fragmentation, 30_MiB);
  EXPECT_EQ(outcome.idle_at_reserved_peak, 30_MiB);
  EXPECT_EQ(outcome.live.slack, 1_MiB);
}

TEST(Replay, SegmentsAddedAfterThePeakCountAsIdleThen) {
  ProgramBuilder b;
  const auto first = b.buffer(30_MiB), second = b.buffer(30_MiB), large = b.buffer(40_MiB);
  b.allocate(first);
  b.allocate(second);  // the allocated peak: 60
  b.free(first);
  b.free(second);
  b.allocate(large);  // the reserved peak: 60 idle, 40 in use
  b.free(large);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.fragmentation, 40_MiB);
  EXPECT_EQ(outcome.idle_at_reserved_peak, 60_MiB);
}

TEST(Replay, TheSmallestCapacityIsLessThanThePeakWhenFlushingHelps) {
  ProgramBuilder b;
  const auto small = b.buffer(30_MiB), large = b.buffer(31_MiB);
  b.allocate(small);
  b.free(small);
  b.allocate(large);
  b.free(large);
  EXPECT_EQ(smallest_capacity(b.program), 32_MiB);
  ReplayOptions options;
  options.capacity = 32_MiB;
  const MemoryOutcome tight = replay(b.program, options);
  EXPECT_TRUE(tight.fits());
  EXPECT_EQ(tight.retries, 1);  // from then on the 32 MiB segment serves both
  EXPECT_TRUE(tight.steady);
  options.capacity = 30_MiB;
  EXPECT_FALSE(replay(b.program, options).fits());
}

TEST(Replay, NothingIsTakenForZeroBytesAndBadIdsAreCounted) {
  ProgramBuilder b;
  const auto nothing = b.buffer(Bytes{0});
  b.allocate(nothing);
  b.free(nothing);
  b.allocate(99);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.reserved_peak, Bytes{0});
  EXPECT_EQ(outcome.malformed, 3);  // once an iteration
}

TEST(Replay, OutsideMemoryIsSummed) {
  Program program;
  program.outside = {{"context", 300_MiB, ""}, {"NCCL", 40_MiB, ""}};
  EXPECT_EQ(outside_bytes(program), 340_MiB);
}

}  // namespace
}  // namespace stoker
