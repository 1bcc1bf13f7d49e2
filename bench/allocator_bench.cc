// Speed of the allocator simulation in events (an allocation or a free) a second, on sequences
// shaped like training steps: `allocator` is the bare allocator, `replay` a whole Program with its
// book-keeping. With step files in the folder STOKER_STEPS, also on the real steps, lowered for an
// A100: replay and largest batch.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/catalogue/gpu_catalogue.h"
#include "lower/loop/lower.h"
#include "memory/replay/largest_batch.h"
#include "memory/replay/replay.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

/// Writes the events of one training step.
class StepWriter {
 public:
  std::uint32_t allocate(std::int64_t bytes) {
    program.buffers.push_back({Bytes{bytes}, BufferRole::kActivation, Stream::kCompute, false, {}});
    const auto id = static_cast<std::uint32_t>(program.buffers.size() - 1);
    program.iteration.push_back({InstructionKind::kAllocate, When::kAlways, id});
    return id;
  }
  void free(std::uint32_t id) {
    program.iteration.push_back({InstructionKind::kFree, When::kAlways, id});
  }
  void temporary(std::int64_t bytes) { free(allocate(bytes)); }
  void parameter(std::int64_t bytes) {
    program.buffers.push_back({Bytes{bytes}, BufferRole::kParameter, Stream::kCompute, false, {}});
    program.setup.push_back({InstructionKind::kAllocate, When::kAlways,
                             static_cast<std::uint32_t>(program.buffers.size() - 1)});
  }
  Program program;
};

/// Bottleneck stages of ResNet-50 on 224 px: each convolution and normalisation saves its output,
/// the backward pass frees them in reverse with a gradient and a workspace each.
Program resnet50_like(std::int64_t batch) {
  constexpr std::int64_t kF32 = 4;
  struct Saved {
    std::uint32_t id;
    std::int64_t bytes, weight;
  };
  StepWriter step;
  std::vector<Saved> saved;
  const auto convolution = [&](std::int64_t in, std::int64_t out, std::int64_t kernel,
                               std::int64_t side) {
    const std::int64_t bytes = batch * out * side * side * kF32,
                       weight = in * out * kernel * kernel * kF32;
    step.parameter(weight);
    step.temporary(bytes / 4 + weight);  // workspace
    saved.push_back({step.allocate(bytes), bytes, weight});
    for (int i = 0; i < 3; ++i) step.allocate(out * kF32);  // statistics of the normalisation
    saved.push_back({step.allocate(bytes), bytes, out * kF32});
  };
  constexpr std::int64_t kBlocks[] = {3, 4, 6, 3};
  convolution(3, 64, 7, 112);
  std::int64_t in = 64, width = 64, side = 56;
  for (const std::int64_t blocks : kBlocks) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      convolution(in, width, 1, side);
      convolution(width, width, 3, side);
      convolution(width, 4 * width, 1, side);
      in = 4 * width;
    }
    width *= 2;
    side /= 2;
  }
  std::vector<std::uint32_t> gradients;
  std::uint32_t flowing = step.allocate(saved.back().bytes);
  for (std::size_t i = saved.size(); i-- > 0;) {
    step.temporary(saved[i].bytes / 2);
    const std::uint32_t next = step.allocate(saved[i].bytes);
    gradients.push_back(step.allocate(saved[i].weight));
    step.free(flowing);
    step.free(saved[i].id);
    flowing = next;
  }
  step.free(flowing);
  for (const std::uint32_t id : gradients) step.free(id);
  // The statistics go with the graph.
  std::vector<bool> freed(step.program.buffers.size());
  for (const auto& one : step.program.iteration) {
    if (one.kind == InstructionKind::kFree) freed[one.value] = true;
  }
  const std::vector<Instruction> events = step.program.iteration;
  for (const auto& one : events) {
    if (one.kind == InstructionKind::kAllocate && !freed[one.value]) step.free(one.value);
  }
  return step.program;
}

/// Decoder layers of a language model: many equal sizes, many temporaries of the attention,
/// gradients kept.
Program gpt_like(std::int64_t batch, std::int64_t layers = 48, std::int64_t width = 1600) {
  constexpr std::int64_t kLength = 1024, kHeads = 25, kF16 = 2;
  StepWriter step;
  const std::int64_t row = batch * kLength * width * kF16,
                     scores = batch * kHeads * kLength * kLength * kF16;
  const std::int64_t sizes[] = {row,
                                row,
                                3 * row,
                                row,
                                row,
                                row,
                                scores,
                                scores,
                                row,
                                row,
                                row / 2,
                                row * 4,
                                row * 4,
                                row,
                                row,
                                row,
                                4 * batch * kLength};
  for (std::int64_t l = 0; l < layers; ++l) {
    for (const std::int64_t part : {3, 1, 4, 4}) step.parameter(part * width * width * kF16);
  }
  std::vector<std::uint32_t> saved;
  std::vector<std::int64_t> bytes;
  for (std::int64_t l = 0; l < layers; ++l) {
    for (const std::int64_t size : sizes) {
      step.temporary(size / 2);
      saved.push_back(step.allocate(size));
      bytes.push_back(size);
    }
  }
  std::vector<std::uint32_t> gradients;
  for (std::size_t i = saved.size(); i-- > 0;) {
    const std::uint32_t flowing = step.allocate(bytes[i]);
    step.temporary(bytes[i]);
    if (i % 4 == 0) gradients.push_back(step.allocate(width * width * kF16));
    step.free(saved[i]);
    step.free(flowing);
  }
  for (const std::uint32_t id : gradients) step.free(id);
  return step.program;
}

