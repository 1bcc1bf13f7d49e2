#include "plan/search.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "forecast/memory/verdicts.h"
#include "forecast/node_share.h"
#include "forecast/settings.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

/// As fast as the host can feed its processes: all its cores at work.
int workers_of_all_cores(const PlanRequest& request, int ranks) {
  if (request.workers) return *request.workers;
  constexpr double kPerCore = 1.5;  // a little more than can run, for those that wait
  constexpr int kMost = 64;
  const double cores = request.base.machine.host.cores / ranks;
  const int most = std::clamp(static_cast<int>(std::ceil(cores * kPerCore)), 1, kMost);
  return request.limits.max_workers > 0 ? std::min(most, request.limits.max_workers) : most;
}

/// DDP's program is the same on two GPUs and on more; a shard's and that of DataParallel's GPU 0
/// are not, nor what the data set leaves for a GPU's last batch.
bool same_for_all_counts(const Scenario& s) {
  return s.job.parallel == Parallel::kDdp && s.last_batch.samples <= 0;
}

}  // namespace

LoaderCase loader_case(const Scenario& s, const StepTime& time) {
  LoaderCase loader;
  loader.settings = loader_of(s);
  loader.sample = s.sample;
  loader.host = host_share(s);
  loader.consumer = consumer_of(s, time);
  loader.limits.shared_memory = s.machine.host.shared_memory;
  return loader;
}

double score(Objective objective, const TriedSetting& setting) {
  const double rate = setting.throughput.samples_per_s;
  switch (objective) {
    case Objective::kThroughput:
      return rate;
    case Objective::kCost:
      return rate / setting.scenario.job.gpus;
    case Objective::kEpoch: {
      const double samples = static_cast<double>(setting.scenario.dataset_samples);
      if (samples <= 0) return rate;
      return 1 / (samples / rate + seconds(setting.throughput.loader.epoch_start));
    }
    case Objective::kEnergy: {
      const Scenario& s = setting.scenario;
      const double alone = static_cast<double>(s.job.batch) * s.job.accumulate * s.job.gpus /
                           seconds(setting.time.total);
      const double busy = setting.time.busy * std::min(1.0, rate / alone);
      return rate / (s.job.gpus * mean_watts(s.machine.device.facts(), busy));
    }
  }
  return rate;
}

Result<BatchLimits> SettingSearch::limits_for(const PrecisionChoice& choice, int gpus,
                                              const Scenario& scenario) {
  // Precisions of one captured step (fp32 and tf32) compute with other units in the same memory.
  const auto key = std::pair(choice.step, same_for_all_counts(scenario) ? std::min(gpus, 2) : gpus);
  if (const auto it = limits_.find(key); it != limits_.end()) return it->second;
  auto limits = forecast_batch_limits(*choice.step, scenario.job, scenario.machine,
                                      scenario.allocator, knowledge_, scenario.last_batch);
  if (limits) limits_[key] = *limits;
  return limits;
}

std::vector<std::int64_t> SettingSearch::batch_ladder(const BatchLimits& limits, const Step& step,
                                                      int gpus) const {
  const std::int64_t low = std::max<std::int64_t>(1, step.dimensions[0].minimum);
  std::int64_t high = limits.low > 0 ? limits.low : limits.value;
  const std::int64_t processes = static_cast<std::int64_t>(gpus) * request_.base.job.accumulate;
  if (request_.limits.max_global_batch > 0)
    high = std::min(high, request_.limits.max_global_batch / processes);
  // A step cannot take more samples than there are in the data set. Their number is no batch that
  // anyone means.
  bool by_data = false;
  if (const std::int64_t samples = request_.base.dataset_samples; samples > 0) {
    by_data = samples / processes < high;
    high = std::min(high, samples / processes);
  }
  if (request_.batch) return {*request_.batch};
  std::vector<std::int64_t> ladder;
  // 1, 2, 3, 4, 6, 8, 12, 16 ...: sizes that people use, each a third or a half above the one
  // before.
  for (std::int64_t b = 1; b <= high; b *= 2) {
    if (b >= low) ladder.push_back(b);
    if (b > 1 && b + b / 2 <= high && b + b / 2 >= low) ladder.push_back(b + b / 2);
  }
  if (high >= low && (ladder.empty() || (!by_data && ladder.back() != high)))
    ladder.push_back(high);
  return ladder;
}

