// Published throughput of data-parallel training on 1 to 256 GPUs: image models that torchvision
// defines.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/common/step_times.h"
#include "accuracy/scaling/measures.h"
#include "base/text.h"

namespace stoker::accuracy {
namespace {

constexpr int kGpusPerNode = 8;  // of the machines in these tables

struct Setting {
  std::string precision;  ///< as jobs name it
  double batch_per_gpu = 0;
  int gpus = 1;
  double network = 0;  ///< bytes/s per node
};

/// "4x100Gb" -> bytes/s.
double network_of(const std::string& machine) {
  for (const std::string& word : split(machine, ' ')) {
    int links = 0, gigabits = 0;
    if (std::sscanf(word.c_str(), "%dx%dGb", &links, &gigabits) == 2)
      return links * gigabits * 1e9 / 8;
  }
  return 0;
}

/// The first word of a machine's description that names a GPU of the catalogue.
Result<Gpu> gpu_of(const Bench& bench, const std::string& machine) {
  std::string text = machine;
  std::replace(text.begin(), text.end(), ',', ' ');
  for (const std::string& word : split(text, ' ')) {
    if (word.size() < 2) continue;
    if (auto gpu = bench.gpus.find(word)) return gpu;
  }
  return fail(ErrorCode::kNotFound, "names no GPU of the catalogue", machine);
}

std::string precision_of(std::string_view text, const Gpu& gpu) {
  if (text == "fp32") return gpu.peak.tf32_tensor > 0 ? "tf32" : "fp32";
  return text == "amp" || text == "fp16" ? "amp-fp16" : std::string(text);
}

CaptureRequest request_for(const CsvRow& row) {
  const bool half = row["precision"] == "amp" || row["precision"] == "fp16";
  return {"torchvision:" + std::string(row["model"]), half ? "amp-fp16" : "fp32"};
}

Result<StepTime> step_of(Bench& bench, const CsvRow& row, const Gpu& gpu, const Setting& setting) {
  const auto step = TRY(bench.captures.get(request_for(row)));
  const auto precision = TRY(parse_precision(setting.precision));
  Machine machine;
  machine.device = gpu;
  machine.gpu_count = std::min(setting.gpus, kGpusPerNode);
  machine.nodes = (setting.gpus + kGpusPerNode - 1) / kGpusPerNode;
  machine.network_bandwidth = setting.network;
  Job job;
  job.precision = precision;
  job.tf32_matmul = precision == Precision::kTf32;
  job.batch = static_cast<std::int64_t>(setting.batch_per_gpu);
  job.gpus = setting.gpus;
  job.nodes = machine.nodes;
  job.cudnn = CudnnProfile::kBenchmark;
  job.copy = CopyWay::kOverlapped;
  if (job.batch < 1) return fail(ErrorCode::kBadInput, "the row states no batch");
  return time_of(bench, *step, job, machine);
}

std::string label_of(const CsvRow& row, std::string_view machine) {
  return std::string(row["model"]) + " " + std::string(row["precision"]) + " " +
         std::string(machine) + " x " + std::string(row["gpus"]);
}

Result<Pair> scaling_row(Bench& bench, const CsvRow& row, const std::string& label) {
  const std::string machine(row["machine"]);
  auto gpu = TRY(gpu_of(bench, machine));
  const int gpus = std::atoi(std::string(row["gpus"]).c_str());
  const Setting setting{precision_of(row["precision"], gpu), number(row, "batch_per_gpu"), gpus,
                        network_of(machine)};
  const auto time = TRY(step_of(bench, row, gpu, setting));
  const double value = number(row, "value");
  const bool per_step = row["unit"].find("s_per_iter") == 0;
  const double truth_ms = per_step ? value * 1e3 : setting.batch_per_gpu * gpus / value * 1e3;
  return Pair{std::string(row["model"]), label, truth_ms, milliseconds(time.total), time.band};
}

Result<Pair> lambda_row(Bench& bench, const CsvRow& row, const std::string& label) {
  const auto gpu = TRY(bench.gpus.find(row["gpu"]));
  const int gpus = static_cast<int>(number(row, "gpus"));
  const double batch = number(row, "batch_total") / gpus;
  if (!std::isfinite(batch)) return fail(ErrorCode::kBadInput, "the row states no batch");
  const auto time = step_of(bench, row, gpu, {precision_of(row["precision"], gpu), batch, gpus, 0});
  if (!time) return tl::unexpected(time.error());
  return Pair{std::string(row["gpu"]), label,
              number(row, "batch_total") / number(row, "samples_per_s") * 1e3,
              milliseconds(time->total), time->band};
}

/// Units of image models: the others of these tables are not torchvision's.
bool counts_images(const CsvRow& row) {
  return row["unit"].empty() || row["unit"] == "img_per_s" || row["unit"].find("s_per_iter") == 0;
}

template <class Serve>
Measure measured(Bench& bench, const Table& table, std::string name, std::string what,
                 std::string_view machine, Serve&& serve) {
  Measure measure;
  measure.name = std::move(name);
  measure.what = std::move(what);
  for (const CsvRow* row : sampled(bench, table)) {
    const std::string label = label_of(*row, (*row)[machine]);
    if (!counts_images(*row)) {
      measure.unserved.push_back({label, "not an image model"});
    } else if ((*row)["flag"] == "superlinear") {
      measure.unserved.push_back({label, "the table calls the row superlinear"});
    } else if (auto pair = serve(*row, label)) {
      measure.pairs.push_back(std::move(*pair));
    } else {
      measure.unserved.push_back({label, pair.error().text()});
    }
  }
  measure.score = score(measure.pairs);
  return measure;
}

std::vector<CaptureRequest> wanted(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) {
    if (counts_images(*row)) requests.push_back(request_for(*row));
  }
  return requests;
}

}  // namespace

std::vector<CaptureRequest> wanted_scaling(const Bench& bench, const Table& table) {
  return wanted(bench, table);
}

std::vector<Measure> run_scaling(Bench& bench, const Table& table) {
  return {measured(
      bench, table, "time/ddp-forecast", "step time of data-parallel training, 1 to 256 GPUs",
      "machine",
      [&](const CsvRow& row, const std::string& label) { return scaling_row(bench, row, label); })};
}

std::vector<CaptureRequest> wanted_lambda(const Bench& bench, const Table& table) {
  return wanted(bench, table);
}

std::vector<Measure> run_lambda(Bench& bench, const Table& table) {
  return {measured(
      bench, table, "time/lambda",
      "step time, 1 to 8 GPUs of one machine, fp16 is AMP, fp32 is TF32 where there is any", "gpu",
      [&](const CsvRow& row, const std::string& label) { return lambda_row(bench, row, label); })};
}

}  // namespace stoker::accuracy
