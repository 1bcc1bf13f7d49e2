// Steps that scripts/measure-time timed on real GPUs (data/measured/*/steps.csv).

#include <cmath>

#include "accuracy/common/bench.h"
#include "accuracy/common/measured_rows.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {
namespace {

/// The input lay on the device when the steps were timed, so nothing waits for its copy.
Result<Pair> measured_step(Bench& bench, const CsvRow& row, const std::string& label,
                           Unseen unseen) {
  const auto step = TRY(bench.captures.get(measured_request(row)));
  const auto gpu = TRY(bench.gpus.find(row["gpu"]));
  auto job = TRY(measured_job(row));
  job.copy = CopyWay::kOverlapped;
  Machine machine;
  machine.device = gpu;
  const auto time = TRY(time_of(bench, *step, job, machine, unseen));
  return Pair{std::string(row["model"]), label, number(row, "step_ms"), milliseconds(time.total),
              time.band};
}

Measure measure_of(Bench& bench, const Table& table, const char* name, Unseen unseen) {
  Measure measure;
  measure.name = name;
  measure.what = "step time, our own script on real GPUs, ms";
  for (const CsvRow* row : sampled(bench, table)) {
    if ((*row)["status"] != "ok" || !(number(*row, "step_ms") > 0)) continue;
    const std::string label = std::string((*row)["case"]) + " on " + std::string((*row)["gpu"]);
    auto pair = measured_step(bench, *row, label, unseen);
    if (pair) {
      measure.pairs.push_back(std::move(*pair));
    } else {
      measure.unserved.push_back({label, pair.error().text()});
    }
  }
  measure.score = score(measure.pairs);
  return measure;
}

}  // namespace

std::vector<Measure> run_measured_steps(Bench& bench, const Table& table) {
  return {measure_of(bench, table, "time/measured", Unseen::kNothing),
          measure_of(bench, table, "time/measured/gpu-left-out", Unseen::kGpu)};
}

}  // namespace stoker::accuracy
