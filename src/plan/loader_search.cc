#include "plan/loader_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "forecast/memory/verdicts.h"

namespace stoker {
namespace {

/// Workers beyond the cores only queue; half as many again covers those that wait for the disk.
constexpr double kWorkersPerCore = 1.5;
constexpr int kMostWorkers = 64;
/// Depths tried: PyTorch's default, and one that hides more jitter at twice the memory.
constexpr std::array<int, 2> kDepths{2, 4};
/// Below this ratio of the slowest sample to the mean, batches finish in order anyway.
constexpr double kUneven = 2;

struct Tried {
  LoaderChoice choice;
  double value = 0;
  double careful = 0;  ///< likewise, if samples cost what the upper end of their band says
};

/// Time that a sample waits without CPU over its CPU time: such workers may outnumber the cores.
double waits_per_cpu(const SampleCost& sample) {
  const double cpu = sample.mean_cpu().count();
  double wait = sample.mean_wait().count();
  if (sample.read_bytes > 0) wait += sample.cold_seek_ms * kMillisecond.count();
  return cpu > 0 ? wait / cpu : 0;
}

std::vector<int> worker_ladder(const LoaderCase& loader, const LoaderFreedom& freedom) {
  if (freedom.workers) return {*freedom.workers};
  const double cores = loader.host.cores / std::max(1, loader.host.ranks);
  const double per_core = std::max(kWorkersPerCore, 1 + waits_per_cpu(loader.sample));
  int most = static_cast<int>(std::clamp(std::ceil(cores * per_core), 1.0, 1.0 * kMostWorkers));
  if (freedom.max_workers > 0) most = std::min(most, freedom.max_workers);
  std::vector<int> ladder{0};
  for (int w = 1; w <= most; w += w < 8 ? 1 : w < 16 ? 2 : w < 32 ? 4 : 8) ladder.push_back(w);
  return ladder;
}

std::vector<int> depths(const LoaderFreedom& freedom, int workers) {
  if (freedom.prefetch) return {*freedom.prefetch};
  if (workers == 0) return {kDepths[0]};  // there is nothing to be deep
  return {kDepths.begin(), kDepths.end()};
}

class LoaderSearch {
 public:
  LoaderSearch(const LoaderCase& loader, const LoaderFreedom& freedom, const Host& room)
      : loader_(loader),
        freedom_(freedom),
        room_(room),
        costlier_(at_band_end(loader.sample, 1 + loader.sample.band.above)) {}

