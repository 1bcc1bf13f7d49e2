#include "forecast/time/layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/setting.h"
#include "base/text.h"
#include "lower/loop/lower.h"
#include "lower/loop/step_rewrites.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

using Kernels = std::vector<Kernel>;

/// The kernels of one layer in the step, by what they do.
struct LayerWork {
  ModuleId module{};
  Kernels forward, backward;
  double parameter_bytes = 0;
};

/// All layers, what the optimizer launches for all of them, and the times that a step of it takes.
struct Network {
  std::vector<LayerWork> layers;
  Kernels optimizer;
  Kernels inside;  ///< of all layers, in the order of the step
  double parameter_bytes = 0;
  bool trains = false;
};

bool is_leaf(const std::set<std::string>& names, const std::string& name) {
  if (name.empty()) return false;
  const auto next = names.lower_bound(name + ".");
  return next == names.end() || !next->starts_with(name + ".");
}

/// Bytes of the parameters that a module holds itself and that are trained, by module name.
std::map<std::string, double> parameter_bytes(const Step& step) {
  std::map<std::string, double> bytes;
  for (const Parameter& p : step.parameters) {
    if (!p.requires_grad || p.group < 0) continue;
    const std::size_t dot = p.name.rfind('.');
    double size = size_of(step.types[index(p.type)].dtype);
    for (const Polynomial& side : step.types[index(p.type)].shape)
      size *= static_cast<double>(side.evaluate({}).value_or(0));
    bytes[dot == std::string::npos ? "" : p.name.substr(0, dot)] += size;
  }
  return bytes;
}

Network network_of(const Step& step, const Program& program) {
  const std::set<std::string> names(step.module_names.begin(), step.module_names.end());
  const auto weights = parameter_bytes(step);
  std::map<ModuleId, std::size_t> position;
  Network network;
  for (const auto& [name, bytes] : weights) network.parameter_bytes += bytes;
  for (const Instruction& in : program.iteration) {
    if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
    const Kernel& kernel = program.kernels[in.value];
    network.trains = network.trains || kernel.phase == StepPhase::kBackward;
    if (kernel.phase == StepPhase::kOptimizer) network.optimizer.push_back(kernel);
    if (kernel.source >= step.operators.size()) continue;
    const ModuleId module = step.operators[kernel.source].module;
    const std::string& name = step.module_names[index(module)];
    if (!is_leaf(names, name)) continue;
    const auto [at, is_new] = position.emplace(module, network.layers.size());
    if (is_new) {
      const auto weight = weights.find(name);
      network.layers.push_back({module, {}, {}, weight == weights.end() ? 0 : weight->second});
    }
    LayerWork& layer = network.layers[at->second];
    (kernel.phase == StepPhase::kBackward ? layer.backward : layer.forward).push_back(kernel);
    network.inside.push_back(kernel);
  }
  return network;
}

/// `share` of a kernel that runs over many tensors alike.
Kernel part_of(const Kernel& whole, double share) {
  Kernel part = whole;
  const auto scaled = [&](auto count) {
    return static_cast<std::int64_t>(static_cast<double>(count) * share);
  };
  part.flops = Flops(whole.flops.count() * share);
  part.read = Bytes(scaled(whole.read.count()));
  part.written = Bytes(scaled(whole.written.count()));
  part.elements = scaled(whole.elements);
  part.launches = static_cast<std::uint16_t>(std::max(1.0, std::ceil(whole.launches * share)));
  return part;
}

Kernels update_of(const Network& network, const LayerWork& layer) {
  Kernels update;
  if (layer.parameter_bytes <= 0) return update;
  for (const Kernel& kernel : network.optimizer)
    update.push_back(part_of(kernel, layer.parameter_bytes / network.parameter_bytes));
  return update;
}

