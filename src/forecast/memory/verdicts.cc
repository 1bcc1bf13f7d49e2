#include "forecast/memory/verdicts.h"

#include <algorithm>
#include <cmath>

#include "base/setting.h"
#include "base/text.h"
#include "forecast/memory_model.h"
#include "forecast/settings.h"
#include "lower/loop/lower.h"
#include "lower/optimizer/optimizer_recipes.h"

namespace stoker {
namespace {

/// The share of /dev/shm and DRAM that a job may fill: the rest belongs to others on the host.
constexpr double kShareOfSharedMemory = 0.9;
constexpr double kShareOfHostMemory = 0.9;

bool within(Bytes need, Bytes have, double share) {
  return have.count() <= 0 ||
         static_cast<double>(need.count()) <= share * static_cast<double>(have.count());
}

/// Whether it is the optimizer's temporaries that do not fit.
bool fits_fused(const Scenario& s, std::int64_t batch) {
  if (s.job.optimizer.loop == OptimizerLoop::kFused || !has_fused(s.job.optimizer.kind) ||
      s.step->mode != "train")
    return false;
  Scenario fused = s;
  set_batch(fused, batch);
  fused.job.optimizer.loop = OptimizerLoop::kFused;
  const auto program = lower(*fused.step, fused.job, fused.machine);
  return program && judge_memory(*program, fused.machine, fused.allocator).fits;
}

/// Whether the smallest batch would run, were it not for the memory fraction.
bool fraction_forbids(const Scenario& s, std::int64_t batch) {
  if (!s.allocator.memory_fraction) return false;
  Scenario smallest = s;
  set_batch(smallest, batch);
  const auto program = lower(*smallest.step, smallest.job, smallest.machine);
  AllocatorConfig free = s.allocator;
  free.memory_fraction.reset();
  return program && judge_memory(*program, smallest.machine, free).fits;
}

}  // namespace

std::string host_shortage(const Host& host, const LoaderForecast& loader) {
  if (!within(loader.shared_memory, host.shared_memory, kShareOfSharedMemory)) {
    const double needed = std::ceil(gibibytes(loader.shared_memory) / kShareOfSharedMemory);
    return "batches on their way need " + human_bytes(loader.shared_memory) + " of " +
           human_bytes(host.shared_memory) + " /dev/shm; enlarge it (docker run --shm-size=" +
           std::to_string(static_cast<std::int64_t>(std::max(1.0, needed))) +
           "g) or take fewer workers or a smaller batch";
  }
  const Bytes memory = loader.worker_memory + loader.pinned_memory + loader.shared_memory;
  if (!within(memory, host.memory, kShareOfHostMemory)) {
    return "the loader needs " + human_bytes(memory) + " of " + human_bytes(host.memory) +
           " host memory; take fewer workers or a smaller batch";
  }
  return {};
}

namespace {

/// Adapters leave the weights without gradients and states, which is most of what is missing; the
/// weights themselves have to fit.
std::string adapter_words(const Step& step, Bytes usable) {
  const bool text_model = std::any_of(step.dimensions.begin(), step.dimensions.end(),
                                      [](const Dimension& d) { return d.name == "seq_len"; });
  const bool all_trained = std::all_of(step.parameters.begin(), step.parameters.end(),
                                       [](const Parameter& p) { return p.requires_grad; });
  if (!text_model || !all_trained || step.mode != "train") return {};
  // NF4 has four bits an element and a scale for each block; tables of tokens stay as they are.
  constexpr double kQuantized = 0.6, kForTheRest = 0.8;
  double weights = 0, quantized = 0, table = 0, table_elements = 0;
  for (const Parameter& p : step.parameters) {
    double elements = 1;
    for (const Polynomial& side : step.types[index(p.type)].shape)
      elements *= static_cast<double>(side.evaluate({}).value_or(0));
    const double bytes = elements * size_of(step.types[index(p.type)].dtype);
    weights += bytes;
    quantized += kQuantized * elements;
    if (bytes > table) table = bytes, table_elements = elements;
  }
  quantized += table - kQuantized * table_elements;
  const double room = kForTheRest * static_cast<double>(usable.count());
  const std::string alone = ", or train adapters alone: ";
  if (weights < room) return alone + mark(Setting::kLora) + " r=16";
  return quantized < room ? alone + "--qlora" : std::string();
}

}  // namespace

std::string gpu_shortage(const Scenario& s, const BatchLimits& limits) {
  const std::int64_t smallest = std::max<std::int64_t>(1, s.step->dimensions[0].minimum);
  const DeviceFacts& gpu = s.machine.device.facts();
  const std::string batch = "batch " + std::to_string(smallest);
  const std::string where = gpu.name + " in " + std::string(name_of(s.job.precision));
  if (fraction_forbids(s, smallest)) {
    const double fraction = *s.allocator.memory_fraction;
    const Bytes allowed(
        static_cast<std::int64_t>(fraction * static_cast<double>(gpu.usable_memory.count())));
    return "not even " + batch + " fits on " + where + " within " + mark(Setting::kMemoryFraction) +
           ": " + human_bytes(limits.missing) + " short of " +
           human_bytes(allowed + limits.missing) + ", where it allows PyTorch " +
           human_bytes(allowed) + " of " + human_bytes(gpu.usable_memory) + "; raise " +
           mark(Setting::kMemoryFraction);
  }
  const std::string numbers =
      human_bytes(limits.missing) + " short of " + human_bytes(gpu.usable_memory + limits.missing);
  if (!limits.failing_pass.empty()) {
    return "the pass \"" + limits.failing_pass + "\" does not fit on " + where +
           ", not even with " + batch + " in training: " + numbers + "; take a smaller " +
           mark(Setting::kValidation) + ", or a GPU with more memory (`stoker gpus`)";
  }
  std::string text = "not even " + batch + " fits on " + where + ": " + numbers + "; " +
                     std::string(memory_model_of(s.machine.device).cure);
  for (std::size_t i = 1; i < s.step->dimensions.size(); ++i) {
    text += (i == 1 ? ", or a smaller " : " or ") + s.step->dimensions[i].name;
  }
  if (limits.missing > gpu.usable_memory) text += adapter_words(*s.step, gpu.usable_memory);
  if (fits_fused(s, smallest))
    text += ", or " + mark(Setting::kOptimizerLoop) + " fused, with which it fits";
  return text;
}

}  // namespace stoker