  LoaderSearchResult run() {
    std::vector<std::int64_t> batches = freedom_.batches;
    if (batches.empty()) batches = {loader_.settings.batch};
    const auto far = [&](std::int64_t batch) {
      return std::fabs(
          std::log(static_cast<double>(batch) / static_cast<double>(loader_.settings.batch)));
    };
    std::stable_sort(batches.begin(), batches.end(),
                     [&](std::int64_t a, std::int64_t b) { return far(a) < far(b); });
    std::optional<Tried> found;
    for (const std::int64_t batch : batches) {
      if (found && !may_be_faster(*found, batch)) continue;
      std::vector<Tried> tried;
      try_all(batch, freedom_.in_order.value_or(true), tried);
      if (tried.empty()) continue;
      Tried one = smallest_of_the_best(tried);
      // The nearest to the given comes first; another changes what the model learns.
      if (!found || one.value >= (1 + kMustBring) * found->value) found = std::move(one);
    }
    if (!found) return std::move(result_);
    Tried best = std::move(*found);
    if (!freedom_.in_order && uneven()) {
      std::vector<Tried> free;
      try_all(best.choice.settings.batch, false, free);
      if (!free.empty()) {
        Tried other = smallest_of_the_best(free);
        if (other.value >= (1 + kMustBring) * best.value) best = std::move(other);
      }
    }
    if (value_of(freedom_.value, result_.beyond_room.forecast) < (1 + kMustBring) * best.value) {
      result_.beyond_room = {};
      result_.shortage.clear();
    }
    result_.best = std::move(best.choice);
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool uneven() const {
    const SampleCost& sample = loader_.sample;
    Nanos slowest;
    for (std::size_t i = 0; i < sample.cpu.size(); ++i)
      slowest =
          std::max(slowest, sample.cpu[i] + (i < sample.wait.size() ? sample.wait[i] : Nanos{}));
    return slowest > kUneven * (sample.mean_cpu() + sample.mean_wait());
  }

  /// Whether another batch gains anything with the settings found so far or with all the workers
  /// that may be: only then are its own settings searched.
  bool may_be_faster(const Tried& found, std::int64_t batch) {
    const Consumer consumer = at_batch(loader_, batch);
    for (const int workers :
         {found.choice.settings.workers, worker_ladder(loader_, freedom_).back()}) {
      LoaderSettings settings = found.choice.settings;
      settings.batch = batch;
      settings.workers = workers;
      ++result_.considered;
      const LoaderForecast f = simulate_loader(settings, loader_.sample, loader_.host, consumer);
      if (value_of(freedom_.value, f) > (1 + kSameSpeedWorkers) * found.value) return true;
    }
    return false;
  }

  void try_all(std::int64_t batch, bool in_order, std::vector<Tried>& tried) {
    const Consumer consumer = at_batch(loader_, batch);
    for (const int workers : worker_ladder(loader_, freedom_)) {
      for (const int prefetch : depths(freedom_, workers)) {
        Tried t;
        LoaderSettings& settings = t.choice.settings;
        settings = loader_.settings;
        settings.batch = batch;
        settings.workers = workers;
        settings.prefetch = prefetch;
        settings.in_order = in_order;
        t.choice.forecast = simulate_loader(settings, loader_.sample, loader_.host, consumer);
        t.value = value_of(freedom_.value, t.choice.forecast);
        ++result_.considered;
        if (std::string shortage = host_shortage(room_, t.choice.forecast); !shortage.empty()) {
          note_beyond(t, std::move(shortage));
          continue;
        }
        t.careful = t.value;
        if (loader_.sample.band.above > 0) {
          t.careful = value_of(freedom_.value,
                               simulate_loader(settings, costlier_, loader_.host, consumer));
        }
        tried.push_back(std::move(t));
      }
    }
  }

  void note_beyond(const Tried& t, std::string shortage) {
    if (t.choice.forecast.samples_per_s <= result_.beyond_room.forecast.samples_per_s) return;
    result_.beyond_room = t.choice;
    result_.shortage = std::move(shortage);
  }

  /// `tried` is in order of preference and not empty.
  [[nodiscard]] Tried smallest_of_the_best(const std::vector<Tried>& tried) const {
    double value = 0, careful = 0;
    for (const Tried& t : tried) {
      value = std::max(value, t.value);
      careful = std::max(careful, t.careful);
    }
    const double enough =
        std::max((1 - kSameSpeedWorkers) * value, std::min(freedom_.at_least, value));
    const auto good = [&](const Tried& t) { return t.value >= enough; };
    auto chosen = std::find_if(tried.begin(), tried.end(), [&](const Tried& t) {
      return good(t) && t.careful >= (1 - kSameSpeedWorkers) * careful;
    });
    if (chosen == tried.end()) chosen = std::find_if(tried.begin(), tried.end(), good);
    return *chosen;
  }

  const LoaderCase& loader_;
  const LoaderFreedom& freedom_;
  const Host& room_;
  SampleCost costlier_;
  LoaderSearchResult result_;
};

}  // namespace

double value_of(LoaderValue value, const LoaderForecast& forecast) {
  return value == LoaderValue::kSteadyRate ? forecast.samples_per_s : epoch_rate(forecast);
}

Consumer at_batch(const LoaderCase& loader, std::int64_t batch) {
  Consumer consumer = loader.consumer;
  const double factor = static_cast<double>(batch) /
                        static_cast<double>(std::max<std::int64_t>(1, loader.settings.batch));
  consumer.step = consumer.step * factor;
  return consumer;
}

std::vector<std::int64_t> batches_around(std::int64_t batch) {
  std::vector<std::int64_t> batches;
  for (const std::int64_t b : {batch / 4, batch / 2, batch, batch * 2, batch * 4}) {
    if (b >= 1 && (batches.empty() || b != batches.back())) batches.push_back(b);
  }
  return batches;
}

LoaderSearchResult search_loader(const LoaderCase& loader, const LoaderFreedom& freedom,
                                 const Host& room) {
  return LoaderSearch(loader, freedom, room).run();
}

}  // namespace stoker
