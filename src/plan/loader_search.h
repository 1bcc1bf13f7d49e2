#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/machine.h"
#include "input/findings/findings.h"
#include "input/loader/loader_simulation.h"

namespace stoker {

/// Two settings whose rates are this near count as equal, and the smaller one wins: differences
/// between two settings of one loader share their errors.
inline constexpr double kSameSpeedWorkers = 0.01;
/// What changes the meaning of a run (another batch, the order of batches) must bring at least
/// this.
inline constexpr double kMustBring = 0.03;

/// What a loader is judged by.
enum class LoaderValue : std::uint8_t {
  kSteadyRate,  ///< samples a second in the middle of an epoch
  kEpoch        ///< over an epoch, its start included; the steady rate where its size is unknown
};

/// What a search of loader settings may change; what is absent is searched.
struct LoaderFreedom {
  std::optional<int> workers, prefetch;
  std::optional<bool> in_order;
  int max_workers = 0;                ///< per process; 0: by the cores and by how samples wait
  std::vector<std::int64_t> batches;  ///< candidates; empty: the given batch
  LoaderValue value = LoaderValue::kEpoch;
  double at_least = 0;  ///< of `value`: what is slower counts as equal to nothing
};

/// A setting and what is expected of it.
struct LoaderChoice {
  LoaderSettings settings;
  LoaderForecast forecast;
};

struct LoaderSearchResult {
  std::optional<LoaderChoice> best;  ///< absent: nothing stays within the host's room
  /// The fastest setting that the host's memory forbade, if it would bring kMustBring more, and
  /// what it overruns; rate 0: none.
  LoaderChoice beyond_room;
  std::string shortage;
  std::int64_t considered = 0;
};

/// Samples a second of one process by what a loader is judged by.
[[nodiscard]] double value_of(LoaderValue value, const LoaderForecast& forecast);

/// The step of a case at another batch: in proportion, since nothing else is known of it.
[[nodiscard]] Consumer at_batch(const LoaderCase& loader, std::int64_t batch);

/// Batches that a search tries around a given one: a quarter to four times as many.
[[nodiscard]] std::vector<std::int64_t> batches_around(std::int64_t batch);

/// The fewest workers and the least depth that stay within kSameSpeedWorkers of the best: as
/// expected and no slower than `at_least`, and as well if samples cost as much more as their band
/// allows. `loader` gives what is not searched; `room` the /dev/shm and DRAM that all processes
/// share. Of batches the one nearest to the given.
[[nodiscard]] LoaderSearchResult search_loader(const LoaderCase& loader,
                                               const LoaderFreedom& freedom, const Host& room);

}  // namespace stoker
