// What a training loop does around the step: zero_grad, loader, scaler, clipping, moving average.

#include <gtest/gtest.h>

#include "lower/common/test_jobs.h"
#include "lower/common/test_live.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

using testing_support::ampere;
using testing_support::linear_step;
using testing_support::Live;
using testing_support::plain_job;

constexpr Bytes kWeight{48};    // [4, 3] in fp32
constexpr Bytes kInput{160};    // [10, 4]
constexpr Bytes kRawInput{40};  // as bytes

Program lowered(const Job& job) {
  auto program = lower(linear_step(), job, ampere());
  EXPECT_TRUE(program) << program.error().text();
  return std::move(*program);
}

int launches(const Program& program, KernelClass kernel_class, When when) {
  int count = 0;
  for (const Instruction& i : program.iteration) {
    count += i.kind == InstructionKind::kLaunch && i.when == when &&
                     program.kernels[i.value].kernel_class == kernel_class
                 ? 1
                 : 0;
  }
  return count;
}

TEST(ZeroGrad, FilledGradientsLiveOnAndAreAddedTo) {
  for (const bool before_forward : {true, false}) {
    Job job = plain_job();
    job.zero_grad_fills = true;
    job.zero_grad_before_forward = before_forward;
    const Program program = lowered(job);
    Live live(program);
    for (int i = 0; i < 4; ++i) {
      live.reset_peak();
      live.iterate();
      EXPECT_EQ(live.live(BufferRole::kGradient), kWeight) << i;
      EXPECT_EQ(live.live(BufferRole::kTemporary), Bytes(0)) << i;
    }
    // Before the forward there is nothing to fill in the first iteration; after the step there is.
    EXPECT_EQ(launches(program, KernelClass::kFill, When::kLater), before_forward ? 1 : 0);
    EXPECT_EQ(launches(program, KernelClass::kFill, When::kAlways), before_forward ? 0 : 1);
  }
}

/// Launches of the iteration that come before the gradients of the one before are let go; -1: they
/// are not.
int launches_before_the_gradients_go(const Program& program) {
  int launched = 0;
  for (const Instruction& i : program.iteration) {
    launched += i.kind == InstructionKind::kLaunch ? 1 : 0;
    if (i.kind == InstructionKind::kFreePrevious &&
        program.buffers[i.value].role == BufferRole::kGradient)
      return launched;
  }
  return -1;
}

TEST(ZeroGrad, BetweenForwardAndBackwardGradientsLiveThroughTheForward) {
  Job job = plain_job();
  const int before_forward = launches_before_the_gradients_go(lowered(job));
  EXPECT_GE(before_forward, 0);
  job.zero_grad_before_forward = false;
  EXPECT_EQ(launches_before_the_gradients_go(lowered(job)), -1) << "after the step";
  job.zero_grad_before_backward = true;
  EXPECT_GT(launches_before_the_gradients_go(lowered(job)), before_forward);
  job.accumulate = 2;
  const Program accumulating = lowered(job);
  Live live(accumulating);
  for (int i = 0; i < 3; ++i) {
    live.iterate();
    EXPECT_EQ(live.live(BufferRole::kGradient), kWeight) << i;
  }
}

TEST(ZeroGrad, TheSecondGradientIsATemporaryBesideTheFirst) {
  Job job = plain_job();
  const Program dropped = lowered(job);
  job.zero_grad_fills = true;
  const Program filled = lowered(job);
  const auto most_temporaries = [](const Program& program, int iterations) {
    Bytes alive, most;
    for (int i = 0; i < iterations; ++i) {
      for (const Instruction& in : program.iteration) {
        if ((in.when == When::kFirst && i > 0) || (in.when == When::kLater && i == 0)) continue;
        const bool memory =
            in.kind == InstructionKind::kAllocate || in.kind == InstructionKind::kFree;
        if (!memory || program.buffers[in.value].role != BufferRole::kTemporary) continue;
        const Bytes bytes = program.buffers[in.value].bytes;
        if (bytes != kWeight) continue;
        alive += in.kind == InstructionKind::kAllocate ? bytes : Bytes(0) - bytes;
        most = std::max(most, alive);
      }
    }
    return most;
  };
  EXPECT_EQ(most_temporaries(dropped, 3), Bytes(0));
  EXPECT_EQ(most_temporaries(filled, 1), Bytes(0));
  EXPECT_EQ(most_temporaries(filled, 2), kWeight);
  // The addition reads both.
  EXPECT_EQ(launches(filled, KernelClass::kElementwise, When::kLater), 1);
}

TEST(ZeroGrad, AccumulationAddsInEveryMicroBatch) {
  Job job = plain_job();
  job.zero_grad_fills = true;
  job.accumulate = 3;
  const Program program = lowered(job);
  EXPECT_EQ(launches(program, KernelClass::kElementwise, When::kLater), 1);
  EXPECT_EQ(launches(program, KernelClass::kElementwise, When::kAlways), 2);
  Live live(program);
  for (int i = 0; i < 3; ++i) live.iterate();
  EXPECT_EQ(live.live(BufferRole::kGradient), kWeight);
  EXPECT_EQ(live.live(BufferRole::kTemporary), Bytes(0));
}