/// Mean squared error of the layer's output against a target, and its gradient, as PyTorch runs
/// them: an operator each way, and a gradient of one to start from.
Kernels loss_of(const LayerWork& layer) {
  constexpr double kOperationsForward = 3, kOperationsBackward = 2;
  if (layer.forward.empty() || layer.backward.empty()) return {};
  const Bytes output = layer.forward.back().written;
  const double elements = output / Bytes(size_of(layer.forward.back().dtype));
  Kernel forward;
  forward.kernel_class = KernelClass::kReduction;
  forward.phase = StepPhase::kLoss;
  forward.flops = Flops(kOperationsForward * elements);
  forward.read = output * std::int64_t{2};
  forward.elements = 1;
  Kernel backward;
  backward.kernel_class = KernelClass::kElementwise;
  backward.phase = StepPhase::kBackward;
  backward.flops = Flops(kOperationsBackward * elements);
  backward.read = output * std::int64_t{2};
  backward.written = output;
  backward.elements = static_cast<std::int64_t>(elements);
  Kernel start;
  start.kernel_class = KernelClass::kFill;
  start.phase = StepPhase::kBackward;
  start.written = Bytes(size_of(layer.forward.back().dtype));
  start.elements = 1;
  return {forward, start, backward};
}

bool is_weight_gradient(const Kernel& kernel) {
  if (const auto* c = std::get_if<ConvolutionShape>(&kernel.shape))
    return c->pass == Pass::kBackwardWeight;
  if (const auto* g = std::get_if<GemmShape>(&kernel.shape)) return g->transpose_a;
  return false;
}

bool is_product(const Kernel& kernel) {
  return std::holds_alternative<ConvolutionShape>(kernel.shape) ||
         std::holds_alternative<GemmShape>(kernel.shape);
}

/// The gradient towards the input of a layer that stands first in the network, where the step has
/// none. A benchmark computes it, since it does not know what stands before the layer.
Kernels missing_input_gradient(const LayerWork& layer) {
  const auto products = [](const Kernels& kernels) {
    return std::count_if(kernels.begin(), kernels.end(), is_product);
  };
  const auto weights =
      std::count_if(layer.backward.begin(), layer.backward.end(), is_weight_gradient);
  if (products(layer.forward) != 1 || weights != 1 || products(layer.backward) != weights)
    return {};
  Kernel kernel = *std::find_if(layer.forward.begin(), layer.forward.end(), is_product);
  kernel.phase = StepPhase::kBackward;
  std::swap(kernel.read, kernel.written);
  if (auto* c = std::get_if<ConvolutionShape>(&kernel.shape)) {
    c->pass = Pass::kBackwardInput;
  } else if (auto* g = std::get_if<GemmShape>(&kernel.shape)) {
    std::swap(g->n, g->k);
    g->transpose_b = !g->transpose_b;
  }
  return {kernel};
}

