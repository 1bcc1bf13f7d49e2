// Forward or forward and backward of language models in FP32 on one GPU, with four tools'
// predictions of the same rows.

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "bench.h"
#include "measures.h"

namespace stoker::accuracy {
namespace {

constexpr Bytes kMaxTable{16 << 20};
constexpr std::string_view kModels = "models-neusight.csv";

/// The shape of a model by the table's own list of models; empty when the list lacks it.
std::string shape_of(const Bench& bench, std::string_view model) {
  const auto path = bench.data / kModels;
  const auto text = read_file(path, kMaxTable);
  if (!text) return {};
  const auto models = parse_csv(*text, path.string());
  if (!models) return {};
  for (const CsvRow& row : *models) {
    if (row["model"] != model) continue;
    nlohmann::json shape{{"model_type", std::string(row["hf_model_type"])},
                         {"act", std::string(row["act"])}};
    for (const char* key : {"layers", "hidden", "heads", "ffn", "vocab", "max_pos"}) {
      const double value = number(row, key);
      if (std::isfinite(value)) shape[key] = static_cast<std::int64_t>(value);
    }
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

/// One GPU, eager, and no flag that calls the measurement doubtful.
bool is_scored(const CsvRow& row) {
  return row["parallel"].empty() && row["compiled"] == "0" && row["flag"].rfind("fw_", 0) != 0;
}

Result<Pair> neusight_row(Bench& bench, const CsvRow& row, const std::string& label) {
  const auto gpu = bench.gpus.find(row["gpu"]);
  if (!gpu) return tl::unexpected(gpu.error());
  if (shape_of(bench, row["model"]).empty())
    return fail(ErrorCode::kNotFound, "its shape is not in " + std::string(kModels));
  const auto step = bench.captures.get(request_for(bench, row));
  if (!step) return tl::unexpected(step.error());
  Machine machine;
  machine.gpu = *gpu;
  Job job;
  job.batch = static_cast<std::int64_t>(number(row, "batch"));
  job.optimizer.kind = OptimizerKind::kNone;
  const auto time = time_of(bench, **step, job, machine);
  if (!time) return tl::unexpected(time.error());
  return Pair{std::string(row["model"]), label, number(row, "e2e_ms"), milliseconds(time->total),
              time->band};
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
  std::vector<Measure> measures;
  for (const std::string mode : {"inf", "train"}) {
    Measure measure;
    measure.name = "time/neusight-" + mode;
    measure.what = mode == "inf" ? "forward of language models, FP32, eager, one GPU"
                                 : "forward and backward, FP32, eager, one GPU";
    std::map<std::string, std::vector<Pair>> rivals;
    for (const CsvRow* row : sampled(bench, table)) {
      if ((*row)["mode"] != mode || !is_scored(*row)) continue;
      const std::string label = std::string((*row)["model"]) + " " + std::string((*row)["gpu"]) +
                                " batch " + std::string((*row)["batch"]);
      auto pair = neusight_row(bench, *row, label);
      if (!pair) {
        measure.unserved.push_back({label, pair.error().text()});
        continue;
      }
      for (const std::string name : {"neusight", "habitat", "li", "roofline"}) {
        const double estimate = number(*row, name + "_e2e_ms");
        if (std::isfinite(estimate)) rivals[name].push_back({"", "", pair->truth, estimate, {}});
      }
      measure.pairs.push_back(std::move(*pair));
    }
    measure.score = score(measure.pairs);
    for (const auto& [name, pairs] : rivals) {
      const Score s = score(pairs);
      measure.shares.emplace_back(name + "_mdape", s.mdape);
      if (!measure.rival || s.mdape < measure.rival->mdape)
        measure.rival = Rival{name, s.rows, s.mape, s.mdape, s.p90};
    }
    measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace stoker::accuracy
