// Peaks that scripts/measure-memory read on real GPUs (data/measured/*/memory.csv).

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "accuracy/common/measured_rows.h"
#include "accuracy/memory/measures.h"
#include "forecast/memory_forecast.h"
#include "lower/loop/lower.h"

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

/// Runs under a limit, of another allocator setting or that failed show no unconstrained peak.
bool shows_a_peak(const CsvRow& row) {
  return row["status"] == "ok" && row["limit_bytes"].empty() && !has_flag(row, "--alloc-conf");
}

/// The forecast of one row, with the context that ships.
Result<MemoryForecast> forecast_of(Bench& bench, const CsvRow& row) {
  const auto step = TRY(bench.captures.get(measured_request(row)));
  const auto gpu = TRY(bench.gpus.find(row["gpu"]));
  Machine machine;
  machine.device = gpu;
  const auto job = TRY(measured_job(row));
  const auto program = TRY(lower(*step, job, machine));
  const std::string kind = memory_error_case(program, job, machine);
  return forecast_memory(program, machine, {}, bench.knowledge, kind);
}

}  // namespace

std::vector<Measure> run_measured_peaks(Bench& bench, const Table& table) {
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
      const Figure& f = (*forecast).*reading.figure;
      measure.pairs.push_back({std::string((*row)["model"]), label, truth, f.value / (1 << 20),
                               Band{1 - f.low / f.value, f.high / f.value - 1}});
    }
    measure.score = score(measure.pairs);
    measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace stoker::accuracy
