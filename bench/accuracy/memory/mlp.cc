// The peak that nvidia-smi shows, of perceptrons with Adam in fp32 on an A100 with 40 GB.

#include <algorithm>
#include <cmath>

#include "accuracy/common/bench.h"
#include "accuracy/memory/device_peaks.h"
#include "accuracy/memory/measures.h"
#include "forecast/memory_forecast.h"
#include "json/text.h"
#include "lower/loop/lower.h"
#include "memory/replay/replay.h"

namespace stoker::accuracy {
namespace {

using Json = json::Value;

constexpr std::string_view kGpu = "A100-SXM4-40GB";  // DGX Station A100
constexpr std::string_view kConfiguration = "Filename";
/// fp32 parameter, gradient and Adam's two states; fp32 activation kept and its gradient.
constexpr double kBytesPerParameter = 16, kBytesPerActivation = 8;

/// The table's list of layers, a Python literal: [('linear', 936, 1754064), ('ReLU', 936, 0), ...].
Json layers_of(const CsvRow& row) {
  std::string text(row["Activations-Params"]);
  for (char& c : text) c = c == '(' ? '[' : c == ')' ? ']' : c == '\'' ? '"' : c;
  return json::parse(text).value_or(Json());
}

/// Empty spec: the row states no layers that can be built.
CaptureRequest request_for(const CsvRow& row) {
  const Json stated = layers_of(row);
  Json layers = Json::array();
  for (const Json& layer : stated.is_array() ? stated : Json::array()) {
    if (layer.is_array() && layer.size() == 3 && layer[0].is_string() && layer[1].is_integer() &&
        layer[2].is_integer())
      layers.push_back({layer[0], layer[1]});
  }
  if (layers.empty() || layers.size() != stated.size() || layers[0][1].as_integer() < 1) return {};
  // A linear layer has (features + 1) x width parameters.
  const auto features = stated[0][2].as_integer() / stated[0][1].as_integer() - 1;
  CaptureRequest request;
  request.spec = "mlp_models.py:mlp";
  request.precision = "fp32";
  request.options["features"] = std::to_string(features);
  request.options["layers"] = layers.dump();
  return request;
}

Job job_for(const CsvRow& row) {
  Job job;
  job.optimizer.kind = OptimizerKind::kAdam;
  job.batch = static_cast<std::int64_t>(number(row, "Batch Size"));
  job.copy = CopyWay::kPageable;
  return job;
}

/// What a person would add up; MiB.
double sum_of_tensors(const CsvRow& row) {
  return (kBytesPerParameter * number(row, "Total Parameters") +
          kBytesPerActivation * number(row, "Total Activations") * number(row, "Batch Size")) /
         kMebibyte;
}

/// The figures with a constant added that was fitted on the other half of the families.
std::vector<double> with_fitted_constant(const std::vector<Pair>& pairs,
                                         const std::vector<double>& figures) {
  std::vector<Pair> rival = pairs;
  for (std::size_t i = 0; i < rival.size(); ++i) rival[i].predicted = figures[i];
  std::vector<double> result;
  for (const Pair& p : with_offset_of_others(rival, 0)) result.push_back(p.predicted);
  return result;
}

bool one(Bench& bench, const Machine& machine, const CsvRow& row, DevicePeaks& peaks) {
  const std::string label(row[kConfiguration]);
  const CaptureRequest request = request_for(row);
  if (request.spec.empty()) return peaks.refuse(label, "states no layers that can be built"), false;
  const auto step = bench.captures.get(request);
  if (!step) return peaks.refuse(label, step.error().text()), false;
  if (auto same = check_parameters(**step, number(row, "Total Parameters") / 1e6); !same)
    return peaks.refuse(label, same.error().text()), false;
  return peaks.add(label, label, **step, job_for(row), machine,
                   number(row, "Max GPU Memory (MiB)"));
}

}  // namespace

std::vector<CaptureRequest> wanted_mlp(const Bench& bench, const Table& table) {
  std::vector<CaptureRequest> requests;
  for (const CsvRow* row : sampled(bench, table, kConfiguration)) {
    CaptureRequest request = request_for(*row);
    if (!request.spec.empty()) requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<Measure> run_mlp(Bench& bench, const Table& table) {
  auto gpu = bench.gpus.find(kGpu);
  if (!gpu) return or_note(tl::unexpected(gpu.error()), "memory/mlp-a100");
  Machine machine;
  machine.device = *gpu;
  DevicePeaks peaks(bench, "memory/mlp-a100",
                    "device peak, perceptrons, fp32 training with Adam, A100 40 GB");
  std::vector<double> sums;
  for (const CsvRow* row : sampled(bench, table, kConfiguration)) {
    if (one(bench, machine, *row, peaks)) sums.push_back(sum_of_tensors(*row));
  }
  peaks.add_rival("sum of tensors and a fitted constant",
                  with_fitted_constant(peaks.pairs(), sums));
  return {std::move(peaks).finish()};
}

}  // namespace stoker::accuracy
