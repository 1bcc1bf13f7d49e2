#include "input/loader/loader_timeline.h"

#include <algorithm>

#include "input/loader/loader_model.h"

namespace stoker {
namespace {

/// Batches to play: some rounds of the workers, as many as can be looked at.
constexpr std::int64_t kRounds = 8, kFewest = 32, kMost = 256;

}  // namespace

LoaderTimeline loader_timeline(const LoaderSettings& settings, const SampleCost& cost,
                               const HostShare& host, const Consumer& consumer) {
  if (!cost.known) return {};
  LoaderModel model = loader_model(settings, cost, host, consumer);
  const EpochShape epoch = epoch_shape(settings, cost, std::max({1, host.ranks, host.all_ranks}));
  const std::int64_t ahead = std::int64_t{model.workers} * model.prefetch;
  const std::int64_t played = std::clamp(kRounds * ahead, kFewest, kMost);
  model.last_batch = model.batch;
  model.batches = played + ahead + 1;
  if (epoch.batches <= model.batches) {
    model.batches = epoch.batches;
    model.last_batch = epoch.last;
  }
  model.stop_after = std::min(played, model.batches);
  model.keep_spans = true;
  return {model.workers, model.pin, play_loader(model).spans};
}

}  // namespace stoker