std::int64_t events_of(const Program& program) {
  std::int64_t events = 0;
  for (const auto& one : program.iteration) {
    if (one.kind == InstructionKind::kAllocate || one.kind == InstructionKind::kFree) ++events;
  }
  return events;
}

void run_allocator(benchmark::State& state, const Program& program, const AllocatorConfig& config) {
  CachingAllocator allocator(config, {Bytes{std::int64_t{1} << 42}, {}});
  std::vector<BlockId> blocks(program.buffers.size());
  for (const auto& one : program.setup) {
    (void)allocator.allocate(program.buffers[one.value].bytes, Stream::kCompute);
  }
  for (auto _ : state) {
    for (const auto& one : program.iteration) {
      if (one.kind == InstructionKind::kAllocate) {
        blocks[one.value] = *allocator.allocate(program.buffers[one.value].bytes, Stream::kCompute);
      } else {
        allocator.free(blocks[one.value]);
      }
    }
  }
  benchmark::DoNotOptimize(allocator.stats().reserved_peak);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * events_of(program));
}

void allocator_resnet50(benchmark::State& state) { run_allocator(state, resnet50_like(64), {}); }
void allocator_gpt(benchmark::State& state) { run_allocator(state, gpt_like(4), {}); }
void allocator_gpt_expandable(benchmark::State& state) {
  AllocatorConfig config;
  config.expandable_segments = true;
  run_allocator(state, gpt_like(4), config);
}

void run_replay(benchmark::State& state, const Program& program, ReplayDetail detail) {
  ReplayOptions options;
  options.detail = detail;
  for (auto _ : state) benchmark::DoNotOptimize(replay(program, options).reserved_peak);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * options.iterations *
                          events_of(program));
}

void replay_resnet50(benchmark::State& state) {
  run_replay(state, resnet50_like(64), ReplayDetail::kVerdict);
}
void replay_gpt(benchmark::State& state) { run_replay(state, gpt_like(4), ReplayDetail::kVerdict); }
void replay_gpt_breakdown(benchmark::State& state) {
  run_replay(state, gpt_like(4), ReplayDetail::kBreakdown);
}

/// The whole search, 80 GiB, the making of the programs included.
void largest_batch_gpt(benchmark::State& state) {
  const LowerAt lower_at = [](std::int64_t batch) -> Result<Program> { return gpt_like(batch); };
  for (auto _ : state) benchmark::DoNotOptimize(find_largest_batch(lower_at, 80 * kGiB)->batch);
}

BENCHMARK(allocator_resnet50);
BENCHMARK(allocator_gpt);
BENCHMARK(allocator_gpt_expandable);
BENCHMARK(replay_resnet50);
BENCHMARK(replay_gpt);
BENCHMARK(replay_gpt_breakdown);
BENCHMARK(largest_batch_gpt)->Unit(benchmark::kMillisecond);

/// The job of a captured step on one A100, by batch.
LowerAt lowering_of(std::shared_ptr<const Step> step, const Machine& machine) {
  return [step, machine](std::int64_t batch) {
    Job job;
    job.batch = batch;
    job.optimizer = captured_optimizer(*step);
    if (const auto precision = parse_precision(step->precision)) job.precision = *precision;
    return lower(*step, job, machine);
  };
}

void register_step(const std::filesystem::path& path, const Machine& machine) {
  auto read = read_step_file(path);
  if (!read) return;
  const LowerAt lower_at = lowering_of(std::make_shared<const Step>(std::move(*read)), machine);
  const std::string name = path.stem().stem().string();
  benchmark::RegisterBenchmark(("replay/" + name).c_str(), [=](benchmark::State& state) {
    if (const auto program = lower_at(16)) {
      run_replay(state, *program, ReplayDetail::kVerdict);
    } else {
      state.SkipWithError(program.error().text().c_str());
    }
  });
  const auto largest = [=](benchmark::State& state) {
    for (auto _ : state) {
      const auto answer = find_largest_batch(lower_at, machine.device->usable_memory);
      if (!answer) return state.SkipWithError(answer.error().text().c_str());
      state.counters["batch"] = static_cast<double>(answer->batch);
      state.counters["simulations"] = answer->simulations;
    }
  };
  benchmark::RegisterBenchmark(("largest_batch/" + name).c_str(), largest)
      ->Unit(benchmark::kMillisecond);
}

void register_steps() {
  const char* folder = std::getenv("STOKER_STEPS");
  const auto gpu = find_gpu("a100-40gb");
  if (!folder || !gpu) return;
  Machine machine;
  machine.device = *gpu;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    register_step(entry.path(), machine);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  stoker::register_steps();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
