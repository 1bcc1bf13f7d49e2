#include "tune/goodput/goodput.h"

#include <algorithm>
#include <cmath>

namespace stoker::tune {
namespace {

constexpr double kFlat = 1.05;

bool counts(const GoodputRow& row) { return row.fits && row.samples_per_s > 0; }

}  // namespace

Goodput goodput(std::vector<GoodputRow> rows, double noise_scale) {
  Goodput result;
  double most = 0, least_cost = INFINITY;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    GoodputRow& row = rows[i];
    if (!counts(row)) continue;
    row.efficiency = 1 / (1 + row.global_batch() / noise_scale);
    row.goodput = row.efficiency * row.samples_per_s;
    if (row.goodput > most) {
      most = row.goodput;
      result.soonest = i;
    }
    if (row.cost_per_s > 0 && row.cost_per_s / row.goodput < least_cost) {
      least_cost = row.cost_per_s / row.goodput;
      result.cheapest = i;
    }
  }
  for (GoodputRow& row : rows) {
    if (!counts(row)) continue;
    row.time = most / row.goodput;
    if (row.cost_per_s > 0) row.cost = row.cost_per_s / row.goodput / least_cost;
  }
  if (result.soonest) {
    // Neighbours of the best on both sides, without a gap.
    const GoodputRow& best = rows[*result.soonest];
    std::vector<const GoodputRow*> same;
    for (const GoodputRow& row : rows) {
      if (row.gpus == best.gpus && counts(row)) same.push_back(&row);
    }
    std::ranges::sort(same, {}, [](const GoodputRow* row) { return row->batch; });
    const auto at = std::ranges::find(same, &best) - same.begin();
    auto low = at, high = at;
    while (low > 0 && same[static_cast<std::size_t>(low) - 1]->time <= kFlat) --low;
    while (high + 1 < std::ssize(same) && same[static_cast<std::size_t>(high) + 1]->time <= kFlat)
      ++high;
    result.flat = {best.gpus, same[static_cast<std::size_t>(low)]->global_batch(),
                   same[static_cast<std::size_t>(high)]->global_batch()};
  }
  result.rows = std::move(rows);
  return result;
}

}  // namespace stoker::tune
