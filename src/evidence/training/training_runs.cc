#include "evidence/training/training_runs.h"

#include <algorithm>

#include "base/files.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr const char* kRunsCure = "measure again with `stoker validate MODEL`";
constexpr Bytes kLargestRunsFile{64LL << 20};
constexpr std::size_t kMostRuns = 10'000, kMostRepetitions = 1'000;
constexpr json::Format kRunsFormat{"stoker-training-runs", 1, "format"};
constexpr double kMostBatch = 1 << 24, kMostThreads = 4096;
/// A step below that is no training step: a nanosecond's slip of the unit.
constexpr double kLeastStepMs = 1e-4;

Nanos millis(double value) { return kMillisecond * value; }

MeasuredPhases read_phases(json::Fields& fields, const Json& json, const std::string& path) {
  MeasuredPhases phases;
  const Json* found = json.find("phases");
  if (found == nullptr || found->is_null()) return phases;
  const Json& given = fields.object(json, "phases", path);
  const std::string inner = path + "phases.";
  const auto phase = [&](const char* key) {
    return fields.maybe(given, key, inner, 0, json::kMaxMs);
  };
  const auto sum = [&](const char* first, const char* second) -> std::optional<Nanos> {
    const auto a = phase(first), b = phase(second);
    if (!a && !b) return std::nullopt;
    return millis(a.value_or(0) + b.value_or(0));
  };
  if (const auto forward = phase("forward_ms"))
    phases.forward = millis(*forward + phase("loss_ms").value_or(0));
  if (const auto backward = phase("backward_ms")) phases.backward = millis(*backward);
  if (const auto optimizer = phase("optimizer_ms")) phases.optimizer = millis(*optimizer);
  phases.input = sum("data_ms", "h2d_ms");
  return phases;
}

TrainingRepetition read_repetition(json::Fields& fields, const Json& json,
                                   const std::string& path) {
  TrainingRepetition repetition;
  repetition.step = millis(fields.number(json, "step_ms", path, kLeastStepMs, json::kMaxMs));
  if (!fields.good()) return repetition;
  repetition.phases = read_phases(fields, json, path);
  MeasuredPeaks& peaks = repetition.peaks;
  peaks.resident = fields.bytes(json, "resident_peak_bytes", path);
  peaks.resident_before = fields.bytes(json, "resident_before_bytes", path);
  peaks.allocated = fields.bytes(json, "allocated_peak_bytes", path);
  peaks.reserved = fields.bytes(json, "reserved_peak_bytes", path);
  peaks.device = fields.bytes(json, "device_peak_bytes", path);
  repetition.good = fields.flag(json, "good", path, true);
  repetition.why = fields.maybe_text(json, "why", path);
  return repetition;
}

RunStatus status_of(json::Fields& fields, const Json& json, const std::string& path) {
  const std::string word = fields.text(json, "status", path);
  if (word == "ok") return RunStatus::kOk;
  if (word == "oom") return RunStatus::kOutOfMemory;
  if (word != "failed") fields.refuse(path + "status", "is none of ok, oom, failed");
  return RunStatus::kFailed;
}

void read_optimizer(json::Fields& fields, const Json& json, const std::string& path,
                    MeasuredRun& run) {
  const Json* found = json.find("optimizer");
  if (found == nullptr || found->is_null()) return;
  if (found->is_string()) {
    run.optimizer = found->as_string();
    return;
  }
  const Json& given = fields.object(json, "optimizer", path);
  const std::string inner = path + "optimizer.";
  run.optimizer = fields.maybe_text(given, "name", inner);
  run.momentum = fields.maybe(given, "momentum", inner, 0, 1);
  run.weight_decay = fields.maybe(given, "weight_decay", inner, 0, 1);
}

MeasuredRun read_run(json::Fields& fields, const Json& json, const std::string& path) {
  MeasuredRun run;
  run.model = fields.text(json, "model", path);
  run.batch = static_cast<std::int64_t>(fields.number(json, "batch", path, 1, kMostBatch));
  run.threads = static_cast<int>(fields.otherwise(json, "threads", path, 0, kMostThreads, 0));
  run.status = status_of(fields, json, path);
  if (!fields.good()) return run;
  run.name = fields.maybe_text(json, "name", path);
  if (run.name.empty()) run.name = run.model;
  const std::string precision = fields.maybe_text(json, "precision", path);
  if (!precision.empty()) run.precision = precision;
  if (const Json* compile = json.find("compile"); compile != nullptr && compile->is_bool())
    run.compile = compile->as_bool();
  run.note = fields.maybe_text(json, "note", path);
  read_optimizer(fields, json, path, run);
  if (const Json* dimensions = json.find("dimensions");
      dimensions != nullptr && dimensions->is_object()) {
    for (const auto& [name, value] : dimensions->items())
      run.dimensions[name] = static_cast<std::int64_t>(
          fields.checked(value, path + "dimensions." + name, 0, json::kMaxCount));
  }
  const Json& repetitions = fields.list(json, "repetitions", path, kMostRepetitions);
  for (std::size_t i = 0; fields.good() && i < repetitions.size(); ++i) {
    run.repetitions.push_back(
        read_repetition(fields, repetitions[i], json::indexed(path, "repetitions", i)));
  }
  if (fields.good() && run.status == RunStatus::kOk && run.repetitions.empty())
    fields.refuse(path + "repetitions", "is empty, though the run is said to be ok");
  return run;
}

