#include "program/job.h"

#include <gtest/gtest.h>

#include <set>

#include "program/program.h"

namespace stoker {
namespace {

Step captured(std::string name, std::vector<std::map<std::string, double>> groups) {
  Step step;
  step.optimizer.name = std::move(name);
  for (auto& numbers : groups) step.optimizer.groups.push_back({std::move(numbers)});
  return step;
}

/// What check_job() says of a job; empty: nothing.
std::string refusal(const Job& job) {
  const Status status = check_job(job);
  return status ? std::string() : status.error().message;
}

/// What check_job() says of a plain job with a few settings.
template <class Change>
std::string refusal_of(Change change) {
  Job job;
  change(job);
  return refusal(job);
}

TEST(JobNames, AreReadBack) {
  for (const auto precision : {Precision::kFp32, Precision::kTf32, Precision::kAmpFp16,
                               Precision::kAmpBf16, Precision::kBf16, Precision::kFp16})
    EXPECT_EQ(parse_precision(name_of(precision)).value(), precision);
  for (int kind = 0; kind <= static_cast<int>(OptimizerKind::kNone); ++kind) {
    const auto optimizer = static_cast<OptimizerKind>(kind);
    EXPECT_EQ(parse_optimizer(name_of(optimizer)).value(), optimizer);
  }
  for (const auto loop : {OptimizerLoop::kForeach, OptimizerLoop::kFused, OptimizerLoop::kForLoop})
    EXPECT_EQ(parse_optimizer_loop(name_of(loop)).value(), loop);
  for (const auto parallel :
       {Parallel::kDdp, Parallel::kDataParallel, Parallel::kFsdpZero2, Parallel::kFsdpZero3})
    EXPECT_EQ(parse_parallel(name_of(parallel)).value(), parallel);
}

TEST(JobNames, OfOtherToolsMeanTheSame) {
  EXPECT_EQ(parse_precision("AMP_BF16").value(), Precision::kAmpBf16);
  EXPECT_EQ(parse_parallel("FSDP").value(), Parallel::kFsdpZero3);
  EXPECT_EQ(parse_parallel("zero2").value(), Parallel::kFsdpZero2);
  EXPECT_EQ(parse_fsdp_precision("PURE").value(), FsdpPrecision::kReduceHalf);
  EXPECT_EQ(parse_fsdp_precision("default").value(), FsdpPrecision::kReduceFp32);
  EXPECT_EQ(parse_optimizer_loop("forloop").value(), OptimizerLoop::kForLoop);
}

TEST(JobNames, UnknownOnesAreRefusedWithTheNearestAndAll) {
  const auto wrong = parse_optimizer("adamz");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "unknown optimizer \"adamz\"; did you mean adam? (known: sgd, adam, adamw, rmsprop, "
            "adagrad, adadelta, adamax, nadam, radam, adafactor, lion, lbfgs, none)");
  EXPECT_FALSE(parse_precision(""));
  EXPECT_FALSE(parse_parallel("pipeline"));
}

TEST(JobNames, OptimizersInEightBitsHaveManySpellings) {
  for (const char* name : {"adamw8bit", "AdamW8bit", "adamw_8bit", "paged_adamw_8bit",
                           "PagedAdamW8bit", "adamw_bnb_8bit"}) {
    EXPECT_EQ(parse_optimizer(name).value(), OptimizerKind::kAdamW) << name;
    EXPECT_EQ(state_bits_named(name), 8) << name;
  }
  EXPECT_EQ(state_bits_named("adamw"), 32);
  EXPECT_EQ(state_bits_named("8bit"), 32);
  EXPECT_FALSE(parse_optimizer("adafactor8bit"));
  EXPECT_FALSE(parse_optimizer("none8bit"));
  EXPECT_FALSE(parse_optimizer("lbfgs8bit"));
  OptimizerSettings settings;
  settings.kind = OptimizerKind::kLion;
  settings.state_bits = 8;
  EXPECT_EQ(name_of(settings), "lion8bit");
}

TEST(CapturedOptimizer, HasWhatItsGroupsSay) {
  const OptimizerSettings sgd = captured_optimizer(
      captured("sgd", {{{"momentum", 0.8}, {"nesterov", 1}}, {{"weight_decay", 0.05}}}));
  EXPECT_EQ(sgd.kind, OptimizerKind::kSgd);
  EXPECT_EQ(sgd.momentum, 0.8);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_EQ(sgd.weight_decay, 0.05);  // the largest of all groups
  EXPECT_EQ(sgd.loop, OptimizerLoop::kForeach);
  EXPECT_FALSE(sgd.loop_asked);
  EXPECT_EQ(captured_optimizer(captured("sgd", {{{"lr", 0.1}}})).momentum, 0);
}

TEST(CapturedOptimizer, HasTheHistoryThatLbfgsKeeps) {
  const auto history = [](std::map<std::string, double> numbers) {
    return captured_optimizer(captured("lbfgs", {std::move(numbers)})).history;
  };
  EXPECT_EQ(history({{"history_size", 7}}), 7);
  EXPECT_EQ(history({{"lr", 1}}), 100);
  EXPECT_EQ(history({{"history_size", 1e12}}), 10'000);
  EXPECT_EQ(history({{"history_size", -1}}), 1);
}

TEST(CapturedOptimizer, TakesTheLoopThatWasAskedFor) {
  const auto loop = [](const char* name, std::map<std::string, double> numbers) {
    return captured_optimizer(captured(name, {std::move(numbers)})).loop;
  };
  EXPECT_EQ(loop("adam", {{"fused", 1}}), OptimizerLoop::kFused);
  EXPECT_EQ(loop("adam", {{"fused", 0}}), OptimizerLoop::kForeach);
  EXPECT_EQ(loop("adam", {{"foreach", 0}}), OptimizerLoop::kForLoop);
  EXPECT_EQ(loop("adafactor", {{"lr", 1}}), OptimizerLoop::kForLoop);
  EXPECT_EQ(loop("adafactor", {{"foreach", 1}}), OptimizerLoop::kForeach);
  EXPECT_TRUE(captured_optimizer(captured("adam", {{{"foreach", 0}}})).loop_asked);
}

TEST(CapturedOptimizer, IsTheDefaultWhereNothingKnownWasCaptured) {
  EXPECT_EQ(captured_optimizer(Step{}).kind, OptimizerKind::kSgd);
  EXPECT_EQ(captured_optimizer(captured("shampoo", {{{"lr", 1}}})).momentum, 0.9);
  EXPECT_EQ(captured_optimizer(captured("adamw8bit", {})).state_bits, 8);
}

TEST(CheckJob, APlainJobIsFine) { EXPECT_EQ(refusal(Job{}), ""); }

TEST(CheckJob, NumbersThatNoMachineCouldMakeSenseOf) {
  EXPECT_EQ(refusal_of([](Job& j) { j.batch = 0; }), "batch must be at least 1, not 0");
  EXPECT_EQ(refusal_of([](Job& j) { j.gpus = 0; }), "gpus must be at least 1, not 0");
  EXPECT_EQ(refusal_of([](Job& j) { j.gpus = 5000; }), "gpus must be at most 4,096");
  EXPECT_EQ(refusal_of([](Job& j) {
              j.gpus = 6;
              j.nodes = 4;
            }),
            "6 GPUs cannot be spread evenly over 4 nodes; give {gpus} a multiple of 4");
  EXPECT_EQ(refusal_of([](Job& j) { j.accumulate = 4097; }), "accumulate must be at most 4,096");
  EXPECT_EQ(refusal_of([](Job& j) {
              j.gpus = 8;
              j.nodes = 2;
              j.parallel = Parallel::kDataParallel;
            }),
            "nn.DataParallel (dp) is one process on one machine, not on 2 nodes; use ddp or fsdp");
}

TEST(CheckJob, ShardingNeedsFsdpAndHalfPrecision) {
  Job job;
  job.gpus = 8;
  job.fsdp_precision = FsdpPrecision::kReduceFp32;
  EXPECT_EQ(refusal(job), "FSDP's mixed precision needs FSDP, not ddp");
  job.parallel = Parallel::kFsdpZero3;
  EXPECT_EQ(refusal(job), "FSDP's mixed precision computes in half precision, not in fp32");
  job.precision = Precision::kBf16;
  EXPECT_EQ(refusal(job), "");
  for (const int group : {2, 4, 8}) {
    job.fsdp_group = group;
    EXPECT_EQ(refusal(job), "") << group;
  }
  for (const int group : {1, 3, 16}) {
    job.fsdp_group = group;
    EXPECT_EQ(refusal(job), "8 GPUs cannot be parted into groups of " + std::to_string(group) +
                                " that share one copy of the model");
  }
}

TEST(CheckJob, TheLastBatchIsSmaller) {
  EXPECT_EQ(refusal_of([](Job& j) {
              j.batch = 64;
              j.last_batch = 63;
            }),
            "");
  EXPECT_NE(refusal_of([](Job& j) {
              j.batch = 64;
              j.last_batch = 64;
            }),
            "");
  EXPECT_NE(refusal_of([](Job& j) {
              j.batch = 64;
              j.last_batch = -1;
            }),
            "");
  EXPECT_EQ(refusal_of([](Job& j) {
              j.batch = 64;
              j.validation_batch = 0;
            }),
            "validation_batch must be at least 1, not 0");
}

TEST(ProgramNames, EachRoleUnitAndPhaseHasOneOfItsOwn) {
  std::set<std::string_view> roles, units, phases;
  for (std::size_t i = 0; i < kBufferRoles; ++i) roles.insert(name_of(static_cast<BufferRole>(i)));
  for (std::size_t i = 0; i < kMathUnits; ++i) units.insert(name_of(static_cast<MathUnit>(i)));
  for (std::size_t i = 0; i < kStepPhases; ++i) phases.insert(name_of(static_cast<StepPhase>(i)));
  EXPECT_EQ(roles.size(), kBufferRoles);
  EXPECT_EQ(units.size(), kMathUnits);
  EXPECT_EQ(phases,
            (std::set<std::string_view>{"load", "forward", "loss", "backward", "optimizer"}));
  EXPECT_FALSE(roles.contains("") || units.contains(""));
}

TEST(ProgramNames, AKernelsFunctionIsCountedFromOne) {
  Program program;
  program.functions = {"add_", "gelu_backward"};
  Kernel kernel;
  kernel.function = 2;
  EXPECT_EQ(program.function_of(kernel), "gelu_backward");
  kernel.function = 0;
  EXPECT_EQ(program.function_of(kernel), "");
  kernel.function = 3;
  EXPECT_EQ(program.function_of(kernel), "");
}

}  // namespace
}  // namespace stoker
