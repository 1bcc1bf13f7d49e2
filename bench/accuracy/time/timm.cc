// Step time of timm's benchmark.py in AMP on an RTX 3090, at the batch that ran.

#include <algorithm>
#include <cmath>
#include <map>

#include "accuracy/common/conditions.h"
#include "accuracy/common/step_times.h"
#include "accuracy/time/measures.h"
#include "lower/loop/lower.h"

namespace stoker::accuracy {

namespace {

/// The layouts differ by this much where the faster one should be told.
constexpr double kApart = 1.1;

struct TimmRow {
  Pair pair;
  bool grouped = false;  ///< grouped convolutions that are not depthwise: cuDNN's slow ground
};

bool has_grouped_convolution(const Program& program) {
  return std::any_of(program.kernels.begin(), program.kernels.end(), [](const Kernel& kernel) {
    const auto* shape = std::get_if<ConvolutionShape>(&kernel.shape);
    return shape != nullptr && shape->groups > 1 && shape->in_channels > shape->groups;
  });
}

Result<TimmRow> timm_row(Bench& bench, const CsvRow& row, const std::string& label, Unseen unseen) {
  const std::string card(row["gpu"]);
  const auto gpu = TRY(bench.gpus.find(card.substr(0, card.find('_'))));
  const auto captured = TRY(bench.captures.get(timm_benchmark_request(row)));
  TRY(check_parameters(*captured, number(row, "param_count_m")));
  Job job = timm_benchmark_job(row["layout"] == "nhwc");
  job.batch = static_cast<std::int64_t>(number(row, "batch_fits"));
  job.copy = CopyWay::kOverlapped;  // the batch is on the device already: nothing to wait for
  Machine machine;
  machine.device = gpu;
  const CoefficientFile* fold = nullptr;
  if (unseen == Unseen::kShape) fold = bench.folds.without_model(std::string(row["model"]));
  if (unseen == Unseen::kGpu) fold = bench.folds.without(gpu.name);
  const StepTime time = TRY(time_with(bench, *captured, job, machine, fold));
  const Program program = TRY(lower(*captured, job, machine));
  return TimmRow{{family_of(row["model"]), label, number(row, "step_time_ms"),
                  milliseconds(time.total), time.band},
                 has_grouped_convolution(program)};
}

/// Both layouts of a model at one batch.
struct Layouts {
  double truth[2] = {0, 0}, predicted[2] = {0, 0};  ///< ms a sample; 0: no such row
};

void add_layout_order(const std::map<std::string, Layouts>& models, Measure& measure) {
  int right = 0, all = 0;
  for (const auto& [name, both] : models) {
    const double* t = both.truth;
    if (!(t[0] > 0 && t[1] > 0) || std::max(t[0], t[1]) < kApart * std::min(t[0], t[1])) continue;
    ++all;
    right += (t[0] < t[1]) == (both.predicted[0] < both.predicted[1]) ? 1 : 0;
  }
  if (all == 0) return;
  measure.shares.emplace_back("layouts_apart", all);
  measure.shares.emplace_back("faster_layout_right", 100.0 * right / all);
}

std::vector<Measure> measured(Bench& bench, const Table& table, Unseen unseen,
                              const std::string& suffix) {
  Measure nchw, nhwc, rest, grouped;
  std::map<std::string, Layouts> layouts;
  for (const CsvRow* row : sampled(bench, table)) {
    if (!std::isfinite(number(*row, "step_time_ms"))) continue;
    const bool last = (*row)["layout"] == "nhwc";
    const std::string label = std::string((*row)["model"]) + " " + std::string((*row)["layout"]) +
                              " batch " + std::string((*row)["batch_fits"]);
    auto found = timm_row(bench, *row, label, unseen);
    Measure& own = last ? nhwc : nchw;
    if (!found) {
      own.unserved.push_back({label, found.error().text()});
      continue;
    }
    own.pairs.push_back(found->pair);
    (last && found->grouped ? grouped : rest).pairs.push_back(found->pair);
    Layouts& both = layouts[std::string((*row)["model"]) + "@" + std::string((*row)["img_size"])];
    const double batch = number(*row, "batch_fits");
    both.truth[last ? 1 : 0] = found->pair.truth / batch;
    both.predicted[last ? 1 : 0] = found->pair.predicted / batch;
  }
  nchw.name = "time/timm-rtx3090-nchw" + suffix;
  nhwc.name = "time/timm-rtx3090-nhwc" + suffix;
  rest.name = "time/timm-rtx3090-without-grouped-nhwc" + suffix;
  grouped.name = "time/timm-rtx3090-grouped-nhwc" + suffix;
  nchw.what = nhwc.what = "step time at the batch that ran, AMP fp16, PyTorch 1.12, RTX 3090";
  rest.what = "both layouts, without models of grouped convolutions in channels-last";
  grouped.what = "models of grouped (not depthwise) convolutions in channels-last";
  add_layout_order(layouts, rest);
  std::vector<Measure> measures;
  for (Measure* measure : {&nchw, &nhwc, &rest, &grouped}) {
    measure->score = score(measure->pairs);
    measures.push_back(std::move(*measure));
  }
  return measures;
}

}  // namespace

std::vector<Measure> run_timm_time(Bench& bench, const Table& table) {
  std::vector<Measure> measures = measured(bench, table, Unseen::kNothing, "");
  const auto append = [&](Unseen unseen, const std::string& suffix) {
    for (Measure& measure : measured(bench, table, unseen, suffix))
      measures.push_back(std::move(measure));
  };
  if (bench.folds.without_model("") != nullptr) append(Unseen::kShape, "/models-unseen");
  if (bench.folds.without("RTX3090") != nullptr) append(Unseen::kGpu, "/gpu-left-out");
  return measures;
}

}  // namespace stoker::accuracy