/// Lowers the batch and times it: where the program is the same, for all numbers of GPUs that will
/// be asked about it.
Result<StepTime> SettingSearch::time_at(const PreparedStep& prepared, const TriedSetting& setting,
                                        std::int64_t batch) {
  Scenario s = setting.scenario;
  set_batch(s, batch);
  const auto key_of = [&](int gpus) { return std::tuple(s.job.precision, gpus, batch); };
  const int asked = s.job.gpus;
  if (const auto known = times_.find(key_of(asked)); known != times_.end()) {
    StepTime time = std::move(known->second);
    times_.erase(known);
    return time;
  }
  std::vector<int> counts{asked};
  for (const int gpus : request_.gpu_counts) {
    if (asked < 2 || gpus < 2 || gpus == asked || !spreads_evenly(gpus, s.job.nodes)) continue;
    if (!same_for_all_counts(s)) continue;
    const auto ladder = batch_ladder(setting.limits, *s.step, gpus);
    if (std::find(ladder.begin(), ladder.end(), batch) != ladder.end()) counts.push_back(gpus);
  }
  const auto program = TRY(lower(prepared, s.job, s.machine));
  auto times = TRY(step_times_of(s, counts, program, knowledge_));
  for (std::size_t i = 1; i < counts.size(); ++i) times_[key_of(counts[i])] = std::move(times[i]);
  return std::move(times.front());
}

Result<bool> SettingSearch::choose_batch(TriedSetting& setting,
                                         const std::vector<std::int64_t>& ladder) {
  struct Tried {
    std::int64_t batch;
    StepTime time;
    double rate;
  };
  std::vector<Tried> tried;
  const auto prepared = TRY(prepare(*setting.scenario.step, setting.scenario.job));
  for (const std::int64_t batch : ladder) {
    auto time = TRY(time_at(prepared, setting, batch));
    Scenario s = setting.scenario;
    set_batch(s, batch);
    ++considered_;
    s.loader.workers = workers_of_all_cores(request_, gpus_per_node(s.job.gpus, s.job.nodes));
    const double rate = throughput_of(s, time).samples_per_s;
    tried.push_back({batch, std::move(time), rate});
  }
  if (tried.empty()) return false;
  const auto best = std::max_element(
      tried.begin(), tried.end(), [](const Tried& a, const Tried& b) { return a.rate < b.rate; });
  const auto chosen = std::find_if(tried.begin(), tried.end(), [&](const Tried& t) {
    return t.rate >= (1 - kSameSpeed) * best->rate;
  });
  setting.reason.best_batch = best->batch;
  setting.reason.share_of_best = chosen->rate / best->rate;
  set_batch(setting.scenario, chosen->batch);
  setting.time = std::move(chosen->time);
  return true;
}

bool SettingSearch::choose_loader(TriedSetting& setting) {
  Scenario& s = setting.scenario;
  if (!s.sample.known) {
    s.loader.workers = request_.workers.value_or(0);
    setting.throughput = throughput_of(s, setting.time);
    return true;
  }
  LoaderFreedom freedom;
  freedom.workers = request_.workers;
  freedom.prefetch = request_.prefetch;
  freedom.in_order = true;  // another order of batches is advised, never chosen for the user
  freedom.max_workers = request_.limits.max_workers;
  freedom.value = LoaderValue::kSteadyRate;
  LoaderSearchResult found = search_loader(loader_case(s, setting.time), freedom, s.machine.host);
  considered_ += found.considered;
  const double beyond = found.beyond_room.forecast.samples_per_s * s.job.gpus;
  if (beyond > setting.beyond_host.samples_per_s) setting.beyond_host = {beyond, found.shortage};
  if (!found.best) {
    why_not_ = "no number of workers keeps its batches within /dev/shm (" +
               human_bytes(s.machine.host.shared_memory) + ") and host memory (" +
               human_bytes(s.machine.host.memory) + ")";
    return false;
  }
  s.loader.workers = found.best->settings.workers;
  s.loader.prefetch = found.best->settings.prefetch;
  setting.throughput = {found.best->forecast.samples_per_s * s.job.gpus, found.best->forecast};
  return true;
}

