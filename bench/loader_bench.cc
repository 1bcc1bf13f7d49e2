// What one simulation of a DataLoader costs: usual settings, many ranks, a whole epoch of
// ImageNet's size, and a search of workers, prefetch and batch.

#include <benchmark/benchmark.h>

#include <algorithm>

#include "input/loader/loader_simulation.h"

namespace stoker {
namespace {

constexpr std::int64_t kImageNet = 1'281'167;

/// 256 measured samples of about 4 ms, as a probe finds them.
SampleCost pictures() {
  SampleCost cost = sample_cost_given({}, {.bytes_per_sample = Bytes(602'120)}, {});
  cost.cpu.clear();
  for (int i = 0; i < 256; ++i) cost.cpu.push_back(Nanos(2e6 + 16e3 * i));
  cost.transport.per_batch_main = Nanos(0.45e6);
  cost.transport.per_tensor_main = Nanos(0.15e6);
  cost.transport.fork_per_worker = Nanos(13e6);
  return cost;
}

void simulate(benchmark::State& state, const LoaderSettings& settings, const HostShare& host) {
  const SampleCost cost = pictures();
  const Consumer consumer{.step = Nanos(100e6), .host_cpu = Nanos(10e6)};
  for (auto _ : state) benchmark::DoNotOptimize(simulate_loader(settings, cost, host, consumer));
}

/// Every number of workers to 16, prefetch of 1, 2, 4 and 8, six batches.
void search(benchmark::State& state) {
  const SampleCost cost = pictures();
  const Consumer consumer{.step = Nanos(100e6)};
  std::int64_t settings = 0;
  for (auto _ : state) {
    settings = 0;
    double best = 0;
    for (int workers = 0; workers <= 16; ++workers) {
      for (const int prefetch : {1, 2, 4, 8}) {
        for (const std::int64_t batch : {8, 16, 32, 64, 128, 256}) {
          const LoaderForecast out =
              simulate_loader({.batch = batch, .workers = workers, .prefetch = prefetch}, cost,
                              {.cores = 8}, consumer);
          best = std::max(best, out.samples_per_s);
          ++settings;
        }
      }
    }
    benchmark::DoNotOptimize(best);
  }
  state.counters["settings"] = static_cast<double>(settings);
}

void add(const char* name, const LoaderSettings& settings, const HostShare& host) {
  benchmark::RegisterBenchmark(name, [=](benchmark::State& state) {
    simulate(state, settings, host);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using stoker::add;
  add("2 workers", {.batch = 32, .workers = 2}, {.cores = 8});
  add("16 workers", {.batch = 32, .workers = 16}, {.cores = 16});
  add("8 ranks of 16 workers", {.batch = 32, .workers = 16}, {.cores = 64, .ranks = 8});
  add("epoch of ImageNet", {.batch = 256, .workers = 8, .dataset_samples = stoker::kImageNet},
      {.cores = 8});
  add("epoch of ImageNet, batch 1",
      {.batch = 1, .workers = 8, .dataset_samples = stoker::kImageNet}, {.cores = 8});
  add("played epoch of 2,000 samples", {.batch = 32, .workers = 4, .dataset_samples = 2000},
      {.cores = 8});
  benchmark::RegisterBenchmark("search", stoker::search)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
