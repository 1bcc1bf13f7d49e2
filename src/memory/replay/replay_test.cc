#include "memory/replay/replay.h"

#include <gtest/gtest.h>

#include "memory/replay/test_program.h"

namespace stoker {
namespace {

using testing_support::ProgramBuilder;
using testing_support::operator""_MiB;

TEST(SmallestCapacity, DoesNotDependOnWhatIsAllowed) {
  ProgramBuilder b;
  const auto activation = b.buffer(100_MiB);
  b.allocate(activation);
  b.free(activation);
  ReplayOptions options;
  options.total = 1000_MiB;
  options.allocator.memory_fraction = 0.05;
  EXPECT_EQ(smallest_capacity(b.program, options), 100_MiB);
}

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

TEST(Replay, SegmentsThatNeverServeTwiceAreEnough) {
  ProgramBuilder b;
  b.setup(b.buffer(Bytes{100}, BufferRole::kParameter));                   // a segment of 2 MiB
  b.allocate(b.buffer(5_MiB, BufferRole::kOptimizerState), When::kFirst);  // of 20 MiB
  const auto activation = b.buffer(11_MiB);  // of 12 MiB, in each of 3 + 1 rounds
  b.allocate(activation);
  b.free(activation);
  ReplayOptions options;
  options.capacity = 70_MiB;
  EXPECT_TRUE(surely_fits(b.program, options));
  EXPECT_TRUE(replay(b.program, options).fits());
  options.capacity = 69_MiB;  // it runs all the same, by using segments again
  EXPECT_FALSE(surely_fits(b.program, options));
  EXPECT_TRUE(replay(b.program, options).fits());
  options.capacity = 70_MiB;
  options.allocator.memory_fraction = 1;
  EXPECT_FALSE(surely_fits(b.program, options));
  options.allocator = {};
  options.allocator.expandable_segments = true;
  EXPECT_FALSE(surely_fits(b.program, options));
  options.allocator = {};
  options.capacity.reset();
  EXPECT_FALSE(surely_fits(b.program, options));
  options.capacity = Bytes(std::int64_t{1} << 50);
  EXPECT_TRUE(surely_fits(b.program, options));
  b.program.repeated = {1, 3, std::int64_t{1} << 40};  // more bytes than a number holds
  EXPECT_FALSE(surely_fits(b.program, options));
}

/// Micro-batches whose output lives until the next one's is there: two blocks change places.
TEST(Replay, RepetitionsAreLeftOutOnceBlocksLieWhereTheyLayBefore) {
  ProgramBuilder b;
  const auto one = b.buffer(12_MiB), other = b.buffer(12_MiB), activation = b.buffer(30_MiB);
  b.setup(other);
  for (const auto& [born, dies] : {std::pair(one, other), std::pair(other, one)}) {
    b.allocate(activation);
    b.allocate(born);
    for (const std::uint32_t id : {dies, activation}) b.free(id);
  }
  b.program.repeated = {0, b.program.iteration.size(), 7};
  const MemoryOutcome seven = replay(b.program);
  b.program.repeated.times = std::int64_t{1} << 40;  // no run of all of them would end
  const MemoryOutcome most = replay(b.program);
  EXPECT_EQ(most.presumed, 0);
  EXPECT_EQ(most.reserved_peak, seven.reserved_peak);
  EXPECT_EQ(most.allocated_peak, seven.allocated_peak);
  EXPECT_EQ(most.malformed, 0);
}

TEST(Moment, ThePhaseIsThatOfTheKernelThatFollowsElseOfTheLast) {
  ProgramBuilder b;
  const auto buffer = b.buffer(1_MiB);
  b.allocate(buffer);
  b.launch(StepPhase::kForward);
  b.free(buffer);
  b.launch(StepPhase::kBackward);
  b.allocate(buffer);
  const auto phases = phases_of(b.program, b.program.iteration);
  ASSERT_EQ(phases.size(), 5u);
  EXPECT_EQ(phases[2], StepPhase::kBackward);
  EXPECT_EQ(phases[4], StepPhase::kBackward);
  for (std::uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(with_phase(b.program, {0, Moment::kTraining, i, {}}).phase, phases[i]) << i;
  EXPECT_FALSE(with_phase(b.program, {0, Moment::kTraining, 5, {}}).phase);
  b.program.kernels.clear();
  EXPECT_FALSE(with_phase(b.program, {0, Moment::kTraining, 0, {}}).phase);
}

/// 40 MiB of weight; 30 of activation in the forward; a validation that holds 70 at once.
ProgramBuilder validated() {
  ProgramBuilder b;
  const auto weight = b.buffer(40_MiB, BufferRole::kParameter);
  const auto activation = b.buffer(30_MiB);
  b.setup(weight);
  b.allocate(activation);
  b.launch(StepPhase::kForward);
  b.free(activation);
  b.pass("validation, batch 64");
  const auto evaluated = b.buffer(70_MiB);
  b.allocate(evaluated);
  b.launch(StepPhase::kForward);
  b.free(evaluated);
  return b;
}

TEST(Replay, APassAfterTheIterationsMayHoldThePeak) {
  const ProgramBuilder b = validated();
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.allocated_peak, 110_MiB);
  EXPECT_EQ(outcome.reserved_peak, 140_MiB);  // the iteration's 30 stay cached beside the 70
  EXPECT_EQ(outcome.peak.pass, 0);
  EXPECT_EQ(outcome.peak.iteration, 0);
  EXPECT_EQ(outcome.peak.phase, StepPhase::kForward);
  EXPECT_EQ(peak_words(b.program, outcome), "validation, batch 64");
  ASSERT_EQ(outcome.passes.size(), 1u);
  EXPECT_EQ(outcome.passes[0].allocated_peak, 110_MiB);
  EXPECT_EQ(outcome.iterations[2].allocated_peak, 70_MiB);
  ASSERT_TRUE(outcome.resumed);
  EXPECT_EQ(outcome.resumed->reserved_peak, 140_MiB);
  EXPECT_EQ(outcome.live.by_role[static_cast<std::size_t>(BufferRole::kActivation)], 70_MiB);
  EXPECT_EQ(smallest_capacity(b.program), 110_MiB);  // by flushing the 30
  EXPECT_EQ(outcome.malformed, 0);
}

TEST(Replay, AFailureInAPassSaysWhichPass) {
  const ProgramBuilder b = validated();
  ReplayOptions options;
  options.capacity = 100_MiB;
  const MemoryOutcome outcome = replay(b.program, options);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->moment.pass, 0);
  EXPECT_EQ(words_of(b.program, outcome.failure->moment), "validation, batch 64");
  EXPECT_EQ(outcome.iterations.size(), 3u);
  EXPECT_FALSE(outcome.resumed);
}

TEST(Replay, TheFirstRepetitionOfAPassIsItsFirst) {
  ProgramBuilder b;
  const auto step = b.buffer(2_MiB);
  b.allocate(step);
  b.free(step);
  b.pass("validation", 3);
  const auto first = b.buffer(32_MiB), later = b.buffer(64_MiB);
  b.allocate(first, When::kFirst);
  b.free(first, When::kFirst);
  b.allocate(later, When::kLater);
  b.free(later, When::kLater);
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.requested_peak, 64_MiB);
  EXPECT_EQ(outcome.peak.iteration, 1);
  EXPECT_EQ(outcome.device_mallocs, 3);  // 20 (for 2), 32 and 64 MiB: each once
  EXPECT_EQ(outcome.malformed, 0);
}

