// What one forecast costs, from the file on disk to the figures (read, lower, replay,
// predict the time), and what a whole plan costs.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "device/catalogue/gpu_catalogue.h"
#include "forecast/forecast.h"
#include "lower/loop/lower.h"
#include "memory/replay/replay.h"
#include "plan/plan.h"
#include "step/step_reader.h"

namespace stoker {
namespace {

constexpr std::int64_t kBatch = 32;
constexpr const char* kGpu = "v100-16gb";

std::filesystem::path zoo_file(const std::string& name) {
  const auto data = data_folder();
  return data ? *data / "zoo" / (name + ".fp32.step.gz") : std::filesystem::path();
}

/// The scenario of a zoo model, or a skipped benchmark that says what is missing.
struct Subject {
  Subject(benchmark::State& state, const std::string& name) {
    auto read = read_step_file(zoo_file(name));
    auto gpu = find_gpu(kGpu);
    auto known = load_knowledge();
    for (const Error* error : {read ? nullptr : &read.error(), gpu ? nullptr : &gpu.error(),
                               known ? nullptr : &known.error()}) {
      if (error != nullptr) {
        state.SkipWithError(error->text().c_str());
        return;
      }
    }
    step = std::move(*read);
    knowledge = std::move(*known);
    scenario.step = &step;
    scenario.machine.device = *gpu;
    scenario.job.batch = scenario.loader.batch = kBatch;
    ready = true;
  }

