// Step time of timm's benchmark.py in AMP on an RTX 3090, at the batch that ran.

#include <cmath>

#include "bench.h"
#include "conditions.h"
#include "forecast/forecast.h"
#include "measures.h"

namespace stoker::accuracy {

CaptureRequest timm_benchmark_request(const CsvRow& row) {
  CaptureRequest request{"timm:" + std::string(row["model"]), "amp-fp16",
                         static_cast<std::int64_t>(number(row, "img_size"))};
  request.fused_attention = false;
  return request;
}

Result<StepTime> time_of(const Bench& bench, const Step& step, const Job& job,
                         const Machine& machine, Unseen unseen) {
  Scenario scenario;
  scenario.step = &step;
  scenario.job = job;
  scenario.machine = machine;
  scenario.loader.batch = job.batch;
  if (unseen == Unseen::kNothing) return step_time_of(scenario, bench.knowledge);
  Knowledge knowledge = bench.knowledge;
  knowledge.timing = bench.timing_for(unseen, machine.gpu.name);
  return step_time_of(scenario, knowledge);
}

namespace {

Result<Pair> timm_row(Bench& bench, const CsvRow& row, const std::string& label) {
  const std::string card(row["gpu"]);
  const auto gpu = bench.gpus.find(card.substr(0, card.find('_')));
  if (!gpu) return tl::unexpected(gpu.error());
  const auto captured = bench.captures.get(timm_benchmark_request(row));
  if (!captured) return tl::unexpected(captured.error());
  if (auto same = check_parameters(**captured, number(row, "param_count_m")); !same)
    return tl::unexpected(same.error());
  Machine machine;
  machine.gpu = *gpu;
  Job job = timm_benchmark_job(row["layout"] == "nhwc");
  job.batch = static_cast<std::int64_t>(number(row, "batch_fits"));
  job.pinned_copy = true;
  job.overlapped_copy = true;  // the batch is on the device already: nothing to wait for
  const auto time = time_of(bench, **captured, job, machine);
  if (!time) return tl::unexpected(time.error());
  return Pair{family_of(row["model"]), label, number(row, "step_time_ms"),
              milliseconds(time->total), time->band};
}

}  // namespace

std::vector<Measure> run_timm_time(Bench& bench, const Table& table) {
  std::vector<Measure> measures;
  for (const std::string_view layout : {"nchw", "nhwc"}) {
    Measure measure;
    measure.name = "time/timm-rtx3090-" + std::string(layout);
    measure.what = "step time at the batch that ran, AMP fp16, PyTorch 1.12, RTX 3090";
    for (const CsvRow* row : sampled(bench, table)) {
      if ((*row)["layout"] != layout || !std::isfinite(number(*row, "step_time_ms"))) continue;
      const std::string label = std::string((*row)["model"]) + " " + std::string(layout) +
                                " batch " + std::string((*row)["batch_fits"]);
      auto pair = timm_row(bench, *row, label);
      if (pair) {
        measure.pairs.push_back(std::move(*pair));
      } else {
        measure.unserved.push_back({label, pair.error().text()});
      }
    }
    measure.score = score(measure.pairs);
    measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace stoker::accuracy
