// Peaks of torchvision CNNs and Hugging Face language models without cudnn.benchmark, four rivals
// on the same rows.

#include <cmath>
#include <limits>

#include "accuracy/common/bench.h"
#include "accuracy/memory/measures.h"
#include "base/files.h"
#include "forecast/memory_forecast.h"
#include "lower/loop/lower.h"
#include "memory/replay/replay.h"

namespace stoker::accuracy {
namespace {

constexpr std::int64_t kImageSide = 86;  // CIFAR-10 resized, says the table's description
constexpr std::int64_t kClasses = 10;    // of CIFAR-10
/// What a process takes of the card before its first kernel (docs/models/memory.md, context): it
/// bounds what a run can reserve, and is not part of the truth.
constexpr Bytes kBareContext{426LL << 20};
constexpr Bytes kMaxConfigs{1 << 20};
constexpr std::int64_t kTokens =
    128;  // max_length of the tokenizer; batches of this size always reach it

double mebibytes_of(const CsvRow& row, std::string_view column) {
  return number(row, column) / (1 << 20);
}

/// Names of Hugging Face models have an owner, or stand in our table of configurations.
bool is_language_model(const CsvRow& row) {
  const std::string_view model = row["model"];
  if (model.find('/') != std::string_view::npos) return true;
  const auto text =
      read_file(std::string(STOKER_SOURCE_DIR) + "/bench/accuracy/hf_configs.json", kMaxConfigs);
  return text && text->find("\"" + std::string(model) + "\":") != std::string::npos;
}

CaptureRequest request_for(const CsvRow& row) {
  CaptureRequest request;
  request.precision = "fp32";
  if (is_language_model(row)) {
    request.spec = "hf_models.py:language_model";
    request.options["name"] = "\"" + std::string(row["model"]) + "\"";
    request.fixed["seq_len"] = kTokens;
  } else {
    request.spec = "torchvision:" + std::string(row["model"]);
    request.image_size = kImageSide;
    request.options["num_classes"] = std::to_string(kClasses);
  }
  return request;
}

/// Optimizers with their defaults, as the script makes them: optimizer(params, lr=1e-3).
Result<Job> job_for(const CsvRow& row) {
  Job job;
  const auto kind = TRY(parse_optimizer(std::string(row["optimizer"])));
  job.optimizer.kind = kind;
  job.optimizer.loop = default_loop(kind);
  job.optimizer.momentum = 0;
  job.optimizer.weight_decay = kind == OptimizerKind::kAdamW ? 1e-2 : 0;
  job.batch = static_cast<std::int64_t>(number(row, "batch_size"));
  job.copy = CopyWay::kPageable;
  return job;
}

void add_rival(Measure& measure, const std::vector<const CsvRow*>& rows, const std::string& name,
               std::string_view column) {
  std::vector<Pair> pairs;
  for (const CsvRow* row : rows) {
    const double estimate = mebibytes_of(*row, column);
    if (std::isfinite(estimate))
      pairs.push_back({"", "", mebibytes_of(*row, "ground_nvml_bytes"), estimate, {}});
  }
  if (pairs.empty()) return;
  const Score s = score(pairs);
  measure.shares.emplace_back(name + "_mdape", s.mdape);
  if (!measure.rival || s.mdape < measure.rival->mdape)
    measure.rival = Rival{name, s.rows, s.mape, s.mdape, s.p90};
}

/// The peak of a run that may have to give its cache back: the card was smaller than what it would
/// have liked.
double peak_on_card(const Program& program, const Machine& machine, double unconstrained) {
  ReplayOptions options;
  options.capacity = machine.device->usable_memory - kBareContext;
  options.total = machine.device->usable_memory;
  options.detail = ReplayDetail::kVerdict;
  if (unconstrained <= static_cast<double>(options.capacity->count())) return unconstrained;
  const MemoryOutcome outcome = replay(program, options);
  return outcome.fits() ? static_cast<double>(outcome.reserved_peak.count()) : unconstrained;
}

void one(Bench& bench, const CsvRow& row, Measure& measure, std::vector<const CsvRow*>& scored) {
  const std::string label = std::string(row["model"]) + " " + std::string(row["optimizer"]) +
                            " batch " + std::string(row["batch_size"]);
  const auto fail_row = [&](const Error& error) {
    measure.unserved.push_back({label, error.text()});
  };
  if (row["real_oom"] == "1")
    return measure.unserved.push_back(
        {label, "the run ended out of memory: its peak is the card's"});
  const auto gpu = bench.gpus.find(row["gpu"]);
  if (!gpu) return fail_row(gpu.error());
  Machine machine;
  machine.device = *gpu;
  machine.device->context_memory =
      Bytes(0);  // the truth is what NVML showed above what it showed at the start
  const auto step = bench.captures.get(request_for(row));
  if (!step) return fail_row(step.error());
  const auto job = job_for(row);
  if (!job) return fail_row(job.error());
  const auto program = lower(**step, *job, machine);
  if (!program) return fail_row(program.error());
  const std::string kind = memory_error_case(*program, *job, machine);
  const MemoryForecast forecast = forecast_memory(*program, machine, {}, bench.knowledge, kind);
  const Figure& peak = forecast.device_peak;
  measure.pairs.push_back({family_of(row["model"]), label, mebibytes_of(row, "ground_nvml_bytes"),
                           peak_on_card(*program, machine, peak.value) / (1 << 20),
                           Band{1 - peak.low / peak.value, peak.high / peak.value - 1}, kind});
  scored.push_back(&row);
}

}  // namespace

std::vector<CaptureRequest> wanted_xmem(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(request_for(*row));
  return requests;
}

std::vector<Measure> run_xmem(Bench& bench, const Table& table) {
  std::vector<Measure> measures;
  for (const bool language : {false, true}) {
    Measure measure;
    measure.name = language ? "memory/xmem-language" : "memory/xmem-cnn";
    measure.what = language ? "NVML peak over the start, language models of 128 tokens, fp32, "
                              "transformers as captured"
                            : "NVML peak over the start, CNNs at 86 px, fp32, no cudnn.benchmark";
    std::vector<const CsvRow*> scored;
    for (const CsvRow* row : sampled(bench, table)) {
      if (is_language_model(*row) == language) one(bench, *row, measure, scored);
    }
    measure.score = score(measure.pairs);
    for (const auto& [name, column] : {std::pair{"xMem", "xmem_est_bytes"},
                                       {"DNNMem", "dnnmem_est_bytes"},
                                       {"SchedTune", "schedtune_est_bytes"},
                                       {"LLMem", "llmem_est_bytes"}}) {
      add_rival(measure, scored, name, column);
    }
    measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace stoker::accuracy
