#include "program/job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/setting.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::array<std::pair<std::string_view, Precision>, 6> kPrecisions{
    {{"fp32", Precision::kFp32},
     {"tf32", Precision::kTf32},
     {"amp-fp16", Precision::kAmpFp16},
     {"amp-bf16", Precision::kAmpBf16},
     {"bf16", Precision::kBf16},
     {"fp16", Precision::kFp16}}};

constexpr std::array<std::pair<std::string_view, OptimizerKind>, 13> kOptimizers{
    {{"sgd", OptimizerKind::kSgd},
     {"adam", OptimizerKind::kAdam},
     {"adamw", OptimizerKind::kAdamW},
     {"rmsprop", OptimizerKind::kRmsprop},
     {"adagrad", OptimizerKind::kAdagrad},
     {"adadelta", OptimizerKind::kAdadelta},
     {"adamax", OptimizerKind::kAdamax},
     {"nadam", OptimizerKind::kNAdam},
     {"radam", OptimizerKind::kRAdam},
     {"adafactor", OptimizerKind::kAdafactor},
     {"lion", OptimizerKind::kLion},
     {"lbfgs", OptimizerKind::kLbfgs},
     {"none", OptimizerKind::kNone}}};

constexpr std::array<std::pair<std::string_view, OptimizerLoop>, 3> kLoops{
    {{"foreach", OptimizerLoop::kForeach},
     {"fused", OptimizerLoop::kFused},
     {"for-loop", OptimizerLoop::kForLoop}}};

/// The first row of a kind is its name, the others are what people also call it.
constexpr std::array<std::pair<std::string_view, Parallel>, 7> kParallels{
    {{"ddp", Parallel::kDdp},
     {"dp", Parallel::kDataParallel},
     {"fsdp-zero2", Parallel::kFsdpZero2},
     {"fsdp-zero3", Parallel::kFsdpZero3},
     {"fsdp", Parallel::kFsdpZero3},
     {"zero2", Parallel::kFsdpZero2},
     {"zero3", Parallel::kFsdpZero3}}};

constexpr std::array<std::pair<std::string_view, FsdpPrecision>, 5> kFsdpPrecisions{
    {{"none", FsdpPrecision::kNone},
     {"reduce-fp32", FsdpPrecision::kReduceFp32},
     {"reduce-half", FsdpPrecision::kReduceHalf},
     {"default", FsdpPrecision::kReduceFp32},
     {"pure", FsdpPrecision::kReduceHalf}}};

constexpr std::array<std::pair<std::string_view, LossKernel>, 2> kLossKernels{
    {{"captured", LossKernel::kCaptured}, {"fused", LossKernel::kFused}}};

template <class Value, std::size_t N>
std::string_view name_in(const std::array<std::pair<std::string_view, Value>, N>& table,
                         Value value) {
  const auto it = std::find_if(table.begin(), table.end(),
                               [&](const auto& row) { return row.second == value; });
  return it == table.end() ? std::string_view{} : it->first;
}

template <class Value, std::size_t N>
Result<Value> value_in(const std::array<std::pair<std::string_view, Value>, N>& table,
                       std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  for (const auto& [key, value] : table) {
    if (simplified(key) == simplified(name)) return value;
    names.emplace_back(key);
  }
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  return fail(ErrorCode::kUsage, "unknown " + std::string(what) + " \"" + std::string(name) + "\"" +
                                     suggestion(name, names) + " (known: " + all + ")");
}

constexpr int kQuantisedBits = 8, kFullBits = 32;
/// Pairs of vectors that LBFGS is taken to keep at most, whatever a step file says.
constexpr double kMostHistory = 10'000;

/// "adamw" of "pagedadamw8bit", "adamwbnb8bit"; empty where the name does not end so.
std::string without_bits(std::string name) {
  constexpr std::string_view kBits = "8bit", kLibrary = "bnb", kPaged = "paged";
  if (!name.ends_with(kBits)) return {};
  name.resize(name.size() - kBits.size());
  if (name.ends_with(kLibrary)) name.resize(name.size() - kLibrary.size());
  return name.starts_with(kPaged) ? name.substr(kPaged.size()) : name;
}

}  // namespace

