// Batches that a benchmark's authors ran on a card: each is a lower bound of the largest batch.

#include <cmath>

#include "accuracy/common/bench.h"
#include "accuracy/memory/measures.h"
#include "base/text.h"
#include "forecast/memory_forecast.h"

namespace stoker::accuracy {
namespace {

CaptureRequest request_for(const CsvRow& row) {
  return {"torchvision:" + std::string(row["model"]),
          row["precision"] == "fp16" ? "amp-fp16" : "fp32",
          {},
          {}};
}

/// "LambdaCloud V100 16GB" -> V100-PCIe-16GB: the longest run of words that names a card. Words
/// that fit several ("A100") leave the choice to the catalogue.
Result<Gpu> card_of(const Bench& bench, std::string_view description) {
  const auto words = split(std::string(description), ' ');
  for (std::size_t length = words.size(); length > 0; --length) {
    for (std::size_t first = 0; first + length <= words.size(); ++first) {
      std::string name;
      for (std::size_t w = first; w < first + length; ++w)
        name += (w > first ? " " : "") + words[w];
      if (name.find_first_of("0123456789") == std::string::npos) continue;  // "Quadro"
      if (auto gpu = bench.gpus.find(name)) return gpu;
    }
  }
  return fail(ErrorCode::kNotFound, "names no GPU of the catalogue", std::string(description));
}

Job job_for(const CsvRow& row) {
  Job job;
  job.precision = row["precision"] == "fp16" ? Precision::kAmpFp16 : Precision::kFp32;
  job.cudnn = CudnnProfile::kBenchmark;
  job.copy = CopyWay::kOverlapped;
  return job;
}

}  // namespace

std::vector<CaptureRequest> wanted_batch_bounds(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(request_for(*row));
  return requests;
}

std::vector<Measure> run_batch_bounds(Bench& bench, const Table& table) {
  Measure measure;
  measure.name = "memory/lambda-batch";
  measure.what = "batches that Lambda ran on one card are no larger than our largest batch";
  double rows = 0, contradicted = 0, safe_below = 0;
  for (const CsvRow* row : sampled(bench, table)) {
    const std::string label = std::string((*row)["model"]) + " " +
                              std::string((*row)["precision"]) + " on " +
                              std::string((*row)["gpu"]);
    const auto step = bench.captures.get(request_for(*row));
    const auto gpu = card_of(bench, (*row)["gpu"]);
    if (!step || !gpu) {
      measure.unserved.push_back({label, (!step ? step.error() : gpu.error()).text()});
      continue;
    }
    Machine machine;
    machine.device = *gpu;
    const auto limits = forecast_batch_limits(**step, job_for(*row), machine, {}, bench.knowledge);
    if (!limits) {
      measure.unserved.push_back({label, limits.error().text()});
      continue;
    }
    const double ran = number(*row, "batch_size");
    ++rows;
    safe_below += static_cast<double>(static_cast<double>(limits->low) < ran);
    if (static_cast<double>(limits->value) >= ran) continue;
    ++contradicted;
    measure.notes.push_back("contradicted: " + label + " ran " + std::string((*row)["batch_size"]) +
                            ", our largest is " + std::to_string(limits->value) + " (" +
                            std::to_string(limits->low) + " to " + std::to_string(limits->high) +
                            ")");
  }
  measure.score.rows = static_cast<std::int64_t>(rows);
  const double percent = 100 / std::max(1.0, rows);
  measure.shares = {{"contradicted", contradicted * percent},
                    {"safe_batch_below_what_ran", safe_below * percent}};
  return {std::move(measure)};
}

}  // namespace stoker::accuracy
