#include "lower/job.h"

#include <algorithm>
#include <array>
#include <utility>

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

constexpr std::array<std::pair<std::string_view, OptimizerKind>, 8> kOptimizers{
    {{"sgd", OptimizerKind::kSgd},
     {"adam", OptimizerKind::kAdam},
     {"adamw", OptimizerKind::kAdamW},
     {"rmsprop", OptimizerKind::kRmsprop},
     {"adagrad", OptimizerKind::kAdagrad},
     {"adafactor", OptimizerKind::kAdafactor},
     {"lion", OptimizerKind::kLion},
     {"none", OptimizerKind::kNone}}};

constexpr std::array<std::pair<std::string_view, OptimizerLoop>, 3> kLoops{
    {{"foreach", OptimizerLoop::kForeach},
     {"fused", OptimizerLoop::kFused},
     {"for-loop", OptimizerLoop::kForLoop}}};

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

}  // namespace

std::string_view name_of(Precision precision) { return name_in(kPrecisions, precision); }
std::string_view name_of(OptimizerKind kind) { return name_in(kOptimizers, kind); }
std::string_view name_of(OptimizerLoop loop) { return name_in(kLoops, loop); }

Result<Precision> parse_precision(std::string_view name) {
  return value_in(kPrecisions, name, "precision");
}
Result<OptimizerKind> parse_optimizer(std::string_view name) {
  return value_in(kOptimizers, name, "optimizer");
}
Result<OptimizerLoop> parse_optimizer_loop(std::string_view name) {
  return value_in(kLoops, name, "optimizer loop");
}

OptimizerLoop default_loop(OptimizerKind kind) {
  return kind == OptimizerKind::kAdafactor ? OptimizerLoop::kForLoop : OptimizerLoop::kForeach;
}

std::string_view capture_precision(Precision precision) {
  return precision == Precision::kTf32 ? "fp32" : name_of(precision);
}

OptimizerSettings captured_optimizer(const Step& step) {
  OptimizerSettings settings;
  const auto kind = parse_optimizer(step.optimizer.name);
  if (step.optimizer.name.empty() || !kind) return settings;
  settings.kind = *kind;
  if (step.optimizer.groups.empty()) return settings;
  const auto& numbers = step.optimizer.groups.front().numbers;
  const auto number = [&](const char* key, double otherwise) {
    const auto it = numbers.find(key);
    return it == numbers.end() ? otherwise : it->second;
  };
  settings.momentum = number("momentum", 0);
  settings.nesterov = number("nesterov", 0) != 0;
  for (const auto& group : step.optimizer.groups) {
    const auto it = group.numbers.find("weight_decay");
    if (it != group.numbers.end())
      settings.weight_decay = std::max(settings.weight_decay, it->second);
  }
  settings.centered = number("centered", 0) != 0;
  settings.amsgrad = number("amsgrad", 0) != 0;
  settings.loop = default_loop(*kind);
  if (number("fused", 0) != 0) settings.loop = OptimizerLoop::kFused;
  else if (number("foreach", 1) == 0) settings.loop = OptimizerLoop::kForLoop;
  else if (number("foreach", 0) != 0) settings.loop = OptimizerLoop::kForeach;
  return settings;
}

Status check_job(const Job& job) {
  const auto at_least_one = [](const char* what, std::int64_t value) -> Status {
    if (value >= 1) return {};
    return fail(ErrorCode::kBadInput,
                std::string(what) + " must be at least 1, not " + std::to_string(value));
  };
  constexpr int kMaxGpus = 4096;  // beyond this the all-reduce model has no ground at all
  constexpr int kMaxAccumulate = 4096;
  for (const auto& status :
       {at_least_one("batch", job.batch), at_least_one("gpus", job.gpus),
        at_least_one("nodes", job.nodes), at_least_one("accumulate", job.accumulate)}) {
    if (!status) return status;
  }
  if (job.gpus % job.nodes != 0) {
    return fail(ErrorCode::kBadInput, std::to_string(job.gpus) +
                                          " GPUs cannot be spread evenly over " +
                                          std::to_string(job.nodes) + " nodes");
  }
  if (job.gpus > kMaxGpus) return fail(ErrorCode::kBadInput, "gpus must be at most 4,096");
  if (job.accumulate > kMaxAccumulate)
    return fail(ErrorCode::kBadInput, "accumulate must be at most 4,096");
  return {};
}

}  // namespace stoker
