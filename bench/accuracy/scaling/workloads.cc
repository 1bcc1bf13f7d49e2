#include "accuracy/scaling/workloads.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/files.h"
#include "base/text.h"
#include "json/text.h"
#include "lower/loop/buckets.h"
#include "timing/collective/data_parallel.h"

namespace stoker::accuracy {
namespace {

using Json = json::Value;

/// Where on the clock of a step the backward begins and ends: forward to backward as 1 to 2, and a
/// few percent of optimizer.
constexpr double kBackwardBegin = 0.32, kBackwardEnd = 0.95;

Workload workload_from(const Json& node) {
  Workload w;
  for (const Json& name : node["models"]) w.models.push_back(name.as_string());
  w.parameters = node.value("parameters", 0.0);
  w.half_gradients = node.value("half_gradients", false);
  w.after_backward = node.value("after_backward", false);
  w.uneven = node.value("uneven", false);
  w.units_per_sample = node.value("units_per_sample", 1.0);
  w.epoch_samples = node.value("epoch_samples", 0.0);
  w.batch = node.value("batch", 0.0);
  w.accumulate = node.value("accumulate", 1);
  return w;
}

NamedSystem system_from(const Json& node) {
  constexpr double kGigabit = 1e9 / 8;
  return {node.value("name", ""), node.value("gpu", ""), node.value("link", ""),
          node.value("gpus_per_node", 8), node.value("network_gbit", 0.0) * kGigabit};
}

/// "4x100Gb" -> bytes/s.
double network_in(std::string_view words) {
  for (const std::string& word : split(std::string(words), ' ')) {
    int links = 0, gigabits = 0;
    if (std::sscanf(word.c_str(), "%dx%dGb", &links, &gigabits) == 2)
      return links * gigabits * 1e9 / 8;
  }
  return 0;
}

/// The step without other GPUs, `micro_batches` of it in a row; of the last the gradients are
/// reduced.
LonelyStep lonely(const ScalingCase& row, double seconds, int micro_batches) {
  const double last = seconds / micro_batches;
  const double begin = seconds - last * (1 - kBackwardBegin);
  const double end = seconds - last * (1 - kBackwardEnd);
  const double bytes =
      row.workload->parameters * (row.half && row.workload->half_gradients ? 2 : 4);
  const BucketCaps caps;
  LonelyStep step{seconds * kSecond, end * kSecond, {}};
  const Bytes all(std::llround(bytes));
  if (row.workload->after_backward) step.buckets = {{all, step.backward_end}};
  else
    step.buckets = even_buckets(all, begin * kSecond, step.backward_end, caps.first, caps.others);
  return step;
}

/// What a step of `seconds` on one GPU takes on n: with collectives, without waits.
double on_many(const ScalingCase& row, double seconds, int micro_batches, int gpus,
               const Machine& machine, CollectiveCoefficients c) {
  if (gpus < 2) return seconds;
  c.straggler_wait = Micros(0);
  c.straggler = 0;
  const int nodes = (gpus + machine.gpu_count - 1) / machine.gpu_count;
  const AllReduceModel link = all_reduce_model(machine, {(gpus + nodes - 1) / nodes, nodes}, c);
  return stoker::seconds(data_parallel_time(lonely(row, seconds, micro_batches), link, c).total);
}

int micro_batches_of(const ScalingCase& row) {
  const double share = row.strong ? static_cast<double>(row.base_gpus) / row.gpus : 1;
  return std::max(1, static_cast<int>(std::lround(row.accumulate * share)));
}

/// What n GPUs wait besides: for the slowest rank, for ranks whose samples are more work, and for
/// the loader.
double waits(const ScalingCase& row, double alone_s, int micro_batches, int gpus,
             const FleetConstants& constants, CollectiveCoefficients c) {
  if (gpus < 2) return 0;
  c.straggler_wait = Micros(constants.straggler_us);
  c.straggler_growth = constants.straggler_growth;
  double wait = seconds(wait_for_slowest(gpus, alone_s * kSecond, c));
  const double samples = row.batch * micro_batches;  // of a GPU and step
  if (row.workload->uneven && samples > 0)
    wait += alone_s * constants.uneven * slowest_of(gpus) / std::sqrt(samples);
  if (row.workload->epoch_samples > 0 && samples > 0)
    wait += constants.epoch_start_s * samples * (gpus - 1) / row.workload->epoch_samples;
  return wait;
}

}  // namespace

const Workload* ScalingTables::find(std::string_view model) const {
  for (const Workload& w : workloads) {
    if (std::find(w.models.begin(), w.models.end(), model) != w.models.end()) return &w;
  }
  return nullptr;
}

Result<Machine> ScalingTables::machine(std::string_view words, const GpuCatalogue& gpus) const {
  const NamedSystem* best = nullptr;
  for (const NamedSystem& s : systems) {
    if (words.find(s.name) == std::string_view::npos) continue;
    if (best == nullptr || s.name.size() > best->name.size()) best = &s;
  }
  auto gpu = TRY(gpus.find(best != nullptr ? best->gpu : std::string(words)));
  Machine machine;
  machine.device = std::move(gpu);
  machine.gpu_count = best != nullptr ? best->gpus_per_node : 8;
  if (best != nullptr && !best->link.empty()) machine.device.gpu()->link = best->link;
  machine.network_bandwidth = network_in(words);
  if (machine.network_bandwidth == 0 && best != nullptr) machine.network_bandwidth = best->network;
  return machine;
}

Result<ScalingTables> load_scaling_tables() {
  const std::string path =
      std::string(STOKER_SOURCE_DIR) + "/bench/accuracy/scaling_workloads.json";
  const auto text = TRY(read_file(path, kMiB));
  const Json root = json::parse(text).value_or(Json());
  if (!root.is_object()) return fail(ErrorCode::kBadInput, "is not valid JSON", path);
  ScalingTables tables;
  for (const Json& node : root["workloads"]) tables.workloads.push_back(workload_from(node));
  for (const Json& node : root["systems"]) tables.systems.push_back(system_from(node));
  const Json& constants = root["constants"];
  tables.constants = {0, 0, constants.value("uneven", 0.0), constants.value("epoch_start_s", 0.0),
                      constants.value("own_cost", 0.0)};
  return tables;
}

FleetStep by_collectives(const ScalingCase& row, const Machine& machine,
                         const CollectiveCoefficients& collective) {
  const int base_micro = std::max(1, row.accumulate);
  FleetStep step{row.base_step_s, 0};
  // The step without collectives that becomes the measured one on base_gpus.
  for (int i = 0; row.base_gpus > 1 && i < 30; ++i) {
    step.alone_s *= row.base_step_s /
                    on_many(row, step.alone_s, base_micro, row.base_gpus, machine, collective);
  }
  const double share = row.strong ? static_cast<double>(row.base_gpus) / row.gpus : 1;
  step.fleet_s =
      on_many(row, step.alone_s * share, micro_batches_of(row), row.gpus, machine, collective);
  return step;
}

double scaled_step(const ScalingCase& row, const FleetStep& step, const FleetConstants& constants,
                   const CollectiveCoefficients& collective) {
  const double share = row.strong ? static_cast<double>(row.base_gpus) / row.gpus : 1;
  const double before =
      waits(row, step.alone_s, std::max(1, row.accumulate), row.base_gpus, constants, collective);
  return step.fleet_s - before * share +
         waits(row, step.alone_s * share, micro_batches_of(row), row.gpus, constants, collective);
}

}  // namespace stoker::accuracy
