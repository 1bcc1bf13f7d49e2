// One-layer networks in TensorFlow's graph mode: what the practicum's model was trained on.

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "accuracy/common/bench.h"
#include "accuracy/layers/layer_cost.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {
namespace {

constexpr std::size_t kCalibrationRows = 30;
/// The published error of the table's authors is of batches below this.
constexpr double kLargestBatch = 32;

template <class Enum, std::size_t N>
Enum named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return static_cast<Enum>(found == names.end() ? 0 : found - names.begin());
}

LayerNetwork network_of(const CsvRow& row) {
  constexpr std::array<std::string_view, 5> kActivations{"none", "relu", "tanh", "sigmoid",
                                                         "softmax"};
  constexpr std::array<std::string_view, kLayerOptimizers> kOptimizers{
      "none", "sgd", "momentum", "adagrad", "rmsprop", "adam", "adadelta"};
  const auto integer = [&](std::string_view column) {
    const double value = number(row, column);
    return std::isfinite(value) ? static_cast<std::int64_t>(value) : std::int64_t{1};
  };
  LayerNetwork net;
  net.batch = integer("batch");
  net.activation = named<LayerActivation>(kActivations, row["activation"]);
  net.optimizer = named<LayerOptimizer>(kOptimizers, row["optimizer"]);
  if (!row["dim_in"].empty()) {
    net.kind = LayerKind::kDense;
    net.in_channels = integer("dim_in");
    net.out_channels = integer("dim_out");
    net.bias = true;
    return net;
  }
  net.in_channels = integer("cin");
  net.out_channels = integer("cout");
  net.in_side = integer("in_size");
  net.kernel = integer("ksize");
  net.stride = integer("stride");
  net.same_padding = row["padding"] == "same";
  net.bias = row["use_bias"] == "1";
  return net;
}

struct LayerRow {
  std::string gpu;
  MeasuredLayer measured;
};

struct Layers {
  std::vector<LayerRow> rows;
  std::vector<Unserved> unserved;  ///< one for each reason
};

Layers rows_of(const Bench& bench, const Table& table, std::string_view time) {
  Layers layers;
  std::map<std::string, std::string> missing;
  for (const CsvRow& row : table) {
    const double milliseconds = number(row, time);
    if (!std::isfinite(milliseconds) || number(row, "batch") > kLargestBatch) continue;
    const std::string gpu(row["gpu"]);
    if (auto found = bench.gpus.find(gpu); !found || found->bandwidth <= 0) {
      missing[gpu] = found ? "its bandwidth is not known" : found.error().text();
      continue;
    }
    layers.rows.push_back({gpu, {network_of(row), Nanos(1e6 * milliseconds)}});
  }
  for (const auto& [gpu, reason] : missing) layers.unserved.push_back({gpu, reason});
  return layers;
}

std::string_view kind_of(const LayerNetwork& network) {
  return network.trained() ? "training" : "forward";
}

/// What scores a table: which coefficients, and whether some rows of the GPU set its fixed time and
/// rate.
struct Variant {
  Unseen unseen;
  bool calibrated;
  bool another_host;  ///< than the one whose rows were fitted
  std::string suffix, what;
};

/// The fit that did not see `unseen`; that of all rows where there is no such fold.
Result<LayerCoefficients> fit_for(const Bench& bench, Unseen unseen, const std::string& gpu) {
  namespace fs = std::filesystem;
  const fs::path& folds = bench.folds.folder();
  const fs::path fold =
      (unseen == Unseen::kShape ? folds / "shapes" : folds / "without" / gpu) / "layers";
  std::error_code error;
  if (unseen != Unseen::kNothing && !folds.empty() && fs::is_directory(fold, error))
    return LayerCoefficients::load(fold);
  return LayerCoefficients::load_fitted();
}