/// Where the host's memory has no room for more workers at this batch, smaller ones leave some.
Status SettingSearch::choose_batch_for_workers(TriedSetting& setting,
                                               const std::vector<std::int64_t>& ladder) {
  const std::int64_t chosen = setting.scenario.job.batch;
  if (setting.beyond_host.shortage.empty()) return {};
  const auto prepared = TRY(prepare(*setting.scenario.step, setting.scenario.job));
  for (auto batch = ladder.rbegin(); batch != ladder.rend(); ++batch) {
    if (*batch >= chosen) continue;
    TriedSetting smaller = setting;
    smaller.beyond_host = {};
    smaller.time = TRY(time_at(prepared, smaller, *batch));
    set_batch(smaller.scenario, *batch);
    if (!choose_loader(smaller)) continue;
    const bool has_room = smaller.beyond_host.shortage.empty();
    if (smaller.throughput.samples_per_s > (1 + kSameSpeed) * setting.throughput.samples_per_s) {
      smaller.reason.too_large_for_workers = chosen;
      if (setting.beyond_host.samples_per_s > smaller.beyond_host.samples_per_s)
        smaller.beyond_host = setting.beyond_host;
      setting = std::move(smaller);
    }
    if (has_room) break;
  }
  return {};
}

/// Pinning among equals; on a host without cores to spare its thread can cost more than the copies
/// gain.
Status SettingSearch::choose_pinning(TriedSetting& setting) {
  if (!setting.scenario.sample.known) return {};
  TriedSetting pageable = setting;
  set_pinning(pageable.scenario, false);
  auto time = TRY(step_time_of(pageable.scenario, knowledge_));
  pageable.time = std::move(time);
  if (choose_loader(pageable) &&
      pageable.throughput.samples_per_s > (1 + kPinningTells) * setting.throughput.samples_per_s) {
    setting = std::move(pageable);
  }
  return {};
}

Result<std::optional<TriedSetting>> SettingSearch::best(const PrecisionChoice& choice, int gpus) {
  TriedSetting setting;
  setting.scenario = request_.base;
  Scenario& s = setting.scenario;
  set_precision(s, *choice.step, choice.precision);
  s.job.gpus = gpus;
  s.machine.gpu_count = gpus_per_node(gpus, s.job.nodes);
  s.loader.persistent = request_.persistent;
  set_pinning(s, request_.pin.value_or(true));
  set_batch(s, std::max<std::int64_t>(1, choice.step->dimensions[0].minimum));

  const auto limits = TRY(limits_for(choice, gpus, s));
  setting.limits = limits;
  if (limits.value == 0) {
    why_not_ = gpu_shortage(s, limits);
    return std::optional<TriedSetting>{};
  }
  if (request_.batch && *request_.batch > limits.value) {
    why_not_ = "batch " + std::to_string(*request_.batch) + " does not fit on " +
               s.machine.device->name + " in " + std::string(name_of(choice.precision)) +
               ": up to " + std::to_string(limits.low) + " is safe, " +
               std::to_string(limits.value) + " may run";
    return std::optional<TriedSetting>{};
  }
  const auto ladder = batch_ladder(limits, *choice.step, gpus);
  setting.reason.largest_safe = limits.low;
  setting.reason.largest_running = limits.value;
  setting.reason.low_in_training = limits.low_in_training;
  setting.reason.first_failing = limits.first_failing;
  setting.reason.fixed = request_.batch.has_value();
  const std::int64_t ceiling = request_.limits.max_global_batch;
  setting.reason.ceiling =
      ceiling > 0 && ceiling / (static_cast<std::int64_t>(gpus) * s.job.accumulate) < limits.low;
  const std::int64_t data = s.dataset_samples;
  if (data > 0 && data / (static_cast<std::int64_t>(gpus) * s.job.accumulate) < limits.low)
    setting.reason.data_samples = data;
  if (ladder.empty()) {
    why_not_ = "a global batch of at most " +
               std::to_string(ceiling > 0 ? ceiling : s.dataset_samples) +
               " leaves less than one sample for each of " + std::to_string(gpus) + " GPUs";
    return std::optional<TriedSetting>{};
  }
  const auto found = choose_batch(setting, ladder);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::optional<TriedSetting>{};
  const bool has_loader = choose_loader(setting);
  TRY(choose_batch_for_workers(setting, ladder));
  if (!has_loader && setting.reason.too_large_for_workers == 0)
    return std::optional<TriedSetting>{};
  if (!request_.pin) {
    TRY(choose_pinning(setting));
  }
  return std::optional<TriedSetting>(std::move(setting));
}

}  // namespace stoker
