#include "evidence/training/observation.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "evidence/error_statistics.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr Bytes kLargestFile{512LL << 20};
constexpr const char* kCure = "record the loop again (docs/guide/observing.md)";
constexpr json::Format kFormat{"stoker-observation", 1, "format"};
constexpr std::size_t kFewSteps = 50, kWarmUp = 10;
constexpr double kWarmUpShare = 0.2;
constexpr int kMaxDepth = 8;

/// One line; null when it is none of JSON's or nests like an attack.
Json line_of(std::string_view text) {
  auto json = json::parse_document(text, {}, {"a line of an observation", {}, kMaxDepth});
  return json ? std::move(*json) : Json();
}

/// Values of the columns of interest in the steps that count.
class Steps {
 public:
  explicit Steps(const Json& columns) {
    for (const Json& name : columns) {
      names_.push_back(name.is_string() ? name.as_string() : std::string());
    }
  }

  /// False: the row is damaged.
  [[nodiscard]] bool add(const Json& row) {
    if (row.size() != names_.size()) return false;
    Row found;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Json& value = row[i];
      const std::string& name = names_[i];
      if (name == "kind") {
        if (!value.is_string()) return false;
        found.train = value.as_string() == "train";
      } else if (name == "end") {
        if (!value.is_string()) return false;
        const std::string end = value.as_string();
        found.ended = end == "ok" || end == "skipped";
      } else if (value.is_number()) {
        found.numbers[name] = value.as_double();
      }
    }
    if (!found.numbers.contains("gap_ns") || !found.numbers.contains("total_ns")) return false;
    if (found.ended) {
      for (const auto& [name, number] : found.numbers)
        if (!(number >= 0 && number <= json::kMaxCount)) return false;
    }
    rows_.push_back(std::move(found));
    return true;
  }

  /// Leaves the steps that count; how many were left out besides the warm-up.
  std::size_t settle() {
    std::erase_if(rows_, [](const Row& r) { return !r.train; });
    const std::size_t warm_up =
        rows_.size() < kFewSteps
            ? static_cast<std::size_t>(std::ceil(kWarmUpShare * static_cast<double>(rows_.size())))
            : kWarmUp;
    rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(warm_up));
    return std::erase_if(rows_, [](const Row& r) { return !r.ended; });
  }

  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  /// The median of the sum of columns over the rows that have all of them; nullopt: none has.
  [[nodiscard]] std::optional<double> median(std::initializer_list<std::string> columns) const {
    std::vector<double> values;
    for (const Row& row : rows_) {
      double sum = 0;
      bool all = true;
      for (const std::string& column : columns) {
        const auto found = row.numbers.find(column);
        if (found == row.numbers.end()) all = false;
        else sum += found->second;
      }
      if (all) values.push_back(sum);
    }
    if (values.empty()) return std::nullopt;
    return median_of(std::move(values));
  }

 private:
  struct Row {
    bool train = false, ended = false;
    std::map<std::string, double> numbers;
  };
  std::vector<std::string> names_;
  std::vector<Row> rows_;
};

std::optional<Nanos> nanos(std::optional<double> value) {
  if (!value) return std::nullopt;
  return Nanos(*value);
}

MeasuredPhases phases_of(const Steps& steps, const std::string& clock) {
  MeasuredPhases phases;
  const auto backward = steps.median({clock + "backward_ns"});
  // Without a model attached the loop marks nothing, and every phase is zero.
  if (!backward || *backward <= 0) return phases;
  phases.forward = nanos(steps.median({clock + "forward_ns", clock + "loss_ns"}));
  phases.backward = nanos(backward);
  phases.optimizer = nanos(steps.median({clock + "optimizer_ns"}));
  phases.input = nanos(steps.median({clock + "wait_ns", clock + "h2d_ns"}));
  return phases;
}

void take_peak(const Json& memory, const char* key, std::optional<Bytes>& peak) {
  const Json* found = memory.find(key);
  if (found == nullptr || !found->is_number()) return;
  const double value = found->as_double();
  if (!(value >= 0 && value <= json::kMaxCount)) return;
  const Bytes bytes(static_cast<std::int64_t>(value));
  if (!peak || *peak < bytes) peak = bytes;
}