std::string_view name_of(Precision precision) { return name_in(kPrecisions, precision); }
std::string_view name_of(OptimizerKind kind) { return name_in(kOptimizers, kind); }
std::string name_of(const OptimizerSettings& settings) {
  std::string name(name_of(settings.kind));
  return settings.state_bits == kQuantisedBits ? name + "8bit" : name;
}
std::string_view name_of(OptimizerLoop loop) { return name_in(kLoops, loop); }
std::string_view name_of(Parallel parallel) { return name_in(kParallels, parallel); }
std::string_view name_of(FsdpPrecision p) { return name_in(kFsdpPrecisions, p); }
std::string_view name_of(LossKernel loss) { return name_in(kLossKernels, loss); }

Result<Precision> parse_precision(std::string_view name) {
  return value_in(kPrecisions, name, "precision");
}
bool has_8bit_states(OptimizerKind kind) {
  return kind != OptimizerKind::kAdafactor && kind != OptimizerKind::kLbfgs &&
         kind != OptimizerKind::kNone;
}
int state_bits_named(std::string_view name) {
  return without_bits(simplified(name)).empty() ? kFullBits : kQuantisedBits;
}

Result<OptimizerKind> parse_optimizer(std::string_view name) {
  if (const std::string plain = without_bits(simplified(name)); !plain.empty()) {
    const auto kind = value_in(kOptimizers, plain, "optimizer");
    if (kind && has_8bit_states(*kind)) return kind;
  }
  return value_in(kOptimizers, name, "optimizer");
}
Result<OptimizerLoop> parse_optimizer_loop(std::string_view name) {
  return value_in(kLoops, name, "optimizer loop");
}

Result<Parallel> parse_parallel(std::string_view name) {
  return value_in(kParallels, name, "kind of parallelism");
}
Result<FsdpPrecision> parse_fsdp_precision(std::string_view name) {
  return value_in(kFsdpPrecisions, name, "mixed precision of FSDP");
}
Result<LossKernel> parse_loss_kernel(std::string_view name) {
  return value_in(kLossKernels, name, "kind of loss");
}

OptimizerLoop default_loop(OptimizerKind kind) {
  return kind == OptimizerKind::kAdafactor ? OptimizerLoop::kForLoop : OptimizerLoop::kForeach;
}

std::string_view capture_precision(Precision precision) {
  return precision == Precision::kTf32 ? "fp32" : name_of(precision);
}

OptimizerSettings captured_optimizer(const Step& step, const CapturedOptimizer::Group& group) {
  OptimizerSettings settings;
  const auto& numbers = group.numbers;
  const auto number = [&](const char* key, double otherwise) {
    const auto it = numbers.find(key);
    return it == numbers.end() ? otherwise : it->second;
  };
  settings.weight_decay = number("weight_decay", 0);
  const std::string& name = parse_optimizer(group.name) ? group.name : step.optimizer.name;
  const auto kind = parse_optimizer(name);
  if (!kind) return settings;
  settings.kind = *kind;
  settings.state_bits = state_bits_named(name);
  settings.momentum = number("momentum", 0);
  settings.nesterov = number("nesterov", 0) != 0;
  settings.centered = number("centered", 0) != 0;
  settings.amsgrad = number("amsgrad", 0) != 0;
  settings.decoupled = number("decoupled_weight_decay", 0) != 0;
  settings.history =
      static_cast<int>(std::clamp(number("history_size", settings.history), 1.0, kMostHistory));
  settings.loop = default_loop(*kind);
  settings.loop_asked = numbers.contains("fused") || numbers.contains("foreach");
  if (number("fused", 0) != 0) settings.loop = OptimizerLoop::kFused;
  else if (number("foreach", 1) == 0) settings.loop = OptimizerLoop::kForLoop;
  else if (number("foreach", 0) != 0) settings.loop = OptimizerLoop::kForeach;
  return settings;
}

