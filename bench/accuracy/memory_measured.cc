// Peaks that scripts/measure-memory read on real GPUs (data/measured/*/memory.csv).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "bench.h"
#include "forecast/memory_forecast.h"
#include "lower/common/lower.h"
#include "measures.h"

namespace stoker::accuracy {
namespace {

/// One figure of a row and the forecast's counterpart.
struct Reading {
  const char* name;
  const char* column;
  Figure MemoryForecast::*figure;
};
constexpr std::array<Reading, 3> kReadings{
    Reading{"device", "device_peak_bytes", &MemoryForecast::device_peak},
    Reading{"reserved", "reserved_peak_bytes", &MemoryForecast::reserved_peak},
    Reading{"allocated", "allocated_peak_bytes", &MemoryForecast::allocated_peak}};

/// The number behind a flag of `stoker predict` in the row's "flags"; NaN when it is not there.
double flag_value(const CsvRow& row, std::string_view flag) {
  const auto words = split(std::string(row["flags"]), ' ');
  const auto it = std::find(words.begin(), words.end(), flag);
  if (it == words.end() || it + 1 == words.end()) return std::nan("");
  return std::strtod((it + 1)->c_str(), nullptr);
}

bool has_flag(const CsvRow& row, std::string_view flag) {
  const auto words = split(std::string(row["flags"]), ' ');
  return std::find(words.begin(), words.end(), flag) != words.end();
}

/// Runs under a limit, of another allocator setting or that failed show no unconstrained peak.
bool shows_a_peak(const CsvRow& row) {
  return row["status"] == "ok" && row["limit_bytes"].empty() && !has_flag(row, "--alloc-conf");
}

}  // namespace

CaptureRequest measured_request(const CsvRow& row) {
  std::string precision(row["precision"]);
  if (precision == "tf32") precision = "fp32";
  return {std::string(row["spec"]), precision, {}, {}};
}

Result<Job> measured_job(const CsvRow& row) {
  Job job;
  const auto precision = TRY(parse_precision(row["precision"]));
  const auto kind = TRY(parse_optimizer(row["optimizer"]));
  job.precision = precision;
  job.optimizer.kind = kind;
  job.optimizer.loop = default_loop(kind);
  if (!row["optimizer_loop"].empty()) {
    const auto loop = TRY(parse_optimizer_loop(row["optimizer_loop"]));
    job.optimizer.loop = loop;
  }
  const double decay = flag_value(row, "--weight-decay");
  if (std::isfinite(decay)) job.optimizer.weight_decay = decay;
  const double accumulate = flag_value(row, "--accumulate");
  if (std::isfinite(accumulate)) job.accumulate = static_cast<int>(accumulate);
  job.channels_last = has_flag(row, "--channels-last");
  job.clip = has_flag(row, "--clip");
  job.grad_scaler = has_flag(row, "--grad-scaler");
  const bool trials = row["cudnn_benchmark"] == "1" || has_flag(row, "--cudnn-benchmark");
  job.cudnn = trials ? CudnnProfile::kBenchmark : CudnnProfile::kDefault;
  job.batch = static_cast<std::int64_t>(number(row, "batch"));
  return job;
}

namespace {

/// The forecast of one row, with the context that ships.
Result<std::pair<MemoryForecast, std::string>> forecast_of(Bench& bench, const CsvRow& row) {
  const auto step = TRY(bench.captures.get(measured_request(row)));
  const auto gpu = TRY(bench.gpus.find(row["gpu"]));
  Machine machine;
  machine.device = gpu;
  const auto job = TRY(measured_job(row));
  const auto program = TRY(lower(*step, job, machine));
  const std::string kind = memory_error_case(program, job, machine);
  return std::pair{forecast_memory(program, machine, {}, bench.knowledge, kind), kind};
}

}  // namespace

std::vector<CaptureRequest> wanted_measured(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table)) requests.push_back(measured_request(*row));
  return requests;
}

std::vector<Measure> run_measured(Bench& bench, const Table& table) {
  std::vector<Measure> measures;
  for (const Reading& reading : kReadings) {
    Measure measure;
    measure.name = std::string("memory/measured-") + reading.name;
    measure.what = "our own script on real GPUs: " + std::string(reading.name) + " peak, MiB";
    for (const CsvRow* row : sampled(bench, table)) {
      const double truth = number(*row, reading.column) / (1 << 20);
      if (!shows_a_peak(*row) || !(truth > 0)) continue;
      const std::string label = std::string((*row)["model"]) + " " +
                                std::string((*row)["precision"]) + " " +
                                std::string((*row)["optimizer"]) + " batch " +
                                std::string((*row)["batch"]) + " on " + std::string((*row)["gpu"]);
      const auto forecast = forecast_of(bench, *row);
      if (!forecast) {
        measure.unserved.push_back({label, forecast.error().text()});
        continue;
      }
      const Figure& f = forecast->first.*reading.figure;
      measure.pairs.push_back({std::string((*row)["model"]), label, truth, f.value / (1 << 20),
                               Band{1 - f.low / f.value, f.high / f.value - 1}});
    }
    measure.score = score(measure.pairs);
    measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace stoker::accuracy