std::optional<Bytes> middle(std::vector<Bytes> values) {
  if (values.empty()) return std::nullopt;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

template <class Member>
std::optional<Bytes> middle_of(const std::vector<const TrainingRepetition*>& taken, Member member) {
  std::vector<Bytes> values;
  for (const TrainingRepetition* r : taken) {
    if (r->peaks.*member) values.push_back(*(r->peaks.*member));
  }
  return middle(std::move(values));
}

/// By the rule of the measuring: enough good repetitions, the two fastest of which agree.
void settle(const MeasuredRun& run, const std::vector<const TrainingRepetition*>& by_step,
            TrainingFact& fact) {
  if (fact.good == 0) return;
  if (fact.good < run.needed) {
    fact.disturbed_by = std::to_string(fact.good) + " of " + std::to_string(run.needed) +
                        " undisturbed repetitions";
  } else if (fact.good > 1 && by_step[1]->step / by_step[0]->step - 1 > run.agreement) {
    fact.disturbed_by = "its repetitions do not agree";
  } else {
    fact.settled = true;
  }
}

}  // namespace

std::string MeasuredRun::label() const {
  std::string text = name + ", batch " + std::to_string(batch);
  if (threads > 0) text += ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  return text + ", " + precision + (compile ? ", compiled" : "");
}

std::optional<TrainingFact> fact_of(const MeasuredRun& run) {
  std::vector<const TrainingRepetition*> taken;
  for (const TrainingRepetition& r : run.repetitions) {
    if (r.good) taken.push_back(&r);
  }
  TrainingFact fact;
  fact.good = taken.size();
  if (taken.empty()) {
    if (run.repetitions.empty()) return std::nullopt;
    for (const TrainingRepetition& r : run.repetitions) taken.push_back(&r);
    fact.disturbed_by = taken.front()->why.empty() ? "disturbed" : taken.front()->why;
  }
  std::ranges::stable_sort(taken, {}, [](const auto* r) { return r->step; });
  const TrainingRepetition& best = *taken.front();
  const TrainingRepetition& slowest = *taken.back();
  fact.step = best.step;
  fact.phases = best.phases;
  fact.spread = slowest.step / best.step - 1;
  settle(run, taken, fact);
  fact.peaks.resident = middle_of(taken, &MeasuredPeaks::resident);
  fact.peaks.resident_before = middle_of(taken, &MeasuredPeaks::resident_before);
  fact.peaks.allocated = middle_of(taken, &MeasuredPeaks::allocated);
  fact.peaks.reserved = middle_of(taken, &MeasuredPeaks::reserved);
  fact.peaks.device = middle_of(taken, &MeasuredPeaks::device);
  return fact;
}

Result<TrainingRuns> parse_training_runs(std::string_view text, const std::string& where) {
  const auto root = TRY(json::parse_document(text, where, {"a rows file", kRunsCure}));
  json::Fields fields(where, kRunsCure);
  TRY(fields.check_format(root, kRunsFormat));
  TrainingRuns rows;
  for (const auto& [key, value] : fields.object(root, "provenance", "").items()) {
    if (value.is_string()) rows.provenance[key] = value.as_string();
  }
  rows.device = read_measured_device(fields, root);
  rows.rule = fields.maybe_text(root, "rule", "");
  rows.complete = fields.flag(root, "complete", "", false);
  const Json& runs = fields.list(root, "runs", "", kMostRuns);
  const auto needed = static_cast<std::size_t>(
      fields.otherwise(root, "needed", "", 1, static_cast<double>(kMostRepetitions), 1));
  const double agreement = fields.otherwise(root, "agreement", "", 0, 1, 1);
  for (std::size_t i = 0; fields.good() && i < runs.size(); ++i) {
    rows.runs.push_back(read_run(fields, runs[i], json::indexed("", "runs", i)));
    rows.runs.back().needed = needed;
    rows.runs.back().agreement = agreement;
  }
  if (!fields.good()) return tl::unexpected(fields.error());
  return rows;
}

Result<TrainingRuns> read_training_runs(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kLargestRunsFile));
  return parse_training_runs(text, path.string());
}

}  // namespace stoker
