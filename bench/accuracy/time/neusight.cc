// Forward or forward and backward of language models in FP32, with four tools' predictions of the
// same rows: one GPU, and four with the batch split between them.

#include <array>
#include <cmath>
#include <map>

#include "accuracy/common/bench.h"
#include "accuracy/time/calibrating_rows.h"
#include "accuracy/time/measures.h"
#include "base/files.h"
#include "base/text.h"
#include "json/value.h"
#include "lower/loop/lower.h"
#include "timing/step/predict_step.h"

namespace stoker::accuracy {
namespace {

constexpr Bytes kMaxTable{16 << 20};
constexpr std::string_view kModels = "models-neusight.csv";
constexpr std::array<std::string_view, 4> kTools{"neusight", "habitat", "li", "roofline"};
/// A row whose step the bench replays in full: a data-parallel one too.
constexpr std::string_view kDataParallel = "dp4";

/// Adds "name=5" of the list's remarks to a model's shape.
void add_remarks(std::string_view extra, json::Value& shape) {
  for (const std::string& part : split(std::string(extra), ',')) {
    const auto equals = part.find('=');
    if (equals == std::string::npos) continue;
    const auto start = part.find_first_not_of(' ');
    const double value = std::strtod(part.c_str() + equals + 1, nullptr);
    if (value > 0) shape[part.substr(start, equals - start)] = static_cast<std::int64_t>(value);
  }
}

/// The shape of a model by the table's own list of models; empty when the list lacks it.
std::string shape_of(const Bench& bench, std::string_view model) {
  const auto path = bench.data / kModels;
  const auto text = read_file(path, kMaxTable);
  if (!text) return {};
  const auto models = parse_csv(*text, path.string());
  if (!models) return {};
  for (const CsvRow& row : *models) {
    if (row["model"] != model) continue;
    json::Value shape{{"model_type", std::string(row["hf_model_type"])},
                      {"act", std::string(row["act"])}};
    for (const char* key : {"layers", "hidden", "heads", "ffn", "vocab", "max_pos"}) {
      const double value = number(row, key);
      if (std::isfinite(value)) shape[key] = static_cast<std::int64_t>(value);
    }
    add_remarks(row["extra"], shape);
    shape.sort_keys();  // the text names the capture in the cache
    return shape.dump();
  }
  return {};
}

CaptureRequest request_for(const Bench& bench, const CsvRow& row) {
  CaptureRequest request{"hf_models.py:forward_only", std::string(row["dtype"])};
  request.mode = row["mode"] == "train" ? "train" : "inference";
  const std::string shape = shape_of(bench, row["model"]);
  request.options["shape"] = shape.empty() ? "{}" : shape;
  request.options["attention"] = "\"eager\"";
  request.fixed["seq_len"] = static_cast<std::int64_t>(number(row, "seqlen"));
  return request;
}

/// Eager, and no flag that calls the measurement doubtful.
bool is_sound(const CsvRow& row) {
  return row["compiled"] == "0" && row["flag"].rfind("fw_", 0) != 0;
}
bool is_scored(const CsvRow& row) {
  return is_sound(row) && (row["parallel"].empty() || row["parallel"] == kDataParallel);
}

/// Leaves gradients as they are between steps.
void drop_gradient_fills(Program& program) {
  program.drop([&](const Instruction& in) {
    if (in.kind != InstructionKind::kLaunch) return false;
    const Kernel& kernel = program.kernels[in.value];
    return kernel.kernel_class == KernelClass::kFill && kernel.source == Kernel::kSynthesized;
  });
}

/// `operators`: of which some are measured on the row's GPU before it is forecast; null: none.
Result<StepTime> forecast_row(Bench& bench, const CsvRow& row, Unseen unseen,
                              const std::vector<TableOperator>* operators) {
  auto gpu = TRY(bench.gpus.find(row["gpu"]));
  if (shape_of(bench, row["model"]).empty())
    return fail(ErrorCode::kNotFound, "its shape is not in " + std::string(kModels));
  const auto step = TRY(bench.captures.get(request_for(bench, row)));
  if (operators != nullptr) {
    gpu.calibration = std::make_shared<const Calibration>(calibration_from(*operators, gpu.name));
  }
  Machine machine;
  machine.device = gpu;
  machine.gpu_count = static_cast<int>(number(row, "n_gpus"));
  Job job;
  job.gpus = machine.gpu_count;
  job.batch = static_cast<std::int64_t>(number(row, "batch")) / job.gpus;  // the table's is global
  job.optimizer.kind = OptimizerKind::kNone;
  // The table's operators have a time for adding to `.grad` (acc_ms): gradients were never cleared.
  job.zero_grad_fills = row["mode"] == "train";
  auto program = TRY(lower(*step, job, machine));
  drop_gradient_fills(program);
  const auto coefficients = TRY(bench.timing_for(unseen, gpu.name).for_device(gpu));
  return predict_step(program, machine, coefficients);
}

/// A part of a step that the table times.
struct Part {
  std::string_view name;    ///< "", "-forward"
  std::string_view column;  ///< "e2e", of "e2e_ms" and "neusight_e2e_ms"
  std::string_view what;
  double (*of)(const StepTime&);  ///< milliseconds
};

double elapsed(const StepTime& time, StepPhase phase) {
  return milliseconds(time.phase_elapsed[static_cast<std::size_t>(phase)]);
}
double whole(const StepTime& t) { return milliseconds(t.total); }
double forward(const StepTime& t) {
  return elapsed(t, StepPhase::kLoad) + elapsed(t, StepPhase::kForward) +
         elapsed(t, StepPhase::kLoss);
}
double backward(const StepTime& t) { return elapsed(t, StepPhase::kBackward); }

constexpr std::array kParts{Part{"", "e2e", "whole", whole},
                            Part{"-forward", "fw", "the forward alone", forward},
                            Part{"-backward", "bw", "the backward alone", backward}};

/// Which rows of the table a measure is over.
struct Subset {
  std::string_view name;
  std::string_view what;
  bool (*has)(const CsvRow&);
};

bool is_switch(const CsvRow& r) { return r["model"].rfind("switch", 0) == 0; }
/// The rows that its authors' own tables compare: one NVIDIA GPU, their prediction beside it.
bool is_compared(const CsvRow& r) {
  return r["parallel"].empty() && r["gpu"].rfind("MI", 0) != 0 && !r["neusight_e2e_ms"].empty();
}
bool is_compared_dense(const CsvRow& r) { return is_compared(r) && !is_switch(r); }
bool is_inference(const CsvRow& r) { return r["parallel"].empty() && r["mode"] == "inf"; }
bool is_training(const CsvRow& r) { return r["parallel"].empty() && r["mode"] == "train"; }
bool is_amd(const CsvRow& r) { return r["parallel"].empty() && r["gpu"].rfind("MI", 0) == 0; }
bool is_data_parallel(const CsvRow& r) { return r["parallel"] == kDataParallel; }

constexpr std::array kSubsets{
    Subset{"neusight", "one NVIDIA GPU, FP32, eager, with a prediction by NeuSight", is_compared},
    Subset{"neusight-without-switch", "the same without mixtures of experts", is_compared_dense},
    Subset{"neusight-inf", "forward of language models, FP32, eager, one GPU", is_inference},
    Subset{"neusight-train", "forward and backward, FP32, eager, one GPU", is_training},
    Subset{"neusight-amd", "one AMD GPU, FP32, eager", is_amd},
    Subset{"neusight-dp4", "training on four GPUs, data parallel, FP32", is_data_parallel}};

struct Scoring {
  Unseen unseen;
  bool calibrated;
  std::string_view suffix, what;
};

/// What ships, then what has not seen the shapes or the GPU, as far as such fits were given.
std::vector<Scoring> scorings(const Bench& bench) {
  std::vector<Scoring> all{{Unseen::kNothing, false, "", ""}};
  if (bench.folds.empty()) return all;
  all.push_back(
      {Unseen::kShape, false, "/unseen-shapes", "; no operator of the row's shape was fitted on"});
  all.push_back({Unseen::kGpu, false, "/gpu-left-out", "; no row of the GPU was fitted on"});
  all.push_back({Unseen::kGpu, true, "/gpu-left-out+30-operators",
                 "; no row of the GPU was fitted on, 30 operators of it calibrate"});
  return all;
}

std::string label_of(const CsvRow& row) {
  return std::string(row["model"]) + " " + std::string(row["mode"]) + " " +
         std::string(row["gpu"]) + " batch " + std::string(row["batch"]);
}

/// A row of the table beside its forecast, which serves several measures.
struct Forecasted {
  const CsvRow* row;
  Result<StepTime> time;
};

void add_rivals(const std::map<std::string_view, std::vector<Pair>>& by_tool, Measure& measure) {
  for (const auto& [tool, pairs] : by_tool) {
    const Score s = score(pairs);
    measure.shares.emplace_back(std::string(tool) + "_mape", s.mape);
    measure.shares.emplace_back(std::string(tool) + "_mdape", s.mdape);
    if (!measure.rival || s.mape < measure.rival->mape)
      measure.rival = Rival{std::string(tool), s.rows, s.mape, s.mdape, s.p90};
  }
}

Measure measure_of(const std::vector<Forecasted>& rows, const Subset& subset, const Part& part,
                   const Scoring& scoring) {
  Measure measure;
  measure.name =
      "time/" + std::string(subset.name) + std::string(part.name) + std::string(scoring.suffix);
  measure.what =
      std::string(subset.what) + "; " + std::string(part.what) + std::string(scoring.what);
  std::map<std::string_view, std::vector<Pair>> by_tool;
  for (const auto& [row, time] : rows) {
    if (!subset.has(*row)) continue;
    const double truth = number(*row, std::string(part.column) + "_ms");
    if (!(truth > 0)) continue;
    if (!time) {
      measure.unserved.push_back({label_of(*row), time.error().text()});
      continue;
    }
    measure.pairs.push_back(
        {std::string((*row)["model"]), label_of(*row), truth, part.of(*time), {}});
    if (part.name.empty()) measure.pairs.back().band = time->band;
    for (const std::string_view tool : kTools) {
      const double estimate =
          number(*row, std::string(tool) + "_" + std::string(part.column) + "_ms");
      if (std::isfinite(estimate)) by_tool[tool].push_back({"", "", truth, estimate, {}});
    }
  }
  measure.score = score(measure.pairs);
  add_rivals(by_tool, measure);
  return measure;
}

void refuse_parallel(const std::vector<const CsvRow*>& rows, Measure& measure) {
  for (const CsvRow* row : rows) {
    if (!is_sound(*row) || (*row)["parallel"].empty() || (*row)["parallel"] == kDataParallel)
      continue;
    measure.unserved.push_back({label_of(*row) + " " + std::string((*row)["parallel"]),
                                "tensor and pipeline parallelism are not modelled"});
  }
}

}  // namespace

std::vector<CaptureRequest> wanted_neusight(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) {
    if (is_scored(*row) && !shape_of(bench, (*row)["model"]).empty())
      requests.push_back(request_for(bench, *row));
  }
  return requests;
}

std::vector<Measure> run_neusight(Bench& bench, const Table& table) {
  const auto rows = sampled(bench, table);
  const auto operators = table_operators(bench.data);
  std::vector<Measure> measures;
  for (const Scoring& scoring : scorings(bench)) {
    if (scoring.calibrated && !operators) continue;
    const auto* calibrating = scoring.calibrated ? &*operators : nullptr;
    std::vector<Forecasted> forecasted;
    for (const CsvRow* row : rows) {
      if (is_scored(*row))
        forecasted.push_back({row, forecast_row(bench, *row, scoring.unseen, calibrating)});
    }
    for (const Subset& subset : kSubsets) {
      for (const Part& part : kParts) {
        Measure measure = measure_of(forecasted, subset, part, scoring);
        if (subset.has == is_data_parallel && part.name.empty()) refuse_parallel(rows, measure);
        const bool same_as_whole = subset.has == is_inference && !part.name.empty();
        if ((!measure.pairs.empty() || !measure.unserved.empty()) && !same_as_whole)
          measures.push_back(std::move(measure));
      }
    }
  }
  return measures;
}

}  // namespace stoker::accuracy
