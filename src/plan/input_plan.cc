#include "plan/input_plan.h"

#include <algorithm>
#include <cmath>

#include "base/percent.h"
#include "base/text.h"
#include "forecast/memory/verdicts.h"

namespace stoker {
namespace {

/// What a host copies out of pageable memory, through the driver's staging buffers: between 3 GB/s
/// (PCIe 3) and 10 GB/s (PCIe 4 and 5) in vendors' and users' tables; a guess where none is
/// measured.
constexpr double kPageableBandwidth = 5e9;
/// Two rates that differ by less come from the order in which times were added.
constexpr double kRounding = 1e-6;
/// Below this share of a step the GPU's waiting is not worth a change.
constexpr double kNoWait = 0.02;

/// Where nothing but the step at one batch is known.
StepOf proportional_step(const LoaderCase& loader, bool gpu) {
  return [loader, gpu](const LoaderSettings& settings) {
    Consumer consumer = at_batch(loader, settings.batch);
    if (gpu && !settings.pin) {  // the copy comes before the step and keeps the loop busy
      const Nanos copy = pageable_copy(loader.sample.batch_bytes(settings.batch));
      consumer.step += copy;
      consumer.host_cpu += copy;
    }
    return consumer;
  };
}

class InputPlanner {
 public:
  explicit InputPlanner(const InputPlanRequest& request)
      : request_(request),
        step_(request.step ? request.step : proportional_step(request.now, request.gpu)) {}

  Result<InputPlan> run() {
    plan_.now = request_.now.settings;
    plan_.now_known = request_.now_known;
    plan_.ranks = std::max(1, request_.now.host.ranks);
    plan_.gpus = std::max(1, request_.gpus);
    TRY(choose());
    plan_.forecast = forecast_with(plan_.best);
    describe();
    add_knobs();
    add_traps();
    add_findings();
    add_thesis();
    return std::move(plan_);
  }

 private:
  LoaderCase case_with(const LoaderSettings& settings) const {
    LoaderCase loader = request_.now;
    loader.settings = settings;
    loader.consumer = step_(settings);
    return loader;
  }

  LoaderForecast forecast_with(const LoaderSettings& settings) const {
    const LoaderCase loader = case_with(settings);
    return simulate_loader(settings, loader.sample, loader.host, loader.consumer);
  }

  /// Workers, depth, batch and order with and without pinning; pinned memory among equals, since it
  /// also takes the copies off the loop.
  Status choose() {
    if (request_.chosen) {
      plan_.best = *request_.chosen;
      return {};
    }
    std::optional<LoaderChoice> best;
    double best_value = 0;
    const std::optional<LoaderSettings> kept = as_it_is();
    for (const bool pin : {true, false}) {
      if (request_.pin ? pin != *request_.pin : pin && !request_.gpu) continue;
      LoaderSettings settings = request_.now.settings;
      settings.pin = pin;
      settings.persistent = request_.persistent;
      settings.in_order = request_.freedom.in_order.value_or(true);
      LoaderCase loader = case_with(settings);
      LoaderFreedom freedom = request_.freedom;
      if (kept) freedom.at_least = value_of(freedom.value, forecast_with(*kept));
      LoaderSearchResult found = search_loader(loader, freedom, request_.room);
      plan_.settings_considered += found.considered;
      if (!found.shortage.empty()) plan_.shortage = found.shortage;
      if (!found.best) continue;
      found.best->settings.persistent = request_.persistent && found.best->settings.workers > 0;
      const double value = value_of(LoaderValue::kEpoch, forecast_with(found.best->settings));
      if (best && value < (1 + kSameSpeedWorkers) * best_value) continue;
      best_value = value;
      best = std::move(found.best);
    }
    if (best && kept && is_slower(best->settings, *kept)) best->settings = *kept;
    if (!best) {
      return fail(ErrorCode::kAnswerIsNo, plan_.shortage.empty()
                                              ? "no setting of the loader was left to try"
                                              : plan_.shortage);
    }
    plan_.best = best->settings;
    return {};
  }

