// Published peaks of models that a paper or a README calls by a common name: device peaks on an
// A100 with 40 GB, with the figures of three rivals, and of CARMA's workloads.

#include <cmath>
#include <optional>

#include "accuracy/common/bench.h"
#include "accuracy/common/conditions.h"
#include "accuracy/memory/device_peaks.h"
#include "accuracy/memory/measures.h"
#include "base/files.h"
#include "json/text.h"

namespace stoker::accuracy {
namespace {

using Json = json::Value;

constexpr std::string_view kGpu = "A100-SXM4-40GB";  // DGX Station A100
constexpr Bytes kMaxNames{1 << 20};
constexpr std::int64_t kCifarSide = 32, kCifarClasses = 100;
constexpr double kMebibytesPerGigabyte = 1024;  // tools of NVIDIA print GiB as GB

/// What a table means by a name, or why nobody can know.
Result<CaptureRequest> meant_by(std::string_view name) {
  const auto text =
      read_file(std::string(STOKER_SOURCE_DIR) + "/bench/accuracy/table_models.json", kMaxNames);
  if (!text) return tl::unexpected(text.error());
  const Json names = json::parse(*text).value_or(Json());
  const Json& known = names[name];
  if (!known.is_object())
    return fail(ErrorCode::kUnsupported, "table_models.json does not say what the name means");
  if (known.contains("unclear")) return fail(ErrorCode::kUnsupported, known["unclear"].as_string());
  CaptureRequest request;
  request.spec = known["spec"].as_string();
  request.precision = "fp32";
  return request;
}

Result<CaptureRequest> request_for(const CsvRow& row) {
  auto request = meant_by(row["model"]);
  if (request && row["workload"].find("CIFAR") != std::string_view::npos) {
    request->image_size = kCifarSide;
    request->options["num_classes"] = std::to_string(kCifarClasses);
  }
  return request;
}

/// Serves the rows of one table; `truth` in MiB.
template <class Truth>
std::vector<const CsvRow*> serve(Bench& bench, const Table& table, const Job& plain,
                                 DevicePeaks& peaks, Truth&& truth) {
  std::vector<const CsvRow*> served;
  const auto gpu = bench.gpus.find(kGpu);
  if (!gpu) return served;
  Machine machine;
  machine.device = *gpu;
  for (const CsvRow& row : table) {
    const std::string workload(row["workload"].substr(0, row["workload"].find(' ')));
    const std::string label = std::string(row["model"]) + (workload.empty() ? "" : " ") + workload +
                              " batch " + std::string(row["batch_size"]);
    const auto request = request_for(row);
    if (!request) {
      peaks.refuse(label, request.error().text());
      continue;
    }
    const auto step = bench.captures.get(*request);
    if (!step) {
      peaks.refuse(label, step.error().text());
      continue;
    }
    Job job = plain;
    job.batch = static_cast<std::int64_t>(number(row, "batch_size"));
    if (peaks.add(family_of(row["model"]), label, **step, job, machine, truth(row)))
      served.push_back(&row);
  }
  return served;
}

void add_rival(DevicePeaks& peaks, const std::vector<const CsvRow*>& rows, const std::string& name,
               std::string_view column) {
  std::vector<double> figures;
  for (const CsvRow* row : rows) figures.push_back(number(*row, column));
  peaks.add_rival(name, figures);
}

}  // namespace

std::vector<CaptureRequest> wanted_named(const Bench& /*bench*/, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow& row : table) {
    if (auto request = request_for(row)) requests.push_back(std::move(*request));
  }
  return requests;
}

std::vector<Measure> run_paper_models(Bench& bench, const Table& table) {
  DevicePeaks peaks(bench, "memory/gpumemnet-models",
                    "device peak of a paper's real models, as timm's train.py, A100 40 GB");
  const auto rows = serve(bench, table, timm_train_job(), peaks,
                          [](const CsvRow& row) { return number(row, "actual_mib"); });
  add_rival(peaks, rows, "GPUMemNet", "gpumemnet_class_mib");
  add_rival(peaks, rows, "fake_tensor", "faketensor_mib");
  add_rival(peaks, rows, "Horus", "horus_mib");
  return {std::move(peaks).finish()};
}

std::vector<Measure> run_carma(Bench& bench, const Table& table) {
  Job job;  // the scripts' settings are not published
  job.cudnn = CudnnProfile::kBenchmark;
  DevicePeaks peaks(bench, "memory/carma",
                    "device peak of CARMA's workloads (settings assumed: fp32, SGD with momentum, "
                    "cudnn.benchmark), A100 40 GB");
  serve(bench, table, job, peaks,
        [](const CsvRow& row) { return kMebibytesPerGigabyte * number(row, "peak_mem_gb"); });
  return {std::move(peaks).finish()};
}

}  // namespace stoker::accuracy
