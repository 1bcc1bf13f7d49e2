// What must hold for every captured model that ships, whatever the training loop around it: nothing
// leaks from one iteration, epoch or pass into the next, and nothing is freed twice.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lower/common/test_jobs.h"
#include "lower/common/test_live.h"
#include "lower/loop/lower.h"
#include "rewrite/checkpoint.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

using testing_support::ampere;
using testing_support::Live;

struct Loop {
  const char* name;
  std::function<void(Job&)> set;
};

const std::vector<Loop>& loops() {
  static const std::vector<Loop> all{
      {"kept gradients",
       [](Job& j) {
         j.zero_grad_fills = true;
         j.accumulate = 2;
       }},
      {"prefetching loader, gradients dropped after the step",
       [](Job& j) {
         j.prefetching_loader = true;
         j.zero_grad_before_forward = false;
         j.cudnn = CudnnProfile::kBenchmark;
       }},
      {"everything around the step",
       [](Job& j) {
         j.clip = j.ema = j.grad_scaler = true;
         j.accumulate = 3;
         j.optimizer.kind = OptimizerKind::kAdamW;
       }},
      {"buckets as views, kept gradients",
       [](Job& j) {
         j.gpus = 2;
         j.gradient_as_bucket_view = j.zero_grad_fills = true;
       }},
      {"many micro-batches",
       [](Job& j) {
         j.prefetching_loader = j.clip = j.grad_scaler = true;
         j.accumulate = 37;
       }},
      {"many micro-batches, buckets",
       [](Job& j) {
         j.gpus = 2;
         j.zero_grad_fills = j.drop_output = true;
         j.accumulate = 40;
       }},
      {"validation that forgot no_grad", [](Job& j) { j.validation_no_grad = false; }},
      {"blocks checkpointed", [](Job& j) { j.checkpoint = {"blocks"}; }},
      {"nn.DataParallel",
       [](Job& j) {
         j.gpus = 4;
         j.parallel = Parallel::kDataParallel;
       }},
      {"FSDP, parameters kept until the backward",
       [](Job& j) {
         j.gpus = 4;
         j.parallel = Parallel::kFsdpZero2;
         j.clip = true;
       }},
      {"FSDP over checkpointed blocks, accumulated", [](Job& j) {
         j.gpus = 4;
         j.parallel = Parallel::kFsdpZero3;
         j.checkpoint = {"blocks"};
         j.accumulate = 2;
         j.optimizer.kind = OptimizerKind::kAdamW;
       }}};
  return all;
}

/// Expects as many bytes alive after every iteration, also after the passes of two epochs.
void expect_steady(const Program& program) {
  Live live(program);
  live.iterate();
  live.iterate();
  const Bytes alive = live.total();
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const ExtraPass& pass : program.passes) live.pass(pass);
    live.iterate();
    EXPECT_EQ(live.total(), alive) << "after the passes of epoch " << epoch;
    live.iterate();
    EXPECT_EQ(live.total(), alive) << "an iteration after the passes of epoch " << epoch;
  }
  EXPECT_EQ(live.live(BufferRole::kActivation), Bytes(0));
  EXPECT_EQ(live.live(BufferRole::kTemporary), Bytes(0));
}

void expect_ids_in_range(const Program& program) {
  const auto check = [&](const std::vector<Instruction>& instructions) {
    for (const Instruction& i : instructions) {
      if (i.kind == InstructionKind::kLaunch) {
        ASSERT_LT(i.value, program.kernels.size());
      } else if (i.kind == InstructionKind::kAllocate || i.kind == InstructionKind::kFree ||
                 i.kind == InstructionKind::kFreePrevious) {
        ASSERT_LT(i.value, program.buffers.size());
      } else if (i.kind == InstructionKind::kBucketReady) {
        ASSERT_LT(i.value, program.buckets.size());
      }
    }
  };
  check(program.setup);
  check(program.iteration);
  for (const ExtraPass& pass : program.passes) {
    check(pass.instructions);
    check(pass.end);
  }
}

/// How often most of the step's operators run.
std::int64_t micro_batches_of(const Program& program, const std::vector<Instruction>& instructions,
                              const Repeated& repeated) {
  std::map<std::uint32_t, std::int64_t> runs;  // of operators, by the first kernel of each run
  std::uint32_t last = Kernel::kSynthesized;
  program.for_each_launch(instructions, repeated,
                          [&](const Kernel& kernel, std::uint32_t, std::int64_t times) {
                            if (kernel.source != Kernel::kSynthesized && kernel.source != last)
                              runs[kernel.source] += times;
                            last = kernel.source;
                          });
  std::map<std::int64_t, int> often;
  for (const auto& [source, count] : runs) ++often[count];
  return std::ranges::max_element(often, {}, [](const auto& entry) { return entry.second; })->first;
}

TEST(ZooLoops, LeakNothing) {
  const std::filesystem::path zoo = std::filesystem::path(STOKER_SOURCE_DIR) / "data" / "zoo";
  int programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(zoo)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".step.gz")) continue;
    const auto step = read_step_file(entry.path());
    ASSERT_TRUE(step) << step.error().text();
    const bool has_blocks = !repeated_blocks(*step).empty();
    for (const Loop& loop : loops()) {
      Job job;
      job.batch = 6;
      job.precision = *parse_precision(step->precision);
      job.last_batch = 5;
      job.validation_batch = 9;
      loop.set(job);
      if (!job.checkpoint.empty() && !has_blocks) continue;  // refused, as it should be
      SCOPED_TRACE(file + ", " + loop.name);
      const auto program = lower(*step, job, ampere());
      ASSERT_TRUE(program) << program.error().text();
      ASSERT_EQ(program->passes.size(), 2U);
      EXPECT_EQ(micro_batches_of(*program, program->iteration, program->repeated), job.accumulate);
      EXPECT_EQ(
          micro_batches_of(*program, program->passes[0].instructions, program->passes[0].repeated),
          job.accumulate);
      expect_ids_in_range(*program);
      expect_steady(*program);
      ++programs;
    }
  }
  EXPECT_GE(programs, 28 * 3 * 9);
}

}  // namespace
}  // namespace stoker