  /// The loader as it is, or PyTorch's defaults, where nothing that was asked for forbids it.
  [[nodiscard]] std::optional<LoaderSettings> as_it_is() const {
    const LoaderFreedom& freedom = request_.freedom;
    LoaderSettings kept = request_.now.settings;
    if ((request_.pin && kept.pin != *request_.pin) ||
        (freedom.workers && kept.workers != *freedom.workers) ||
        (freedom.prefetch && kept.workers > 0 && kept.prefetch != *freedom.prefetch) ||
        (freedom.in_order && kept.in_order != *freedom.in_order))
      return {};
    kept.persistent = request_.persistent && kept.workers > 0;
    if (!host_shortage(request_.room, forecast_with(kept)).empty()) return {};
    return kept;
  }

  /// In either measure: another batch may gain in one (the epoch) and lose in the other (the steady
  /// rate), and a change has to pay in both.
  [[nodiscard]] bool is_slower(const LoaderSettings& settings, const LoaderSettings& kept) const {
    const LoaderForecast moves = forecast_with(settings), stays = forecast_with(kept);
    const auto worse = [&](LoaderValue value) {
      return value_of(value, moves) < (1 - kRounding) * value_of(value, stays);
    };
    return worse(LoaderValue::kSteadyRate) || worse(LoaderValue::kEpoch);
  }

  /// Rate of the whole job, at one end of the band.
  double rate_at(double factor, Nanos step) const {
    const LoaderCase loader = case_with(plan_.best);
    Consumer consumer = loader.consumer;
    consumer.step = step;
    consumer.host_cpu = std::min(consumer.host_cpu, step);
    return plan_.gpus *
           simulate_loader(plan_.best, at_band_end(loader.sample, factor), loader.host, consumer)
               .samples_per_s;
  }

  Figure rate_figure(Nanos step) const {
    const SampleCost& sample = request_.now.sample;
    const double value = rate_at(1, step);
    return {value, std::min(value, rate_at(1 + sample.band.above, step)),
            std::max(value, rate_at(1 - sample.band.below, step)), sample.basis};
  }

  void describe() {
    constexpr Nanos kInstant{1e3};
    const Consumer consumer = step_(plan_.best);
    const LoaderForecast& f = plan_.forecast;
    plan_.step = consumer.step;
    plan_.now_forecast = forecast_with(plan_.now);
    plan_.samples_per_s = request_.chosen_rate ? *request_.chosen_rate : rate_figure(consumer.step);
    plan_.ceiling = rate_figure(kInstant);
    plan_.gpu_waits = f.interval.count() > 0 ? f.wait / f.interval : 0;
    plan_.stop = f.limit == InputLimit::kStep || plan_.gpu_waits < kNoWait;
    plan_.cached = f.cached_share;
    if (!request_.step && request_.gpu && !plan_.best.pin)
      plan_.copy = pageable_copy(request_.now.sample.batch_bytes(plan_.best.batch));
    if (f.epoch.count() <= 0) return;
    add_first_epoch();
    const Figure& rate = plan_.samples_per_s;
    const double steady = seconds(f.epoch);
    plan_.epoch_s = {steady, steady * rate.value / rate.high, steady * rate.value / rate.low,
                     rate.basis};
    if (request_.price_per_gpu_hour > 0) {
      plan_.epoch_cost =
          scaled(plan_.epoch_s, plan_.gpus * request_.price_per_gpu_hour / kSecondsAnHour);
    }
  }

  /// The epoch that reads every file from storage, where that is known to take longer.
  void add_first_epoch() {
    const LoaderCase loader = case_with(plan_.best);
    if (loader.sample.read_bytes <= 0 || !knows_storage(loader.sample, loader.host)) return;
    const HostShare cold = with_nothing_cached(loader.host);
    const auto epoch = [&](double factor) {
      return seconds(
          simulate_loader(plan_.best, at_band_end(loader.sample, factor), cold, loader.consumer)
              .epoch);
    };
    const Band& band = loader.sample.band;
    const double value = epoch(1);
    if (value <= (1 + kNoWait) * seconds(plan_.forecast.epoch)) return;
    plan_.first_epoch_s = {value, std::min(value, epoch(1 - band.below)),
                           std::max(value, epoch(1 + band.above)), loader.sample.basis};
  }

  KnobRequest knob_request() const {
    KnobRequest request;
    request.now = request_.now;
    request.now.settings = plan_.now;
    request.best = plan_.best;
    request.freedom = request_.freedom;
    request.freedom.batches.clear();
    request.room = request_.room;
    request.step = step_;
    request.profile = request_.profile;
    request.price_per_gpu_hour = request_.price_per_gpu_hour;
    request.gpus = plan_.gpus;
    return request;
  }