OptimizerSettings captured_optimizer(const Step& step) {
  const auto kind = parse_optimizer(step.optimizer.name);
  if (step.optimizer.name.empty() || !kind) return {};
  if (step.optimizer.groups.empty()) {
    return OptimizerSettings{.kind = *kind, .state_bits = state_bits_named(step.optimizer.name)};
  }
  OptimizerSettings settings = captured_optimizer(step, step.optimizer.groups.front());
  for (const CapturedOptimizer::Group& group : step.optimizer.groups) {
    const double decay = captured_optimizer(step, group).weight_decay;
    settings.weight_decay = std::max(settings.weight_decay, decay);
  }
  return settings;
}

namespace {

Status at_least(const char* what, std::int64_t value, std::int64_t least) {
  if (value >= least) return {};
  return fail(ErrorCode::kBadInput, std::string(what) + " must be at least " +
                                        std::to_string(least) + ", not " + std::to_string(value));
}

Status check_gpus(const Job& job) {
  constexpr int kMaxGpus = 4096;  // beyond this the all-reduce model has no ground at all
  if (job.nodes >= 1 && job.gpus % job.nodes != 0) {
    const std::string nodes = std::to_string(job.nodes);
    return fail(ErrorCode::kBadInput,
                std::to_string(job.gpus) + (job.gpus == 1 ? " GPU" : " GPUs") +
                    " cannot be spread evenly over " + nodes + " nodes; give " +
                    mark(Setting::kGpus) + " a multiple of " + nodes);
  }
  if (job.gpus > kMaxGpus) return fail(ErrorCode::kBadInput, "gpus must be at most 4,096");
  if (job.parallel == Parallel::kDataParallel && job.nodes > 1) {
    return fail(ErrorCode::kBadInput,
                "nn.DataParallel (dp) is one process on one machine, not on " +
                    std::to_string(job.nodes) + " nodes; use ddp or fsdp");
  }
  return {};
}

/// What belongs to fully_shard alone.
Status check_sharding(const Job& job) {
  const bool fsdp = is_fsdp(job.parallel);
  if (job.fsdp_precision != FsdpPrecision::kNone) {
    if (!fsdp)
      return fail(ErrorCode::kBadInput,
                  "FSDP's mixed precision needs FSDP, not " + std::string(name_of(job.parallel)));
    if (job.precision == Precision::kFp32 || job.precision == Precision::kTf32)
      return fail(ErrorCode::kBadInput,
                  "FSDP's mixed precision computes in half precision, not in " +
                      std::string(name_of(job.precision)));
  }
  if (job.fsdp_group == 0) return {};
  if (!fsdp)
    return fail(ErrorCode::kBadInput,
                "hybrid sharding needs FSDP, not " + std::string(name_of(job.parallel)));
  if (job.fsdp_group < 2 || job.gpus % job.fsdp_group != 0)
    return fail(ErrorCode::kBadInput,
                std::to_string(job.gpus) + " GPUs cannot be parted into groups of " +
                    std::to_string(job.fsdp_group) + " that share one copy of the model");
  return {};
}

/// The passes beside the ordinary iteration.
Status check_passes(const Job& job) {
  if (job.validation_batch) {
    if (auto s = at_least("validation_batch", *job.validation_batch, 1); !s) return s;
  }
  if (auto s = at_least("last_batch", job.last_batch, 0); !s) return s;
  if (job.last_batch >= job.batch) {
    return fail(ErrorCode::kBadInput, "last_batch is what is left of an epoch after batches of " +
                                          std::to_string(job.batch) + ": it must be smaller, not " +
                                          std::to_string(job.last_batch) +
                                          " (0: nothing is left, or it is dropped)");
  }
  return {};
}

}  // namespace

Status check_job(const Job& job) {
  constexpr int kMaxAccumulate = 4096;
  for (const auto& status :
       {at_least("batch", job.batch, 1), at_least("gpus", job.gpus, 1),
        at_least("nodes", job.nodes, 1), at_least("accumulate", job.accumulate, 1), check_gpus(job),
        check_sharding(job), check_passes(job)}) {
    if (!status) return status;
  }
  if (job.accumulate > kMaxAccumulate)
    return fail(ErrorCode::kBadInput, "accumulate must be at most 4,096");
  return {};
}

}  // namespace stoker
