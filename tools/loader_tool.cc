// A developer's tool, not installed: what scripts/measure-loader needs of the C++ side.
//
// probe DIR FILE [SAMPLE [BUDGET_S]]: measures up to SAMPLE pictures into a probe file.
//
// simulate PROFILE: reads lines of settings (a JSON object each), writes a line of forecast for
// each.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "input/loader/loader_simulation.h"
#include "input/probe/probe_io.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

int complain(const std::string& text) {
  std::fprintf(stderr, "stoker-loader-tool: %s\n", text.c_str());
  return 3;
}

int run_probe(const std::vector<std::string>& args) {
  ProbeOptions options{.budget = 120.0 * kSecond, .sample = 4096};
  if (args.size() > 2) options.sample = static_cast<std::size_t>(std::atoll(args[2].c_str()));
  if (args.size() > 3) options.budget = std::atof(args[3].c_str()) * kSecond;
  const Result<Probe> probe = probe_folder(args[0], options);
  if (!probe) return complain(probe.error().text());
  const Status written = write_probe(args[1], *probe);
  if (!written) return complain(written.error().text());
  const std::string warning = contention_warning(probe->contention);
  if (!warning.empty()) std::fprintf(stderr, "%s\n", warning.c_str());
  return 0;
}

/// Times in ms, sizes in bytes; `sample_ms` is a list: the distribution.
Json simulate(const Json& line, const LoaderProfile& profile) {
  SampleCost cost = sample_cost_given(
      {}, {Bytes(line.value("output_bytes", std::int64_t{0})), line.value("tensors", 2)}, profile);
  cost.cpu.clear();
  for (const Json& ms : line["sample_ms"]) cost.cpu.push_back(ms.as_double() * kMillisecond);
  if (cost.cpu.empty()) cost.cpu.emplace_back();
  cost.slowdown_per_core = line.value("slowdown_per_core", 0.0);
  const LoaderSettings settings{.batch = line.value("batch", std::int64_t{1}),
                                .workers = line.value("workers", 0),
                                .prefetch = line.value("prefetch", 2),
                                .pin = line.value("pin", false),
                                .persistent = line.value("persistent", false),
                                .drop_last = line.value("drop_last", true),
                                .in_order = line.value("in_order", true),
                                .dataset_samples = line.value("samples", std::int64_t{0})};
  const HostShare host{.cores = line.value("cores", 1.0), .ranks = line.value("ranks", 1)};
  const Consumer consumer{.step = line.value("step_ms", 0.0) * kMillisecond,
                          .host_cpu = line.value("host_cpu_ms", 0.0) * kMillisecond,
                          .consumption = Consumption::kBlocking};
  const LoaderForecast out = simulate_loader(settings, cost, host, consumer);
  return {{"samples_per_s", out.samples_per_s},
          {"wait_ms", milliseconds(out.wait)},
          {"first_batch_ms", milliseconds(out.first_batch)},
          {"epoch_start_ms", milliseconds(out.epoch_start)},
          {"epoch_ms", milliseconds(out.epoch)},
          {"batches", out.batches},
          {"worker_utilization", out.worker_utilization},
          {"cores_used", out.cores_used},
          {"shared_memory_bytes", out.shared_memory.count()},
          {"limit", input_limit_text(out.limit)}};
}

int run_simulate(const std::vector<std::string>& args) {
  const Result<LoaderProfile> profile = read_loader_profile(args[0]);
  if (!profile) return complain(profile.error().text());
  for (std::string line; std::getline(std::cin, line);) {
    const Json json = json::parse(line).value_or(Json());
    if (!json.is_object()) return complain("not a JSON object: " + line);
    std::printf("%s\n", simulate(json, *profile).dump().c_str());
  }
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() >= 3 && args[0] == "probe")
    return stoker::run_probe({args.begin() + 1, args.end()});
  if (args.size() == 2 && args[0] == "simulate")
    return stoker::run_simulate({args.begin() + 1, args.end()});
  std::fprintf(
      stderr,
      "usage: stoker-loader-tool probe DIR FILE [SAMPLE [BUDGET_S]] | simulate PROFILE < LINES\n");
  return 2;
}
