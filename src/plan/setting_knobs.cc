#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "plan/knob_value.h"

namespace stoker {
namespace {

using knobs::Value;

/// A setting that brings less than this and frees no memory is not worth a line.
constexpr double kNegligibleGain = 0.005;

/// One difference between two settings.
struct Change {
  const char* name;
  std::string words;
  std::string risk;
  void (*apply)(LoaderSettings& to, const LoaderSettings& from);
  bool always = false;  ///< worth a line even without a gain
};

std::string python(bool value) { return value ? "True" : "False"; }

template <class T>
std::string instead(const char* argument, T to, T from) {
  return std::string(argument) + "=" + std::to_string(to) + " instead of " + std::to_string(from);
}

std::string switched(const char* argument, bool to) {
  return std::string(argument) + "=" + python(to);
}

std::vector<Change> differences(const LoaderSettings& from, const LoaderSettings& to) {
  std::vector<Change> list;
  if (from.workers != to.workers) {
    list.push_back(
        {"workers", instead("num_workers", to.workers, from.workers),
         to.workers > from.workers
             ? "each holds its own memory and batches ahead; the first batch of an epoch "
               "waits for them to start"
             : "none",
         [](LoaderSettings& a, const LoaderSettings& b) { a.workers = b.workers; }, true});
  }
  if (from.prefetch != to.prefetch && to.workers > 0) {
    list.push_back({"prefetch", instead("prefetch_factor", to.prefetch, from.prefetch),
                    "/dev/shm in proportion; hides uneven batches, does not raise the mean",
                    [](LoaderSettings& a, const LoaderSettings& b) { a.prefetch = b.prefetch; }});
  }
  if (from.batch != to.batch) {
    list.push_back({"batch", instead("batch_size", to.batch, from.batch),
                    to.batch > from.batch ? "GPU memory, convergence, a later first batch"
                                          : "convergence, and more launches a sample on the GPU",
                    [](LoaderSettings& a, const LoaderSettings& b) { a.batch = b.batch; }});
  }
  if (from.pin != to.pin) {
    list.push_back(
        {"pin",
         switched("pin_memory", to.pin) + (to.pin ? " with .to(device, non_blocking=True)" : ""),
         to.pin ? "page-locked memory in blocks of powers of two; one thread that shares "
                  "the interpreter's lock; pin in the DataLoader, never in the loop"
                : "the copy to the GPU blocks the loop",
         [](LoaderSettings& a, const LoaderSettings& b) { a.pin = b.pin; }});
  }
  if (from.persistent != to.persistent && to.workers > 0) {
    list.push_back(
        {"persistent", switched("persistent_workers", to.persistent),
         "workers keep their memory between epochs, also while a validation loader "
         "runs; random state goes on instead of starting anew",
         [](LoaderSettings& a, const LoaderSettings& b) { a.persistent = b.persistent; }});
  }
  if (from.in_order != to.in_order) {
    list.push_back({"in_order", switched("in_order", to.in_order),
                    "PyTorch 2.6 on; the order of batches differs from run to run",
                    [](LoaderSettings& a, const LoaderSettings& b) { a.in_order = b.in_order; }});
  }
  return list;
}

}  // namespace

namespace knobs {

Value value_with(const LoaderCase& loader, const StepOf& step) {
  const Consumer consumer = step(loader.settings);
  const auto rate = [&](double factor) {
    const LoaderForecast f =
        simulate_loader(loader.settings, at_band_end(loader.sample, factor), loader.host, consumer);
    return value_of(LoaderValue::kEpoch, f);
  };
  Value value;
  value.forecast = simulate_loader(loader.settings, loader.sample, loader.host, consumer);
  value.expected = value_of(LoaderValue::kEpoch, value.forecast);
  value.costly = rate(1 + loader.sample.band.above);
  value.cheap = rate(1 - loader.sample.band.below);
  return value;
}

void weigh(const KnobRequest& request, const Value& before, const Value& after, Knob& knob) {
  knob.gain = after.expected / before.expected - 1;
  const double costly = after.costly / before.costly - 1, cheap = after.cheap / before.cheap - 1;
  knob.gain_low = std::min({knob.gain, costly, cheap});
  knob.gain_high = std::max({knob.gain, costly, cheap});
  const double processes = std::max(1, request.gpus);
  knob.samples_per_s = after.expected * processes;
  const LoaderSettings& s = request.now.settings;
  const std::int64_t samples =
      s.dataset_samples > 0 ? s.dataset_samples : request.now.sample.dataset_samples;
  if (samples > 0) {
    const double each = static_cast<double>(samples) / processes;
    knob.epoch_seconds = each / before.expected - each / after.expected;
    knob.epoch_money =
        knob.epoch_seconds / kSecondsAnHour * request.price_per_gpu_hour * request.gpus;
  }
  knob.memory = memory_of(after.forecast) - memory_of(before.forecast);
}

}  // namespace knobs

std::string_view name_of(KnobKind kind) {
  switch (kind) {
    case KnobKind::kSetting:
      return "setting";
    case KnobKind::kCode:
      return "code";
    case KnobKind::kData:
      return "data";
    case KnobKind::kHardware:
      return "hardware";
  }
  return "";
}

std::vector<Knob> setting_knobs(const KnobRequest& request) {
  std::vector<Knob> list;
  LoaderCase loader = request.now;
  std::vector<Change> left = differences(loader.settings, request.best);
  Value before = knobs::value_with(loader, request.step);
  while (!left.empty()) {
    Value best_value;
    std::size_t best = left.size();
    for (std::size_t i = 0; i < left.size(); ++i) {
      LoaderCase tried = loader;
      left[i].apply(tried.settings, request.best);
      Value value = knobs::value_with(tried, request.step);
      if (best < left.size() && value.expected <= best_value.expected) continue;
      best_value = std::move(value);
      best = i;
    }
    Knob knob;
    knob.name = left[best].name;
    knob.change = left[best].words;
    knob.risk = left[best].risk;
    knobs::weigh(request, before, best_value, knob);
    if (left[best].always || std::fabs(knob.gain) >= kNegligibleGain || knob.memory.count() < 0)
      list.push_back(std::move(knob));
    left[best].apply(loader.settings, request.best);
    before = std::move(best_value);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return list;
}

}  // namespace stoker
