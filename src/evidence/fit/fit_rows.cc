#include "evidence/fit/fit_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/csv.h"
#include "base/setting.h"
#include "base/text.h"
#include "device/calibration_data.h"
#include "lower/loop/lower.h"
#include "operators/measured_kind.h"
#include "timing/learned/measured_operator.h"

namespace stoker {
namespace {

constexpr double kLongestUs = 3.6e9;  ///< an hour
constexpr double kWidestSpread = 10;

/// Columns besides the sizes of operators.
const std::vector<std::string>& own_columns() {
  static const std::vector<std::string> kColumns{"kind",    "gpu",     "precision", "pass",
                                                 "time_us", "time_ms", "spread",    "warm",
                                                 "model",   "batch",   "layer"};
  return kColumns;
}

std::set<std::string> size_columns() {
  std::set<std::string> names;
  for (const MeasuredKind& kind : measured_kinds()) {
    for (const MeasuredSize& size : kind.sizes) names.emplace(size.name);
  }
  return names;
}

Result<std::optional<double>> cell(const CsvRow& row, std::string_view column,
                                   const std::string& where) {
  const std::string_view text = row[column];
  if (text.empty()) return std::optional<double>();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return fail(ErrorCode::kBadInput,
                std::string(column) + " = \"" + std::string(text) + "\" is no number", where);
  }
  return std::optional<double>(value);
}

class Reader {
 public:
  Reader(const std::string& name, const std::string& gpu, const GpuFinder& find_gpu,
         const StepLoader& load_step)
      : name_(name),
        gpu_(gpu),
        find_gpu_(find_gpu),
        load_step_(load_step),
        sizes_(size_columns()) {}

  Result<FitTable> run(const std::vector<CsvRow>& rows) {
    if (rows.empty()) return fail(ErrorCode::kBadInput, "has no rows", name_);
    TRY(check_columns(rows.front()));
    // Launches first: operators are checked against them.
    for (const bool launches : {true, false}) {
      for (const CsvRow& row : rows) {
        if ((row["kind"] == "launch") != launches) continue;
        TRY(read(row));
      }
    }
    if (table_.rows.empty())
      return fail(ErrorCode::kBadInput, "has no rows but those of kind launch", name_);
    return std::move(table_);
  }

 private:
  Status check_columns(const CsvRow& row) {
    std::vector<std::string> known = own_columns();
    known.insert(known.end(), sizes_.begin(), sizes_.end());
    for (const auto& [column, text] : row.cells) {
      if (std::ranges::find(known, column) != known.end()) continue;
      return fail(ErrorCode::kBadInput,
                  "has an unknown column \"" + column + "\"" + suggestion(column, known), name_);
    }
    if (!row.cells.contains("kind"))
      return fail(ErrorCode::kBadInput, "lacks the column \"kind\"; docs/guide/fit.md lists all",
                  name_);
    return {};
  }

  Status read(const CsvRow& row) {
    FitRow out;
    out.where = name_ + ":" + std::to_string(row.line);
    if (auto s = read_time(row, out); !s) return s;
    const std::string gpu = row["gpu"].empty() ? gpu_ : std::string(row["gpu"]);
    if (gpu.empty()) {
      return fail(ErrorCode::kBadInput,
                  "names no GPU; fill the column gpu or give " + mark(Setting::kGpu), out.where);
    }
    auto found = gpus_.find(gpu);
    if (found == gpus_.end()) {
      auto resolved = find_gpu_(gpu);
      if (!resolved) return fail(resolved.error().code, resolved.error().message, out.where);
      found = gpus_.emplace(gpu, std::move(*resolved)).first;
    }
    out.gpu = found->second;
    const std::string_view kind = row["kind"];
    if (kind == "launch") {
      table_.launch_floor_us[out.gpu.name] = out.time_us;
      return {};
    }
    const bool whole = kind == "step" || kind == "layer";
    if (auto s = whole ? read_step(row, kind == "layer", out) : read_operator(row, out); !s)
      return s;
    table_.rows.push_back(std::move(out));
    return {};
  }

  static Status read_time(const CsvRow& row, FitRow& out) {
    const auto us = cell(row, "time_us", out.where), ms = cell(row, "time_ms", out.where),
               spread = cell(row, "spread", out.where);
    for (const auto* value : {&us, &ms, &spread}) {
      if (!*value) return tl::unexpected(value->error());
    }
    if (us->has_value() == ms->has_value()) {
      return fail(ErrorCode::kBadInput, "needs a time: fill time_us or time_ms, not both",
                  out.where);
    }
    out.time_us = us->has_value() ? **us : 1e3 * **ms;
    out.spread = spread->value_or(0);
    if (!(out.time_us > 0) || out.time_us > kLongestUs)
      return fail(ErrorCode::kBadInput, "its time must be above 0 and up to an hour", out.where);
    if (out.spread < 0 || out.spread > kWidestSpread) {
      return fail(ErrorCode::kBadInput, "spread is the standard deviation over the mean: 0.02, say",
                  out.where);
    }
    return {};
  }