Kernels joined(std::initializer_list<const Kernels*> parts) {
  Kernels all;
  for (const Kernels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

Nanos sum_of(const StepTime& time, std::size_t first, std::size_t count) {
  Nanos sum;
  for (std::size_t i = first; i < first + count; ++i) sum += time.kernel_times[i];
  return sum;
}

/// Times steps of chosen kernels on the scenario's machine.
class Stopwatch {
 public:
  Stopwatch(const Machine& machine, Coefficients coefficients, CopyWay copy)
      : machine_(machine), coefficients_(std::move(coefficients)) {
    // What counts is the memory that a batch comes from; a layer alone is timed in line.
    options_.copy = is_pinned(copy) ? CopyWay::kBlocking : copy;
    options_.gpus = options_.nodes = 1;
  }

  /// One step that launches these, and waits for the device at its end if `waits`.
  [[nodiscard]] StepTime time(Kernels kernels, bool waits) const {
    Program program;
    program.kernels = std::move(kernels);
    for (std::uint32_t k = 0; k < program.kernels.size(); ++k)
      program.iteration.push_back({InstructionKind::kLaunch, When::kAlways, k});
    if (waits) program.iteration.push_back({InstructionKind::kSynchronize, When::kAlways, 0});
    return predict_step(program, machine_, coefficients_, options_);
  }

 private:
  const Machine& machine_;
  Coefficients coefficients_;
  StepTimeOptions options_;
};

LayerGroup timed(const Network& network, const LayerWork& layer, const Stopwatch& watch) {
  const Kernels loss = loss_of(layer), extra = missing_input_gradient(layer),
                update = update_of(network, layer);
  const StepTime time =
      watch.time(joined({&layer.forward, &loss, &layer.backward, &extra, &update}), true);
  LayerGroup group;
  group.modules = {layer.module};
  std::size_t at = 0;
  const auto take = [&](std::size_t count) { return sum_of(time, (at += count) - count, count); };
  group.forward = take(layer.forward.size());
  group.loss = take(loss.size());
  group.backward = take(layer.backward.size() + extra.size());
  group.update = take(update.size());
  group.alone = time.total;
  group.overhead = time.total - group.forward - group.loss - group.backward - group.update;
  return group;
}

bool alike(const LayerGroup& a, const LayerGroup& b) {
  const auto same = [](Nanos x, Nanos y) { return std::abs((x - y).count()) < 0.5; };
  return same(a.forward, b.forward) && same(a.loss, b.loss) && same(a.backward, b.backward) &&
         same(a.update, b.update) && same(a.alone, b.alone);
}

void add_group(LayerGroup group, LayerSum& out) {
  ++out.layers;
  out.sum += group.alone;
  const auto found = std::find_if(out.groups.begin(), out.groups.end(),
                                  [&](const LayerGroup& g) { return alike(g, group); });
  if (found == out.groups.end()) {
    out.groups.push_back(std::move(group));
  } else {
    found->modules.push_back(group.modules.front());
  }
}

/// Walks from the sum of the layers to the step, one difference at a time; each term is what one
/// difference changes, so that they add up to the whole.
void add_terms(const Network& network, const Stopwatch& watch, LayerSum& out) {
  Nanos without_benchmark;
  Kernels updates;
  for (const LayerWork& layer : network.layers) {
    const Kernels update = update_of(network, layer);
    without_benchmark += watch.time(joined({&layer.forward, &layer.backward, &update}), true).total;
    updates.insert(updates.end(), update.begin(), update.end());
  }
  const Nanos together = watch.time(joined({&network.inside, &updates}), true).total;
  const Kernels one_update = joined({&network.inside, &network.optimizer});
  const Nanos updated_once = watch.time(one_update, true).total;
  const Nanos ahead = watch.time(one_update, false).total;
  const std::array<Nanos, kLayerTerms + 1> stages{
      out.sum, without_benchmark, together, updated_once, ahead, out.step.total};
  for (std::size_t i = 0; i < kLayerTerms; ++i) out.terms[i] = stages[i] - stages[i + 1];
}

Status check(const Scenario& s) {
  if (s.job.gpus > 1 || s.job.nodes > 1)
    return fail(ErrorCode::kUsage,
                "is about one GPU; leave " + mark(Setting::kGpus) + " and " +
                    mark(Setting::kNodes) + " out",
                mark(Setting::kByLayer));
  if (s.job.accumulate > 1) {
    return fail(ErrorCode::kUsage,
                "is about steps of one batch; leave " + mark(Setting::kAccumulate) + " out",
                mark(Setting::kByLayer));
  }
  return {};
}

}  // namespace

std::string_view name_of(LayerTerm term) {
  constexpr std::array<std::string_view, kLayerTerms> kNames{
      "benchmark_only", "launch_and_wait", "update_by_layer", "host_ahead", "outside_of_layers"};
  return kNames[static_cast<std::size_t>(term)];
}

Result<LayerSum> layer_sum(const Scenario& s, const Knowledge& knowledge) {
  TRY(check(s));
  const auto program = TRY(lower(*s.step, s.job, s.machine));
  auto step_time = TRY(step_time_of(s, program, knowledge));
  auto coefficients = TRY(knowledge.timing.for_device(s.machine.device));
  const auto rewritten = TRY(rewritten_step(*s.step, s.job));
  const Network network = network_of(rewritten.has_value() ? *rewritten : *s.step, program);
  if (network.layers.empty()) {
    return fail(ErrorCode::kBadInput, "this step names no layers; capture it from an nn.Module",
                s.step->name);
  }
  const Stopwatch watch(s.machine, std::move(coefficients), s.job.copy);
  LayerSum out;
  out.step = std::move(step_time);
  for (const LayerWork& layer : network.layers) add_group(timed(network, layer, watch), out);
  add_terms(network, watch, out);
  return out;
}

std::string name_of(const LayerGroup& group, const Step& step) {
  std::vector<std::string> parts = split(step.module_names[index(group.modules.front())], '.');
  for (const ModuleId module : group.modules) {
    const auto other = split(step.module_names[index(module)], '.');
    if (other.size() != parts.size()) return step.module_names[index(group.modules.front())];
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] != other[i]) parts[i] = "*";
    }
  }
  std::string name;
  for (const std::string& part : parts) name += (name.empty() ? "" : ".") + part;
  return name;
}

}  // namespace stoker
