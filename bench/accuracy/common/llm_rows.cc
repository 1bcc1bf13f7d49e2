#include "accuracy/common/llm_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/csv.h"
#include "base/files.h"
#include "step/sizes.h"

namespace stoker::accuracy {
namespace {

/// A node's network where the table does not say it: clouds join nodes of eight H100 with 400
/// Gbit/s a GPU.
constexpr double kUnstatedNetwork = 8 * 400e9 / 8;
constexpr double kBytesPerGigabit = 1e9 / 8;
constexpr Bytes kMaxTable = 16 * kMiB;
bool is_true(std::string_view text) { return text == "True" || text == "true"; }

Status check_modelled(const CsvRow& row) {
  const std::string_view precision = row["precision"];
  if (precision.find("fp8") != std::string_view::npos ||
      precision.find("float8") != std::string_view::npos)
    return fail(ErrorCode::kUnsupported, "FP8 is not modelled");
  return {};
}

/// "DEFAULT", "PURE", "param bf16, reduce fp32".
FsdpPrecision policy_of(std::string_view text) {
  if (text.find("PURE") != std::string_view::npos ||
      text.find("reduce bf16") != std::string_view::npos)
    return FsdpPrecision::kReduceHalf;
  return text.empty() ? FsdpPrecision::kNone : FsdpPrecision::kReduceFp32;
}

/// torchtitan's own loop: a loss in FP32 on all scores; others take flash-attn's cross entropy.
bool is_torchtitan(const CsvRow& row) { return row["source"] == "torchtitan"; }

/// "selective": a block is computed again but for its attention and every second product
/// (torchtitan's choice by operators, from memory: the table does not spell it out).
bool is_selective(const CsvRow& row) { return row["checkpointing"] == "selective"; }

Job job_of(const CsvRow& row) {
  Job job;
  job.batch = static_cast<std::int64_t>(number(row, "micro_batch"));
  job.gpus = static_cast<int>(number(row, "gpus"));
  job.nodes = static_cast<int>(number(row, "nodes"));
  job.accumulate = static_cast<int>(number(row, "accumulate"));
  job.precision = Precision::kBf16;
  job.optimizer.kind = OptimizerKind::kAdamW;
  job.optimizer.weight_decay = 0.1;
  job.clip = true;
  job.copy = CopyWay::kOverlapped;
  job.dimensions["seq_len"] = static_cast<std::int64_t>(number(row, "seq_len"));
  const std::string_view sharding = row["sharding"];
  const bool keeps_gathered = sharding.find("SHARD_GRAD_OP") != std::string_view::npos ||
                              sharding.find("ZERO2") != std::string_view::npos;
  job.parallel = keeps_gathered ? Parallel::kFsdpZero2 : Parallel::kFsdpZero3;
  if (sharding.find("HYBRID") != std::string_view::npos && job.nodes > 1)
    job.fsdp_group = job.gpus / job.nodes;  // a copy of the model in each node
  job.fsdp_precision = policy_of(row["fsdp_mixed_precision"]);
  if (!is_torchtitan(row)) job.loss = LossKernel::kFused;
  job.drop_output = is_torchtitan(row);
  if (is_true(row["checkpointing"]) || row["checkpointing"] == "full") job.checkpoint = {"blocks"};
  return job;
}

std::string shape_json(const CsvRow& row) {
  std::string text = "{";
  for (const std::string_view key : {"layers", "hidden", "heads", "kv_heads", "ffn", "vocab"})
    text += "\"" + std::string(key) + "\": " + std::string(row[key]) + ", ";
  for (const std::string_view key : {"positions", "activation"})
    text += "\"" + std::string(key) + "\": \"" + std::string(row[key]) + "\", ";
  return text + "\"tied_embeddings\": " + (is_true(row["tied_embeddings"]) ? "true" : "false") +
         "}";
}

}  // namespace

std::map<std::string, std::string> llm_shapes(const Bench& bench) {
  std::map<std::string, std::string> shapes;
  const auto text = read_file(bench.data / "llm_models.csv", kMaxTable);
  if (!text) return shapes;
  const auto table = parse_csv(*text, "llm_models.csv");
  if (!table) return shapes;
  for (const CsvRow& row : *table) shapes[std::string(row["model"])] = shape_json(row);
  return shapes;
}

Result<LlmRow> llm_row(const Bench& bench, const CsvRow& row,
                       const std::map<std::string, std::string>& shapes) {
  TRY(check_modelled(row));
  const std::string model(row["model"]);
  const auto shape = shapes.find(model);
  if (shape == shapes.end())
    return fail(ErrorCode::kNotFound, "llm_models.csv has no shape of " + model);
  LlmRow result;
  result.row = &row;
  result.job = job_of(row);
  result.job.compile = is_true(row["compile"]);
  result.is_otherwise = result.job.compile || is_selective(row);
  TRY(check_job(result.job));
  result.machine.device = TRY(bench.gpus.find(row["gpu"]));
  result.machine.nodes = result.job.nodes;
  result.machine.gpu_count = result.job.gpus / result.job.nodes;
  const double gigabits = number(row, "node_gbit");
  result.machine.network_bandwidth =
      std::isnan(gigabits) ? kUnstatedNetwork : gigabits * kBytesPerGigabit;
  result.label = model + " " + std::string(row["seq_len"]) + " x " +
                 std::string(row["micro_batch"]) + ", " + std::string(row["gpus"]) + " " +
                 std::string(row["gpu"]) + (result.job.compile ? ", compiled" : "");
  result.request = {.spec = "llm_models.py:decoder", .precision = "bf16"};
  result.request.options["shape"] = shape->second;
  result.request.options["upcast"] = is_torchtitan(row) ? "true" : "false";
  if (is_selective(row)) result.request.options["selective"] = "true";
  if (result.job.compile) result.request.options["compile"] = "true";
  // Such a capture takes minutes; what a graph keeps is decided at one length anyway.
  if (result.is_otherwise) result.request.fixed["seq_len"] = result.job.dimensions["seq_len"];
  const double tokens = static_cast<double>(result.job.batch) * result.job.accumulate *
                        static_cast<double>(result.job.dimensions["seq_len"]);
  result.step_ms = 1e3 * tokens / number(row, "tokens_per_s_per_gpu");
  const double memory = number(row, "memory_gib");
  if (!std::isnan(memory)) result.memory_gib = memory;
  return result;
}

Result<std::shared_ptr<const Step>> llm_step(Bench& bench, const LlmRow& row) {
  constexpr double kTolerance = 0.02;
  auto step = TRY(bench.captures.get(row.request));
  const auto sizes = TRY(Sizes::at(*step, row.job.dimensions));
  double count = 0;
  for (const Parameter& p : step->parameters) count += static_cast<double>(sizes.elements(p.type));
  const double stated = number(*row.row, "params");
  if (!std::isnan(stated) && std::abs(count / stated - 1) > kTolerance)
    return fail(ErrorCode::kUnsupported, "the shape has " + std::to_string(count / 1e9) +
                                             " billion parameters, the row another number");
  return step;
}

std::vector<CaptureRequest> wanted_llm(const Bench& bench, const Table& table) {
  const auto shapes = llm_shapes(bench);
  std::vector<CaptureRequest> requests;
  for (const CsvRow& row : table) {
    if (const auto job = llm_row(bench, row, shapes)) requests.push_back(job->request);
  }
  return requests;
}

}  // namespace stoker::accuracy
