// Whole training runs in Keras on one GPU: a small CNN whose layers the practicum timed one by one.

#include <algorithm>
#include <cmath>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/layers/layer_cost.h"
#include "accuracy/time/measures.h"

namespace stoker::accuracy {
namespace {

/// The layers of "mnist_cnn" by layers-iit-models.csv; its pooling is not timed there and left out
/// here.
std::vector<LayerNetwork> mnist_layers(std::int64_t batch, LayerOptimizer optimizer) {
  struct Sides {
    std::int64_t in_channels, out_channels, side, kernel;
  };
  std::vector<LayerNetwork> layers;
  for (const Sides& s :
       {Sides{1, 32, 28, 3}, Sides{32, 32, 13, 3}, Sides{32, 128, 5, 5}, Sides{128, 10, 1, 1}}) {
    LayerNetwork net;
    net.batch = batch;
    net.in_channels = s.in_channels, net.out_channels = s.out_channels;
    net.in_side = s.side, net.kernel = s.kernel;
    net.bias = true;
    net.activation = LayerActivation::kRelu;
    net.optimizer = optimizer;
    layers.push_back(net);
  }
  return layers;
}

/// One batch in milliseconds: what the device does, and the fixed time of one-layer calls.
struct Batch {
  double device = 0, fixed = 0;
};

/// A network trains its filters, not its layers' inputs and targets as the one-layer benchmark
/// does.
Batch batch_of(const LayerModel& model, std::int64_t batch, LayerOptimizer optimizer) {
  Batch sum;
  for (const LayerNetwork& net : mnist_layers(batch, optimizer)) {
    const LayerCost cost = model.analytic_of(net);
    const double filter = static_cast<double>(net.kernel * net.kernel * net.in_channels + 1) *
                          static_cast<double>(net.out_channels);
    const double data = static_cast<double>(net.batch) *
                        static_cast<double>(net.in_side * net.in_side * net.in_channels +
                                            net.out_side() * net.out_side() * net.out_channels);
    const auto update =
        static_cast<std::size_t>(LayerPart::kUpdateSgd) + static_cast<std::size_t>(optimizer) - 1;
    const Nanos device = cost.analytic - cost.fixed;
    sum.device += milliseconds(device - cost.parts[update] * (data / (data + filter)));
    sum.fixed += milliseconds(cost.fixed);
  }
  return sum;
}

/// Milliseconds of Keras's own work a batch, and the share of the one-layer calls' fixed time that
/// their operators cost the host of a network, beside which the device runs.
struct HostConstants {
  double keras = 0, share = 0;
  /// Under MirroredStrategy one process does the host's work of every replica; their devices run
  /// side by side. The gradients' all-reduce hides behind the host.
  [[nodiscard]] double time_of(const Batch& batch, int replicas = 1) const {
    return replicas * keras + std::max(replicas * share * batch.fixed, batch.device);
  }
};

struct KerasRow {
  std::string label;
  double truth = 0;
  Batch batch;
  int replicas = 1;
};

HostConstants fitted(const std::vector<KerasRow>& rows) {
  constexpr double kStep = 0.05, kMostKeras = 4, kMostShare = 1;
  HostConstants best;
  double least = HUGE_VAL;
  for (double keras = 0; keras <= kMostKeras; keras += kStep) {
    for (double share = 0; share <= kMostShare; share += kStep) {
      const HostConstants constants{keras, share};
      double loss = 0;
      for (const KerasRow& row : rows)
        loss += std::abs(std::log(constants.time_of(row.batch) / row.truth));
      if (loss < least) least = loss, best = constants;
    }
  }
  return best;
}

LayerOptimizer optimizer_of(std::string_view name) {
  for (std::size_t i = 0; i < kLayerOptimizers; ++i) {
    const auto optimizer = static_cast<LayerOptimizer>(i);
    if (name_of(optimizer) == name) return optimizer;
  }
  return LayerOptimizer::kNone;
}

/// The same network on several GPUs of one machine, by constants of one GPU's rows alone.
Measure mirrored(const std::vector<KerasRow>& rows, const std::vector<KerasRow>& one_gpu) {
  Measure measure;
  measure.name = "time/iit-e2e/mirrored";
  measure.what =
      "the same under MirroredStrategy on two P100, batch per GPU; host constants of the rows of "
      "one GPU";
  if (one_gpu.empty()) return measure;
  const HostConstants constants = fitted(one_gpu);
  for (const KerasRow& row : rows) {
    measure.pairs.push_back(
        {row.label, row.label, row.truth, constants.time_of(row.batch, row.replicas), {}});
  }
  measure.score = score(measure.pairs);
  return measure;
}

}  // namespace

std::vector<Measure> run_iit(Bench& bench, const Table& table) {
  Measure measure;
  measure.name = "time/iit-e2e";
  measure.what =
      "a batch of Keras training of a CNN on MNIST, one P100; two host constants fitted on one "
      "half "
      "of the batch sizes, scored on the other, both ways";
  const auto coefficients = LayerCoefficients::load_fitted();
  if (!coefficients) {
    measure.unserved.push_back({"", coefficients.error().text()});
    return {measure};
  }
  std::vector<KerasRow> halves[2], several;
  std::vector<Pair> practicum;
  for (const CsvRow& row : table) {
    const std::string label = std::string(row["table"]) + " " + std::string(row["optimizer"]) +
                              " batch " + std::string(row["batch_per_gpu"]);
    const LayerOptimizer optimizer = optimizer_of(row["optimizer"]);
    const double truth = number(row, "ms_per_batch");
    if (row["model"] != "mnist_cnn") {
      measure.unserved.push_back({label, "no table states its layers"});
      continue;
    }
    const auto gpu = bench.gpus.find(row["gpu"]);
    if (!gpu || optimizer == LayerOptimizer::kNone || !std::isfinite(truth)) continue;
    const auto batch = static_cast<std::int64_t>(number(row, "batch_per_gpu"));
    const KerasRow keras{label, truth,
                         batch_of(LayerModel(*gpu, coefficients->for_gpu(*gpu)), batch, optimizer),
                         static_cast<int>(number(row, "n_gpus"))};
    if (keras.replicas > 1) {
      several.push_back(keras);
      continue;
    }
    halves[half_of(std::string(row["batch_per_gpu"]))].push_back(keras);
    const double estimate = number(row, "pred_iit_ms");
    if (std::isfinite(estimate)) practicum.push_back({"", "", truth, estimate, {}});
  }
  for (const int scored : {0, 1}) {
    if (halves[1 - scored].empty()) continue;
    const HostConstants constants = fitted(halves[1 - scored]);
    for (const KerasRow& row : halves[scored])
      measure.pairs.push_back({row.label, row.label, row.truth, constants.time_of(row.batch), {}});
  }
  measure.score = score(measure.pairs);
  if (!practicum.empty()) {
    const Score s = score(practicum);
    measure.rival = Rival{"the practicum's model", s.rows, s.mape, s.mdape, s.p90};
  }
  std::vector<KerasRow> one_gpu = halves[0];
  one_gpu.insert(one_gpu.end(), halves[1].begin(), halves[1].end());
  return {measure, mirrored(several, one_gpu)};
}

}  // namespace stoker::accuracy