TEST(PrefetchingLoader, HoldsThreeBatchesAndTheBytesOnItsOwnStream) {
  Job job = plain_job();
  job.prefetching_loader = true;
  const Program program = lowered(job);
  EXPECT_EQ(program.input_bytes, kRawInput);
  Live live(program);
  for (int i = 0; i < 3; ++i) {
    live.iterate();
    EXPECT_EQ(live.live(BufferRole::kInput), 2 * kInput);  // this step's and the next one's
    EXPECT_EQ(live.live_on(Stream::kCopy), 2 * kInput);
  }
  // While the next batch is made: the loop's, the generator's, the new one, and its bytes.
  Bytes alive = 2 * kInput, most;
  for (const Instruction& i : program.iteration) {
    if (i.kind == InstructionKind::kLaunch || program.buffers[i.value].role != BufferRole::kInput)
      continue;
    const Bytes bytes = program.buffers[i.value].bytes;
    alive += i.kind == InstructionKind::kAllocate ? bytes : Bytes(0) - bytes;
    most = std::max(most, alive);
  }
  EXPECT_EQ(most, 3 * kInput + kRawInput);
  for (const Kernel& k : program.kernels) {
    if (k.phase != StepPhase::kLoad) continue;
    EXPECT_EQ(k.stream, Stream::kCopy);
    if (k.kernel_class != KernelClass::kHostToDevice) continue;
    EXPECT_EQ(k.read, kRawInput);
  }
}

TEST(Update, ScalerClippingAndAverageLeaveNothingBehindAndKeepTheirCopies) {
  Job job = plain_job();
  const Program plain = lowered(job);
  Live before(plain);
  for (int i = 0; i < 3; ++i) before.iterate();
  job.clip = job.ema = job.grad_scaler = true;
  for (const int accumulate : {1, 3}) {
    job.accumulate = accumulate;
    const Program program = lowered(job);
    Live live(program);
    live.iterate();
    const Bytes after_one = live.total();
    for (int i = 0; i < 3; ++i) live.iterate();
    EXPECT_EQ(live.total(), after_one);
    // The average is a copy of the weight; scale and counter are a number each, however many
    // micro-batches there are.
    EXPECT_EQ(live.total() - before.total(), kWeight + 2 * Bytes(4)) << accumulate;
    int synchronised = 0;
    for (const Instruction& i : program.iteration)
      synchronised += i.kind == InstructionKind::kSynchronize ? 1 : 0;
    EXPECT_GE(synchronised, 1);  // the host asks whether a gradient was infinite
  }
}

TEST(Update, EachAverageCopiesTheModelOfItsName) {
  const auto kept = [](std::vector<std::string> averages) {
    Job job = plain_job();
    job.ema = true;
    Step step = linear_step();
    step.training.averages = std::move(averages);
    step.parameters.front().name = "g.weight";
    const auto program = lower(step, job, ampere());
    EXPECT_TRUE(program) << program.error().text();
    Live live(*program);
    live.iterate();
    return live.live(BufferRole::kModelBuffer);
  };
  const Bytes none = kept({"d"});
  EXPECT_EQ(kept({}) - none, kWeight);
  EXPECT_EQ(kept({"g"}) - none, kWeight);
  EXPECT_EQ(kept({"", "g", "d"}) - none, 2 * kWeight);
}

TEST(Update, ComesAfterTheCopyBackFromBuckets) {
  Job job = plain_job();
  job.gpus = 2;
  job.clip = true;
  const Program program = lowered(job);
  std::size_t copied_back = 0, updated = 0;
  for (std::size_t i = 0; i < program.iteration.size(); ++i) {
    if (program.iteration[i].kind != InstructionKind::kLaunch) continue;
    const Kernel& kernel = program.kernels[program.iteration[i].value];
    if (kernel.kernel_class == KernelClass::kCopy) copied_back = i;
    if (kernel.phase == StepPhase::kOptimizer && updated == 0) updated = i;
  }
  EXPECT_GT(updated, copied_back);
}

TEST(Refusals, OfJobsThatMakeNoSense) {
  const auto message = [](const Job& job, const Step& step = linear_step()) {
    const auto program = lower(step, job, ampere());
    return program ? std::string() : program.error().message;
  };
  Job job = plain_job();
  job.last_batch = job.batch;
  EXPECT_NE(message(job).find("must be smaller"), std::string::npos) << message(job);
  job = plain_job();
  job.validation_batch = 0;
  EXPECT_NE(message(job).find("validation_batch must be at least 1"), std::string::npos);
  job = plain_job();
  job.parallel = Parallel::kDataParallel;
  job.gpus = job.nodes = 2;
  EXPECT_NE(message(job).find("one process on one machine"), std::string::npos);
  Step inference = linear_step();
  inference.mode = "inference";
  for (const auto& [set, word] : std::vector<std::pair<void (*)(Job&), const char*>>{
           {[](Job& j) { j.checkpoint = {"blocks"}; }, "checkpointing"},
           {[](Job& j) { j.clip = true; }, "clipping"},
           {[](Job& j) { j.ema = true; }, "moving average"},
           {[](Job& j) { j.grad_scaler = true; }, "scaler"},
           {[](Job& j) { j.zero_grad_fills = true; }, "zero_grad"},
           {[](Job& j) { j.validation_batch = 4; }, "validation"},
           {[](Job& j) { j.last_batch = 4; }, "last batch"}}) {
    job = plain_job();
    set(job);
    EXPECT_NE(message(job, inference).find(word), std::string::npos) << word;
  }
  EXPECT_EQ(message(plain_job(), inference), "");
}

TEST(Parallelism, HasNames) {
  for (const Parallel p :
       {Parallel::kDdp, Parallel::kDataParallel, Parallel::kFsdpZero2, Parallel::kFsdpZero3}) {
    EXPECT_EQ(parse_parallel(name_of(p)).value(), p);
  }
  EXPECT_EQ(parse_parallel("fsdp").value(), Parallel::kFsdpZero3);
  EXPECT_EQ(parse_parallel("ZeRO2").value(), Parallel::kFsdpZero2);
  EXPECT_NE(parse_parallel("fsdb").error().message.find("fsdp"), std::string::npos);
}

}  // namespace
}  // namespace stoker