Measure measured(const Bench& bench, const Layers& layers, const Variant& variant) {
  Measure measure;
  measure.unserved = layers.unserved;
  std::map<std::string, std::vector<const LayerRow*>> by_gpu;
  for (const LayerRow& row : layers.rows) by_gpu[row.gpu].push_back(&row);
  std::map<std::string_view, std::vector<Pair>> by_kind;
  for (const auto& [name, rows] : by_gpu) {
    const auto gpu = bench.gpus.find(name);
    const auto fit = fit_for(bench, variant.unseen, name);
    if (!fit) {
      measure.unserved.push_back({name, fit.error().text()});
      continue;
    }
    LayerModel model(*gpu, variant.another_host ? fit->in_another_host(*gpu) : fit->for_gpu(*gpu));
    std::size_t every = rows.size() + 1;
    if (variant.calibrated) {
      every = std::max<std::size_t>(2, rows.size() / kCalibrationRows);
      std::vector<MeasuredLayer> some;
      for (std::size_t i = 0; i < rows.size(); i += every) some.push_back(rows[i]->measured);
      model.calibrate(some);
    }
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (variant.calibrated && i % every == 0) continue;  // it was fitted on
      const LayerCost cost = model.cost_of(rows[i]->measured.network);
      pairs.push_back(
          {name, name, milliseconds(rows[i]->measured.time), milliseconds(cost.total), cost.band});
      by_kind[kind_of(rows[i]->measured.network)].push_back(pairs.back());
    }
    measure.shares.emplace_back(name, score(pairs).mape);
    std::move(pairs.begin(), pairs.end(), std::back_inserter(measure.pairs));
  }
  for (const auto& [kind, pairs] : by_kind)
    measure.shares.emplace_back(std::string(kind), score(pairs).mape);
  measure.score = score(measure.pairs);
  measure.pairs.clear();  // tens of thousands, of interest only together
  measure.notes.push_back(
      "shares are mean errors by GPU, and of forward passes and training apart");
  return measure;
}

std::vector<Measure> run(const Bench& bench, const Table& table, const std::string& name,
                         const std::string& what, std::string_view time, bool folded) {
  const Layers layers = rows_of(bench, table, time);
  std::vector<Variant> variants{{Unseen::kNothing, false, !folded, "", "coefficients as shipped"}};
  if (folded && !bench.folds.empty()) {
    variants.push_back(
        {Unseen::kShape, false, false, "/unseen-shapes", "trees that saw no such shape"});
    variants.push_back({Unseen::kGpu, false, false, "/gpu-left-out",
                        "nothing of the GPU seen, not even its host"});
  }
  if (folded && !bench.folds.empty())
    variants.push_back(
        {Unseen::kGpu, true, false, "/30-rows", "nothing of the GPU seen but 30 rows"});
  std::vector<Measure> measures;
  for (const Variant& variant : variants) {
    Measure measure = measured(bench, layers, variant);
    measure.name = "time/" + name + variant.suffix;
    measure.what = what + "; " + variant.what;
    measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace

std::vector<Measure> run_mlpredict_convolution(Bench& bench, const Table& table) {
  return run(bench, table, "mlpredict-conv", "one convolution, TensorFlow 1, FP32, batch up to 32",
             "time_ms_median", true);
}

std::vector<Measure> run_mlpredict_dense(Bench& bench, const Table& table) {
  return run(bench, table, "mlpredict-dense", "one dense layer, TensorFlow 1, FP32, batch up to 32",
             "time_ms_median", true);
}

std::vector<Measure> run_iit_convolution(Bench& bench, const Table& table) {
  return run(bench, table, "iit-layers",
             "one convolution, TensorFlow 2 as version 1, FP32, never fitted on", "time_ms_median",
             false);
}

std::vector<Measure> run_iit_models(Bench& bench, const Table& table) {
  return run(bench, table, "iit-models", "layers of a small CNN, Adam, FP32, never fitted on",
             "time_ms", false);
}

}  // namespace stoker::accuracy