  Step step;
  Knowledge knowledge;
  Scenario scenario;
  bool ready = false;
};

void read_step(benchmark::State& state, const std::string& name) {
  const auto path = zoo_file(name);
  for (auto _ : state) {
    auto step = read_step_file(path);
    if (!step) return state.SkipWithError(step.error().text().c_str());
    benchmark::DoNotOptimize(step);
  }
}

void lower_step(benchmark::State& state, const std::string& name) {
  Subject subject(state, name);
  for (auto _ : state) {
    if (!subject.ready) break;
    benchmark::DoNotOptimize(lower(subject.step, subject.scenario.job, subject.scenario.machine));
  }
}

void replay_memory(benchmark::State& state, const std::string& name) {
  Subject subject(state, name);
  if (!subject.ready) return;
  const auto program = lower(subject.step, subject.scenario.job, subject.scenario.machine);
  if (!program) return state.SkipWithError(program.error().text().c_str());
  ReplayOptions options;
  options.detail = ReplayDetail::kVerdict;
  for (auto _ : state) benchmark::DoNotOptimize(replay(*program, options));
  const auto instructions = static_cast<double>(program->iteration.size()) * options.iterations;
  state.counters["instructions/s"] =
      benchmark::Counter(instructions, benchmark::Counter::kIsIterationInvariantRate);
}

void step_time(benchmark::State& state, const std::string& name) {
  Subject subject(state, name);
  for (auto _ : state) {
    if (!subject.ready) break;
    benchmark::DoNotOptimize(step_time_of(subject.scenario, subject.knowledge));
  }
}

void whole_forecast(benchmark::State& state, const std::string& name) {
  Subject subject(state, name);
  for (auto _ : state) {
    if (!subject.ready) break;
    auto step = read_step_file(zoo_file(name));
    if (!step) return state.SkipWithError(step.error().text().c_str());
    Scenario scenario = subject.scenario;
    scenario.step = &*step;
    benchmark::DoNotOptimize(forecast(scenario, subject.knowledge));
  }
}

/// The search of `stoker plan`: one to eight GPUs, batches, loaders.
void whole_plan(benchmark::State& state, const std::string& name) {
  Subject subject(state, name);
  if (!subject.ready) return;
  PlanRequest request;
  request.choices = {{Precision::kFp32, &subject.step}};
  request.base = subject.scenario;
  request.base.machine.host.cores = 32;
  constexpr Nanos kSampleCost{4e6};
  request.base.sample = sample_cost_given(kSampleCost, {.bytes_per_sample = Bytes(602'120)},
                                          subject.knowledge.loader);
  request.gpu_counts = {1, 2, 3, 4, 5, 6, 7, 8};
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(request, subject.knowledge));
}

/// 10,000 settings of one model, as a search crosses them: 25 batches x 4 numbers of GPUs x 2
/// precisions of the arithmetic, each with 50 loaders. Step times do not depend on the loader.
void ten_thousand_settings(benchmark::State& state, const std::string& name) {
  constexpr int kBatches = 25, kWorkers = 25;
  Subject subject(state, name);
  if (!subject.ready) return;
  constexpr Nanos kSampleCost{4e6};
  subject.scenario.sample = sample_cost_given(kSampleCost, {.bytes_per_sample = Bytes(602'120)},
                                              subject.knowledge.loader);
  subject.scenario.machine.host.cores = 32;
  std::int64_t settings = 0;
  for (auto _ : state) {
    settings = 0;
    double best = 0;
    for (const int gpus : {1, 2, 4, 8}) {
      for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
        for (int batch = 1; batch <= kBatches; ++batch) {
          Scenario s = subject.scenario;
          s.job.gpus = s.machine.gpu_count = gpus;
          s.job.precision = precision;
          s.job.batch = 4 * batch;
          const auto time = step_time_of(s, subject.knowledge);
          if (!time) return state.SkipWithError(time.error().text().c_str());
          for (const int prefetch : {2, 4}) {
            for (int workers = 0; workers < kWorkers; ++workers, ++settings) {
              s.loader.workers = workers;
              s.loader.prefetch = prefetch;
              best = std::max(best, throughput_of(s, *time).samples_per_s);
            }
          }
        }
      }
    }
    benchmark::DoNotOptimize(best);
  }
  state.counters["settings"] = static_cast<double>(settings);
}

/// Sharded over sixteen numbers of GPUs: each shards, lowers and times a step of its own.
void fsdp_plan(benchmark::State& state, const std::string& name) {
  Subject subject(state, name);
  if (!subject.ready) return;
  PlanRequest request;
  request.choices = {{Precision::kFp32, &subject.step}};
  request.base = subject.scenario;
  request.base.job.parallel = Parallel::kFsdpZero3;
  for (int gpus = 2; gpus <= 17; ++gpus) request.gpu_counts.push_back(gpus);
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(request, subject.knowledge));
}

/// The plan of an input that cores limit: search over workers, depth, batch, order and pinning, and
/// every knob, finding and trap. `processes` share the host.
void input_plan(benchmark::State& state, double cores, int processes) {
  const auto profile = shipped_loader_profile();
  if (!profile) return state.SkipWithError(profile.error().text().c_str());
  InputPlanRequest request;
  request.now.settings = {.batch = 64, .dataset_samples = 1'280'000};
  request.now.sample = sample_cost_given(4 * kMillisecond, {Bytes(602'120), 2}, *profile);
  request.now.sample.cpu.clear();
  for (int i = 0; i < 256; ++i)  // uneven, so that the order of batches is searched too
    request.now.sample.cpu.push_back((2 + i % 8) * kMillisecond);
  request.now.sample.cpu.front() = 40 * kMillisecond;
  request.now.host = {.cores = cores, .ranks = processes};
  request.now.consumer = {.step = 20 * kMillisecond};
  request.freedom.batches = batches_around(request.now.settings.batch);
  request.profile = &*profile;
  request.gpus = processes;
  std::int64_t settings = 0;
  for (auto _ : state) {
    const auto plan = make_input_plan(request);
    if (!plan) return state.SkipWithError(plan.error().text().c_str());
    settings = plan->settings_considered;
  }
  state.counters["settings"] = static_cast<double>(settings);
}

void add(const std::string& model) {
  const auto named = [&](const char* what) { return std::string(what) + "/" + model; };
  const auto in = benchmark::kMillisecond;
  benchmark::RegisterBenchmark(named("read").c_str(), read_step, model)->Unit(in);
  benchmark::RegisterBenchmark(named("lower").c_str(), lower_step, model)->Unit(in);
  benchmark::RegisterBenchmark(named("replay").c_str(), replay_memory, model)->Unit(in);
  benchmark::RegisterBenchmark(named("lower+time").c_str(), step_time, model)->Unit(in);
  benchmark::RegisterBenchmark(named("forecast").c_str(), whole_forecast, model)->Unit(in);
  benchmark::RegisterBenchmark(named("plan").c_str(), whole_plan, model)->Unit(in);
  benchmark::RegisterBenchmark(named("10,000 settings").c_str(), ten_thousand_settings, model)
      ->Unit(in);
  benchmark::RegisterBenchmark(named("FSDP plan").c_str(), fsdp_plan, model)->Unit(in);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  for (const char* model : {"resnet50", "gpt2"}) stoker::add(model);
  for (const auto& [cores, processes] : {std::pair(8.0, 1), {16.0, 1}, {64.0, 8}}) {
    const std::string name = "input plan/" + std::to_string(static_cast<int>(cores)) + " cores, " +
                             std::to_string(processes) + " processes";
    benchmark::RegisterBenchmark(name.c_str(), stoker::input_plan, cores, processes)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
