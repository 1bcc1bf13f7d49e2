// Measured all-reduces between the GPUs of one machine, by size and count.

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/scaling/measures.h"
#include "timing/collective/collectives.h"

namespace stoker::accuracy {
namespace {

struct Cell {
  std::string gpu;
  int count = 0;
  std::string label;
  Bytes bytes;
  double truth_us = 0;
};

/// The catalogue's GPU of a machine with links between its GPUs, by the table's short name.
Result<Gpu> linked_gpu(const Bench& bench, const std::string& name) {
  for (const Gpu& gpu : bench.gpus.all()) {
    const bool named = gpu.name.rfind(name + "-SXM", 0) == 0;
    if (named && gpu.link_bandwidth > 0) return gpu;
  }
  return bench.gpus.find(name);
}

/// A model, and the curve of the machine that was measured where its rows serve.
struct Cost {
  AllReduceModel model;
  std::optional<FabricFit> own;

  /// The rows are of the measured machine, so that nothing is added for others with its links.
  [[nodiscard]] double spread_at(Bytes bytes) const {
    return own ? own->spread_at(static_cast<double>(bytes.count())) : model.spread;
  }
};
using Costs = std::map<std::pair<std::string, int>, Cost>;

/// What is served: the fits as they ship, without those of a count or of a fabric.
enum class Without { kNothing, kCount, kFabric };

Cost cost_of(const Bench& bench, const Gpu& gpu, int count, Without without) {
  Machine machine;
  machine.device = gpu;
  const auto coefficients = bench.knowledge.timing.for_device(gpu);
  CollectiveCoefficients c = coefficients ? coefficients->collective : CollectiveCoefficients();
  std::erase_if(c.fits, [&](const FabricFit& fit) {
    return without == Without::kFabric || (without == Without::kCount && fit.ranks == count);
  });
  Cost cost{all_reduce_model(machine, {count, 1}, c), {}};
  for (const FabricFit& fit : c.fits) {
    if (fit.fabric == gpu.link && fit.ranks == count) cost.own = fit;
  }
  return cost;
}

Measure measured(const Bench& bench, const std::vector<Cell>& cells, Without without,
                 std::string name, std::string what) {
  Measure m;
  m.name = std::move(name);
  m.what = std::move(what);
  Costs costs;
  std::vector<Pair> small;
  double worst = 0, worst_small = 0;
  for (const Cell& cell : cells) {
    const auto gpu = linked_gpu(bench, cell.gpu);
    if (!gpu) {
      m.unserved.push_back({cell.label, gpu.error().text()});
      continue;
    }
    const auto key = std::pair(gpu->name, cell.count);
    if (costs.count(key) == 0) costs.emplace(key, cost_of(bench, *gpu, cell.count, without));
    const Cost& cost = costs.at(key);
    const double us = cost.model.time_of(cell.bytes).count() / 1e3;
    const double spread = cost.spread_at(cell.bytes);
    const Band band{spread / (1 + spread), spread};
    m.pairs.push_back({cell.gpu, cell.label, cell.truth_us, us, band});
    const double error = 100 * std::abs(us / cell.truth_us - 1);
    worst = std::max(worst, error);
    if (cell.bytes > Bytes(8 << 20)) continue;
    small.push_back(m.pairs.back());
    worst_small = std::max(worst_small, error);
  }
  m.score = score(m.pairs);
  m.shares = {
      {"worst row", worst}, {"1-8 MiB, mean", score(small).mape}, {"1-8 MiB, worst", worst_small}};
  return m;
}

}  // namespace

std::vector<Measure> run_all_reduce(Bench& bench, const Table& table) {
  std::vector<Cell> cells;
  for (const CsvRow& row : table) {
    const auto count = static_cast<int>(number(row, "gpus"));
    const double us = (number(row, "out_of_place_us") + number(row, "in_place_us")) / 2;
    const Bytes bytes(std::llround(number(row, "bytes")));
    if (!(us > 0)) continue;
    cells.push_back({std::string(row["machine_gpu"]), count,
                     std::string(row["machine_gpu"]) + " x " + std::to_string(count) + ", " +
                         std::to_string(bytes.count() >> 20) + " MiB",
                     bytes, us});
  }
  return {
      measured(bench, cells, Without::kNothing, "time/all-reduce",
               "all-reduce in us, 2-8 GPUs, 1 MiB-1 GiB; rows in sample, sizes left out: "
               "collectives.json"),
      measured(bench, cells, Without::kCount, "time/all-reduce/count-left-out",
               "the same from the counts beside it, or beyond the others"),
      measured(
          bench, cells, Without::kFabric, "time/all-reduce/data-sheet",
          "the same from the data sheet's rate of the link, by the rule for fabrics without rows")};
}

}  // namespace stoker::accuracy
