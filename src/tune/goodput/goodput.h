#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::tune {

/// One way to train: what it processes, and where it stands among others.
struct GoodputRow {
  std::int64_t batch = 0;  ///< of each GPU
  int gpus = 1;
  bool fits = true;
  double samples_per_s = 0;  ///< of all GPUs; 0: not known
  double cost_per_s = 0;     ///< 0: no price is known

  [[nodiscard]] double global_batch() const { return static_cast<double>(batch) * gpus; }

  // Filled by goodput().
  double efficiency =
      0;  ///< of a sample for learning, against the smallest batches: 1 / (1 + B / noise)
  double goodput = 0;         ///< samples/s that count as much
  double time = 0, cost = 0;  ///< against the best of all rows, 1 or more
};

/// Rows whose time (or cost) is within 5 % of the best, by global batch of one number of GPUs: "how
/// flat the optimum is".
struct Flat {
  int gpus = 1;
  double low = 0, high = 0;
};

struct Goodput {
  std::vector<GoodputRow> rows{};
  std::optional<std::size_t> soonest{}, cheapest{};
  Flat flat{};
};

/// Samples until a loss is reached are E_min (1 + B / B_noise), steps S_min (1 + B_noise / B)
/// (McCandlish et al. 2018), so that time is proportional to (1 + B / B_noise) / throughput. Rows
/// that do not fit take no part.
[[nodiscard]] Goodput goodput(std::vector<GoodputRow> rows, double noise_scale);

}  // namespace stoker::tune
