// Findings about how workers and epochs start, and about when to stop.

#include <algorithm>

#include "base/text.h"
#include "input/findings/finding_rules.h"

namespace stoker::rules {
namespace {

/// A start is worth a line from this share of an epoch and this long on.
constexpr double kStartOfEpoch = 0.02;
constexpr Nanos kLongStart = 1.0 * kSecond;
/// Where the epoch's length is unknown.
constexpr Nanos kVeryLongStart = 30.0 * kSecond;
/// Starting workers for longer than this is noticed.
constexpr Nanos kSlowWorkers = 5.0 * kSecond;
/// What mixed precision may gain on tensor cores; most published pairs of rates lie between 1.5 and
/// 3 (lambda_throughput.csv of the accuracy bench).
constexpr double kMixedPrecision = 2;

/// What an epoch's beginning is spent on, most of all.
struct Beginning {
  Nanos time;
  std::string why, cure;
};

Beginning longest_part(const Diagnosis& d) {
  const LoaderSettings& s = d.given.settings;
  const SampleCost& cost = d.given.sample;
  const auto batch = static_cast<double>(s.batch);
  const Nanos sample = cost.mean_cpu() + cost.mean_wait();
  const Nanos first = cost.warm_up + cost.warm_up_wait;
  Nanos collating, stream;
  if (!cost.batches.empty()) collating = batch_facts_at(cost.batches, batch).collate_wait;
  for (const StreamSet& set : cost.streams) {
    for (const StreamCost& one : set.workers) stream = std::max(stream, one.start);
  }
  std::vector<Beginning> parts{
      {batch * sample + collating,
       "one worker makes the whole first batch (" + std::to_string(s.batch) + " samples of " +
           human_time(sample) +
           (collating.count() > 0 ? ", " + human_time(collating) + " to put them together" : "") +
           ")",
       "a smaller batch starts sooner in proportion; fewer, longer epochs start less often"},
      {cost.start.sampler,
       "the sampler needs " + human_time(cost.start.sampler) + " until its first batch is known",
       "draw indices as they are needed instead of listing them all"},
      {stream,
       "a worker's first sample takes " + human_time(stream) + ": a buffer fills, or a file opens",
       "smaller buffers, or fewer, longer epochs"}};
  if (!s.persistent) {
    parts.push_back({cost.start.wait,
                     "a worker waits " + human_time(cost.start.wait) + " in its init function",
                     "let worker_init_fn do less"});
    parts.push_back(
        {first,
         "the first batch of a new worker takes " + human_time(first) + " more than its later ones",
         "open what each worker opens once, before the workers start"});
  }
  return *std::max_element(parts.begin(), parts.end(),
                           [](const Beginning& a, const Beginning& b) { return a.time < b.time; });
}

std::optional<Finding> epoch_start(const Diagnosis& d) {
  const LoaderSettings& s = d.given.settings;
  const Nanos start = d.now.epoch_start;
  if (s.workers == 0 || start < kLongStart) return std::nullopt;
  const bool known = d.now.epoch.count() > 0;
  const double share = known ? start / d.now.epoch : 0;
  if (known ? share < kStartOfEpoch : start < kVeryLongStart) return std::nullopt;
  const Beginning longest = longest_part(d);
  std::string evidence = "every epoch begins with " + human_time(start) + " without a batch" +
                         (known ? ", " + fine_percent(share) + " of it" : "") + ": " + longest.why;
  std::string cure;
  if (!s.persistent) {
    LoaderSettings kept = s;
    kept.persistent = true;
    const Nanos saved = start - d.with(kept).epoch_start;
    if (saved > 0.1 * start) {
      evidence += ", and the workers are started anew";
      cure = "persistent_workers=True saves " + human_time(saved) + " an epoch; ";
    }
  }
  cure += longest.cure;
  return Finding{"slow_epoch_start", Severity::kWarning, evidence, cure};
}

std::optional<Finding> worker_start(const Diagnosis& d) {
  const LoaderSettings& s = d.given.settings;
  if (s.workers == 0 || s.start_method == StartMethod::kFork) return std::nullopt;
  const auto& start = d.given.sample.start;
  const Nanos one = s.start_method == StartMethod::kSpawn ? start.spawn : start.forkserver;
  LoaderSettings forked = s;
  forked.start_method = StartMethod::kFork;
  // As simulated, at least as measured for one worker.
  const Nanos slower = std::max(d.now.first_batch - d.with(forked).first_batch, one - start.fork);
  const Nanos all =
      std::max(slower, one * static_cast<double>(s.workers) / std::max(1.0, d.given.host.cores));
  if (all < kSlowWorkers) return std::nullopt;
  std::string evidence = counted(s.workers, "worker") + " by " +
                         std::string(start_method_name(s.start_method)) + " start about " +
                         human_time(all) + " later than by fork";
  if (one.count() > 0)
    evidence += " (one alone: " + human_time(one) + " against " + human_time(start.fork) + ")";
  if (start.pickled.count() > 0)
    evidence += "; each is sent " + human_bytes(start.pickled) +
                " of pickled data set, one after "
                "the other";
  std::string cure =
      s.persistent ? "" : "persistent_workers=True pays it once instead of every epoch; ";
  cure +=
      "keep big members of the data set out of the pickle (memory-mapped files), or "
      "multiprocessing_context=\"fork\" where nothing has touched CUDA or started threads before";
  return Finding{"slow_worker_start", Severity::kWarning, evidence, cure};
}

std::optional<Finding> not_picklable(const Diagnosis& d) {
  if (d.given.pipeline == nullptr || d.given.pipeline->start.picklable) return std::nullopt;
  const bool fork = d.given.settings.start_method == StartMethod::kFork;
  return Finding{
      "not_picklable", fork ? Severity::kNote : Severity::kWarning,
      "the data set cannot be pickled (" + d.given.pipeline->start.why_not + "); workers that " +
          (fork ? "spawn or forkserver start need that, and from Python 3.14 on forkserver is "
                  "the default"
                : std::string(start_method_name(d.given.settings.start_method)) +
                      " starts need that"),
      "replace lambdas, local functions and open files in it by what can be pickled, or open them "
      "in the worker; or multiprocessing_context=\"fork\""};
}

/// PyTorch ends with "DataLoader timed out" where a batch is not there so long after it is wanted.
std::optional<Finding> times_out(const Diagnosis& d) {
  if (d.given.pipeline == nullptr || d.given.settings.workers == 0) return std::nullopt;
  const Nanos limit = d.given.pipeline->timeout;
  if (limit.count() <= 0) return std::nullopt;
  const Nanos longest = std::max(d.now.first_batch, d.now.wait);
  if (longest < limit) return std::nullopt;
  return Finding{"times_out", Severity::kWarning,
                 "the loader gives a batch " + human_time(limit) +
                     " (timeout) and is expected to "
                     "need " +
                     human_time(longest) + ": it would end with \"DataLoader timed out\"",
                 "timeout=0, or one well above that"};
}

std::optional<Finding> gpu_bound(const Diagnosis& d) {
  if (!d.given.sample.known || d.now.limit != InputLimit::kStep) return std::nullopt;
  const double ceiling = d.ceiling().samples_per_s;
  const double ratio = ceiling / d.now.samples_per_s;
  const double batch = static_cast<double>(d.given.settings.batch);
  return Finding{"gpu_bound", Severity::kNote,
                 "the step is the limit: the GPU waits " + human_time(d.now.wait) + " of " +
                     human_time(d.now.interval) + "; the loader could deliver " +
                     rate_text(ceiling) + ", " + decimal(ratio) + " times what the step takes",
                 "stop here: a faster loader brings nothing until a step takes less than " +
                     human_time(kSecond * (batch / ceiling))};
}

std::optional<Finding> data_bound_when_faster(const Diagnosis& d) {
  if (!d.given.sample.known || d.now.limit != InputLimit::kStep ||
      d.given.consumer.step.count() <= 0)
    return std::nullopt;
  Consumer faster = d.given.consumer;
  faster.step = faster.step / kMixedPrecision;
  faster.host_cpu = std::min(faster.host_cpu, faster.step);
  const LoaderForecast then =
      simulate_loader(d.given.settings, d.given.sample, d.given.host, faster);
  if (then.limit == InputLimit::kStep) return std::nullopt;
  return Finding{"data_bound_when_faster", Severity::kNote,
                 "with a step twice as fast, as mixed precision may make it, this loader is the "
                 "limit: " +
                     rate_text(then.samples_per_s) + " of " +
                     rate_text(static_cast<double>(d.given.settings.batch) / seconds(faster.step)) +
                     ", held back by " + std::string(input_limit_text(then.limit)),
                 "plan the loader for the faster step before buying it"};
}

}  // namespace

const std::vector<Rule>& epoch_rules() {
  static const std::vector<Rule> kRules{epoch_start, worker_start, not_picklable,
                                        times_out,   gpu_bound,    data_bound_when_faster};
  return kRules;
}

}  // namespace stoker::rules