TEST(Replay, APassFreesWhatTheLastIterationLeft) {
  ProgramBuilder b;
  const auto loss = b.buffer(30_MiB, BufferRole::kOutput);
  b.allocate(loss);
  b.free_previous(loss);
  b.pass("validation");
  const auto other = b.buffer(60_MiB, BufferRole::kOutput);
  b.free_previous(loss);
  b.allocate(other);
  b.free_previous(other);
  const MemoryOutcome outcome = replay(b.program);
  // The first repetition takes the iteration's loss with it; the second finds none, which is odd.
  EXPECT_EQ(outcome.malformed, 1);
  EXPECT_EQ(outcome.passes[0].allocated_peak, 120_MiB);
  EXPECT_EQ(outcome.passes[0].allocated_end, 60_MiB);
  EXPECT_EQ(outcome.resumed->allocated_end, 90_MiB);
}

TEST(Replay, WhatAPassLeavesAliveDiesAtItsEnd) {
  ProgramBuilder b;
  const auto step = b.buffer(30_MiB);
  b.allocate(step);
  b.free(step);
  b.pass("validation");
  const auto batch = b.buffer(50_MiB, BufferRole::kInput);
  b.allocate(batch);
  b.free_previous(batch);
  b.program.passes[0].end.push_back({InstructionKind::kFreePrevious, When::kAlways, batch});
  const MemoryOutcome outcome = replay(b.program);
  EXPECT_EQ(outcome.passes[0].allocated_peak, 100_MiB);
  EXPECT_EQ(outcome.passes[0].allocated_end, Bytes{0});
  EXPECT_EQ(outcome.resumed->allocated_peak, 30_MiB);
  EXPECT_EQ(outcome.malformed, 0);
}

TEST(Replay, WordsForWhereThePeakLies) {
  EXPECT_EQ(peak_words(Program{}, replay(Program{})), "nowhere: nothing is allocated");
  {
    ProgramBuilder b;  // only parameters: the peak is there before anything runs
    b.setup(b.buffer(40_MiB, BufferRole::kParameter));
    EXPECT_EQ(peak_words(b.program, replay(b.program)), "before the first iteration");
  }
  {
    ProgramBuilder b;  // state is born in the first iteration: the forward of the second peaks
    const auto activation = b.buffer(30_MiB), state = b.buffer(80_MiB);
    b.allocate(activation);
    b.launch(StepPhase::kForward);
    b.free(activation);
    b.allocate(state, When::kFirst);
    b.launch(StepPhase::kOptimizer);
    EXPECT_EQ(peak_words(b.program, replay(b.program)), "forward, iteration 2");
  }
  {
    ProgramBuilder b;  // each iteration alike
    const auto temporary = b.buffer(30_MiB);
    b.allocate(temporary);
    b.launch(StepPhase::kOptimizer);
    b.free(temporary);
    EXPECT_EQ(peak_words(b.program, replay(b.program)), "optimizer step");
  }
  {
    ProgramBuilder b;  // a workspace is tried out once
    const auto trial = b.buffer(90_MiB), usual = b.buffer(30_MiB);
    b.allocate(trial, When::kFirst);
    b.free(trial, When::kFirst);
    b.allocate(usual);
    b.launch(StepPhase::kBackward);
    b.free(usual);
    EXPECT_EQ(peak_words(b.program, replay(b.program)), "first iteration, backward");
  }
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