  void add_knobs() {
    const KnobRequest request = knob_request();
    plan_.knobs = setting_knobs(request);
    for (Knob& knob : other_knobs(request)) plan_.knobs.push_back(std::move(knob));
  }

  /// What people try next and should not, with what it would do here.
  void add_traps() {
    if (plan_.stop) return;
    const LoaderForecast& f = plan_.forecast;
    const bool prepared_too_slowly = f.limit == InputLimit::kCores ||
                                     f.limit == InputLimit::kWorkers ||
                                     f.limit == InputLimit::kDisk;
    if (prepared_too_slowly && plan_.best.workers > 0 && !request_.freedom.prefetch) {
      LoaderSettings deeper = plan_.best;
      deeper.prefetch *= 2;
      const LoaderForecast other = forecast_with(deeper);
      plan_.traps.push_back(
          "prefetch_factor=" + std::to_string(deeper.prefetch) + " changes the rate by " +
          signed_percent(other.samples_per_s / f.samples_per_s - 1) + " and takes " +
          human_bytes(other.shared_memory - f.shared_memory) +
          " more of /dev/shm: batches ahead hide uneven ones, they do not raise the mean");
    }
    const auto cores = static_cast<int>(std::ceil(request_.now.host.cores / plan_.ranks));
    if (f.limit == InputLimit::kCores && !request_.freedom.workers) {
      LoaderSettings crowded = plan_.best;
      crowded.workers = 2 * std::max(cores, plan_.best.workers);
      const LoaderForecast other = forecast_with(crowded);
      plan_.traps.push_back(
          "num_workers=" + std::to_string(crowded.workers) + " changes the rate by " +
          signed_percent(other.samples_per_s / f.samples_per_s - 1) +
          " and brings the first batch after " + human_time(other.first_batch) + " instead of " +
          human_time(f.first_batch) + ": workers beyond the cores take turns");
    }
    if (plan_.ranks > 1 && f.limit == InputLimit::kCores) {
      plan_.traps.push_back(std::to_string(plan_.ranks) +
                            " processes share the host's cores: num_workers is each process's own");
    }
  }

  void add_findings() {
    plan_.findings = diagnose(case_with(plan_.best));
    if (!plan_.now_known) return;
    for (Finding& finding : diagnose(case_with(plan_.now))) {
      const bool stays = std::any_of(plan_.findings.begin(), plan_.findings.end(),
                                     [&](const Finding& f) { return f.name == finding.name; });
      if (!stays) plan_.findings_now.push_back(std::move(finding));
    }
  }

  void add_thesis() {
    if (!request_.thesis) return;
    const LoaderCase& now = request_.now;
    ThesisTimes times;
    times.load = [&](std::int64_t batch) {
      LoaderSettings one = now.settings;
      one.batch = batch;
      one.workers = 1;
      one.pin = false;
      HostShare alone = now.host;
      alone.ranks = 1;
      constexpr Nanos kInstant{1e3};
      return simulate_loader(one, now.sample, alone, kInstant).interval;
    };
    times.step = [&](std::int64_t batch) {
      LoaderSettings settings = plan_.best;
      settings.batch = batch;
      return step_(settings).step;
    };
    const auto answer = thesis_rule(*request_.thesis, times);
    if (!answer) {
      plan_.thesis_has_none = answer.error().message;
      return;
    }
    ThesisComparison comparison{*answer, plan_.best, {}};
    comparison.settings.batch = answer->batch;
    comparison.settings.workers = (answer->workers + plan_.ranks - 1) / plan_.ranks;
    comparison.settings.prefetch = 2;  // PyTorch's default: the rule does not speak of it
    comparison.forecast = forecast_with(comparison.settings);
    plan_.thesis = std::move(comparison);
  }

  const InputPlanRequest& request_;
  StepOf step_;
  InputPlan plan_;
};

}  // namespace

Nanos pageable_copy(double bytes) { return kSecond * (bytes / kPageableBandwidth); }

Result<InputPlan> make_input_plan(const InputPlanRequest& request) {
  return InputPlanner(request).run();
}

}  // namespace stoker