MeasuredDevice device_of(const Json& provenance) {
  const auto text = [&](const char* key) {
    const Json* found = provenance.find(key);
    return found != nullptr && found->is_string() ? found->as_string() : std::string();
  };
  MeasuredDevice device;
  device.cpu = text("device") == "cpu";
  device.name = device.cpu ? text("cpu_model") : text("device_name");
  if (const Json* cores = provenance.find("cores");
      device.cpu && cores != nullptr && cores->is_number()) {
    const double value = cores->as_double();
    if (value >= 1 && value <= 65536) device.cores = static_cast<int>(value);
  }
  return device;
}

/// Batch, precision and threads as the header has them; the batch else as the steps saw it.
Status fill_run(json::Fields& fields, const Json& header, const Steps& steps,
                const std::string& where, MeasuredRun& run) {
  const Json& provenance = fields.object(header, "provenance", "");
  run.threads =
      static_cast<int>(fields.otherwise(provenance, "threads", "provenance.", 0, 4096, 0));
  const std::string precision = fields.maybe_text(header, "precision", "");
  if (!precision.empty()) run.precision = precision;
  const double seen = steps.median({"samples"}).value_or(0);
  const double batch = fields.otherwise(header, "batch", "", 1, 1 << 24, seen);
  if (!fields.good()) return tl::unexpected(fields.error());
  run.batch = static_cast<std::int64_t>(batch);
  if (run.batch >= 1) return {};
  return fail(ErrorCode::kBadInput, "does not tell its batch; give the Observer batch=N", where);
}

}  // namespace

bool names_an_observation(std::string_view file) { return file.ends_with(".jsonl"); }

Result<Observation> parse_observation(std::string_view text, const std::string& where) {
  const auto next_line = [&text] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  const Json header = line_of(next_line());
  json::Fields fields(where, kCure);
  TRY(fields.check_format(header, kFormat));
  Observation observation;
  Steps steps(fields.list(header, "columns", "", 1000));
  if (!fields.good()) return tl::unexpected(fields.error());
  TrainingRepetition repetition;
  std::int64_t damaged = 0;
  while (!text.empty()) {
    const Json line = line_of(next_line());
    if (line.is_array()) {
      damaged += steps.add(line) ? 0 : 1;
    } else if (line.is_object()) {
      const Json* memory = line.find("memory");
      if (memory == nullptr || !memory->is_object()) continue;
      take_peak(*memory, "rss_peak", repetition.peaks.resident);
      take_peak(*memory, "allocated_peak", repetition.peaks.allocated);
      take_peak(*memory, "reserved_peak", repetition.peaks.reserved);
    } else if (!text.empty()) {
      ++damaged;  // a last line that is cut off is what a crash leaves
    }
  }
  if (damaged > 0)
    observation.data.add("damaged_lines", Severity::kWarning,
                         "lines of the observation are damaged and were left out", damaged);
  const auto left_out = static_cast<std::int64_t>(steps.settle());
  if (left_out > 0)
    observation.data.add("steps_left_out", Severity::kNote,
                         "steps that an exception or a clock set back ended were left out",
                         left_out);
  observation.steps = steps.size();
  const std::string clock = steps.median({"device_total_ns"}) ? "device_" : "";
  const auto whole = steps.median({clock + "gap_ns", clock + "total_ns"});
  const double step = whole.value_or(0) - steps.median({clock + "wait_ns"}).value_or(0);
  if (step <= 0)
    return fail(ErrorCode::kBadInput,
                "holds no training step beyond the warm-up; " + std::string(kCure), where);
  repetition.step = Nanos(step);
  repetition.phases = phases_of(steps, clock);
  MeasuredRun run;
  TRY(fill_run(fields, header, steps, where, run));
  run.repetitions.push_back(std::move(repetition));
  observation.runs.runs.push_back(std::move(run));
  const Json& provenance = fields.object(header, "provenance", "");
  observation.runs.device = device_of(provenance);
  for (const auto& [key, value] : provenance.items()) {
    if (value.is_string()) observation.runs.provenance[key] = value.as_string();
  }
  if (const Json* model = header.find("model"); model != nullptr && model->is_object())
    observation.model_class = fields.maybe_text(*model, "class", "model.");
  observation.runs.rule = "an observation: medians over " + std::to_string(observation.steps) +
                          " steps, waiting for data left out";
  return observation;
}

Result<Observation> read_observation(const std::filesystem::path& path) {
  const auto text = TRY(read_file(path, kLargestFile));
  return parse_observation(text, path.string());
}

}  // namespace stoker