  Status read_operator(const CsvRow& row, FitRow& out) {
    MeasuredOperator measured;
    measured.kind = std::string(row["kind"]);
    measured.where = out.where;
    if (!row["precision"].empty()) measured.precision = std::string(row["precision"]);
    if (!row["pass"].empty()) measured.pass = std::string(row["pass"]);
    measured.warm = row["warm"] != "0";
    measured.time_us = out.time_us;
    measured.spread = out.spread;
    for (const std::string& name : sizes_) {
      const auto value = TRY(cell(row, name, out.where));
      // `batch` is also a column of steps; empty cells are sizes that the kind does not have.
      if (value) measured.sizes[name] = static_cast<std::int64_t>(*value);
    }
    auto kernel = TRY(kernel_of(measured, out.gpu));
    const auto floor = table_.launch_floor_us.find(out.gpu.name);
    const double launch = floor == table_.launch_floor_us.end() ? 0 : floor->second;
    if (auto s = check_physics(measured, kernel, out.gpu, Micros(launch)); !s) return s;
    out.group = measured.kind;
    out.subject = label_of(measured);
    out.kernels = {kernel};
    out.alone = true;
    return {};
  }

  Status read_step(const CsvRow& row, bool layer, FitRow& out) {
    const std::string model(row["model"]);
    if (model.empty())
      return fail(ErrorCode::kBadInput, "a step needs a model: a zoo name or a step file",
                  out.where);
    Job job;
    const auto batch = cell(row, "batch", out.where);
    if (!batch) return tl::unexpected(batch.error());
    if (!*batch || !(**batch >= 1 && **batch <= 1e9))
      return fail(ErrorCode::kBadInput, "needs a batch of at least 1", out.where);
    job.batch = static_cast<std::int64_t>(**batch);
    if (!row["precision"].empty()) {
      const auto precision = parse_precision(row["precision"]);
      if (!precision) return fail(ErrorCode::kBadInput, precision.error().message, out.where);
      job.precision = *precision;
    }
    const auto step = load_step_(model, job.precision);
    if (!step) return fail(step.error().code, step.error().text(), out.where);
    job.optimizer = captured_optimizer(**step);
    out.machine.device = out.gpu;
    auto program = lower(**step, job, out.machine);
    if (!program) return fail(program.error().code, program.error().text(), out.where);
    out.subject = model;
    out.group = layer ? "layers" : "steps";
    if (!layer) {
      out.program = std::make_shared<const Program>(std::move(*program));
      return {};
    }
    out.kernels = kernels_of(std::string(row["layer"]), row["pass"], **step, *program);
    if (!out.kernels.empty()) return {};
    return fail(ErrorCode::kBadInput,
                model + " has no kernels in a layer \"" + std::string(row["layer"]) + "\"",
                out.where);
  }

  /// All kernels of a module and those inside it, in one pass or in both.
  static std::vector<Kernel> kernels_of(const std::string& layer, std::string_view pass,
                                        const Step& step, const Program& program) {
    std::vector<Kernel> kernels;
    for (const Instruction& in : program.iteration) {
      if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst) continue;
      const Kernel& kernel = program.kernels[in.value];
      if (kernel.source == Kernel::kSynthesized || layer.empty()) continue;
      const std::string& module = step.module_names[index(step.operators[kernel.source].module)];
      if (module != layer && !module.starts_with(layer + ".")) continue;
      const bool backward = kernel.phase == StepPhase::kBackward;
      if ((pass == "forward" && backward) || (pass == "backward" && !backward)) continue;
      kernels.push_back(kernel);
    }
    return kernels;
  }

  const std::string& name_;
  const std::string& gpu_;
  const GpuFinder& find_gpu_;
  const StepLoader& load_step_;
  std::set<std::string> sizes_;
  std::map<std::string, Gpu> gpus_;
  FitTable table_;
};

}  // namespace

Result<FitTable> read_fit_rows(std::string_view text, const std::string& name,
                               const std::string& gpu, const GpuFinder& find_gpu,
                               const StepLoader& load_step) {
  const auto rows = TRY(parse_csv(text, name));
  return Reader(name, gpu, find_gpu, load_step).run(rows);
}

}  // namespace stoker
