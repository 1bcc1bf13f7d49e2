#include "plan/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/percent.h"
#include "base/text.h"
#include "forecast/memory/verdicts.h"

namespace stoker {
namespace {

/// What is worth less than this is not worth a line.
constexpr double kWorthSaying = 0.03;
/// Fewer GPUs are worth naming when they keep this share of the speed.
constexpr double kMostOfTheSpeed = 0.88;
/// The GPU counts as fed above this share of the speed that it has alone.
constexpr double kFed = 0.97;
/// Share of device time in convolutions from which their memory format is worth a try.
constexpr double kMostlyConvolution = 0.3;

std::string rate_text(double rate, const std::string& what) {
  return with_commas(std::llround(rate)) + " " + what + "/s";
}

class Adviser {
 public:
  Adviser(const PlanRequest& request, const Knowledge& knowledge, const TriedSetting& best)
      : request_(request),
        knowledge_(knowledge),
        best_(best),
        rate_(best.throughput.samples_per_s),
        unit_(request.sample_word) {}

  void fewer_gpus(const std::vector<TriedSetting>& by_gpus) {
    for (const TriedSetting& s : by_gpus) {
      if (s.scenario.job.gpus >= best_.scenario.job.gpus) break;
      const double share = s.throughput.samples_per_s / rate_;
      if (share < kMostOfTheSpeed) continue;
      const double price =
          static_cast<double>(s.scenario.job.gpus) / best_.scenario.job.gpus / share;
      add("stop at " + std::to_string(s.scenario.job.gpus) +
              (s.scenario.job.gpus == 1 ? " GPU: " : " GPUs: ") + percent(share) +
              " of the speed, " + percent(price) + " of the price of an epoch",
          share - 1, price - 1);
      return;
    }
  }

  void more_gpus(const std::vector<TriedSetting>& by_gpus) {
    for (const TriedSetting& s : by_gpus) {
      if (s.scenario.job.gpus <= best_.scenario.job.gpus) continue;
      const double gain = s.throughput.samples_per_s / rate_ - 1;
      if (gain < kGpuMustBring) {
        add("more than " + std::to_string(best_.scenario.job.gpus) +
                (best_.scenario.job.gpus == 1 ? " GPU does" : " GPUs do") +
                " not pay: " + std::to_string(s.scenario.job.gpus) + " bring " +
                percent(std::max(0.0, gain)) + " more speed",
            0, 0);
      }
      return;
    }
  }

  Status other_precision(const std::vector<TriedSetting>& by_precision) {
    for (const TriedSetting& s : by_precision) {
      const double gain = s.throughput.samples_per_s / rate_ - 1;
      if (gain > kWorthSaying) {
        add(std::string(name_of(s.scenario.job.precision)) + ": " +
                rate_text(s.throughput.samples_per_s, unit_) + " (" + signed_percent(gain) + ")",
            gain, same_gpus(gain));
      }
    }
    return {};
  }

  void more_host_memory() {
    const double gain = best_.beyond_host.samples_per_s / rate_ - 1;
    if (gain > kWorthSaying) {
      add(best_.beyond_host.shortage + ": " + rate_text(best_.beyond_host.samples_per_s, unit_) +
              " (" + signed_percent(gain) + ")",
          gain, same_gpus(gain));
    }
  }

  /// What else of the input is worth changing, by the plan of the input.
  void input_knobs(const InputPlan& input) {
    for (const Knob& knob : input.knobs) {
      if (knob.kind == KnobKind::kSetting || knob.name == "more_shared_memory") continue;
      const double rate = rate_ * (1 + knob.gain);
      add(knob.change + ": " + rate_text(rate, unit_) + " (" + signed_percent(knob.gain) + ")",
          knob.gain, same_gpus(knob.gain));
    }
  }

  Status channels_last() {
    if (best_.scenario.machine.device.cpu() != nullptr) return {};  // not measured there
    if (input_limited() || best_.scenario.job.channels_last || !mostly_convolution()) return {};
    Scenario s = best_.scenario;
    s.job.channels_last = true;
    const auto time = TRY(step_time_of(s, knowledge_));
    const double rate = throughput_of(s, time).samples_per_s;
    if (const double gain = rate / rate_ - 1; gain > kWorthSaying) {
      add("channels-last memory format: " + rate_text(rate, unit_) + " (" + signed_percent(gain) +
              ")",
          gain, same_gpus(gain));
    }
    return {};
  }

  Status fused_optimizer() {
    if (best_.scenario.machine.device.cpu() != nullptr) return {};
    if (input_limited() || best_.scenario.job.optimizer.loop == OptimizerLoop::kFused ||
        best_.scenario.step->mode != "train") {
      return {};
    }
    Scenario s = best_.scenario;
    s.job.optimizer.loop = OptimizerLoop::kFused;
    const auto time = TRY(step_time_of(s, knowledge_));
    if (const double gain = throughput_of(s, time).samples_per_s / rate_ - 1; gain > kWorthSaying) {
      add("fused=True for the optimizer: " + signed_percent(gain), gain, same_gpus(gain));
    }
    return {};
  }

  /// What takes work off the host, where the device waits for it.
  Status relieve_the_host() {
    if (!best_.time.host_bound() || input_limited()) return {};
    TRY(cuda_graphs());
    return larger_batch();
  }

  std::vector<Advice> take() {
    std::stable_sort(advice_.begin(), advice_.end(), [](const Advice& a, const Advice& b) {
      // Money saved at nearly the same speed counts as its saving.
      const auto worth = [](const Advice& x) { return x.gain > 0 ? x.gain : -x.price; };
      return worth(a) > worth(b);
    });
    return std::move(advice_);
  }

 private:
  /// "the host limits: 27 ms to issue what the GPU does in 16 ms".
  [[nodiscard]] std::string host_words() const {
    return "the host limits, " + human_time(best_.time.host) + " to issue what the GPU does in " +
           human_time(best_.time.device);
  }

  Status cuda_graphs() {
    if (best_.scenario.machine.device.gpu() == nullptr || best_.scenario.job.cuda_graphs) return {};
    Scenario s = best_.scenario;
    s.job.cuda_graphs = true;
    const auto time = step_time_of(s, knowledge_);
    if (!time) return {};  // a step that waits for the device cannot be captured
    const double rate = throughput_of(s, *time).samples_per_s;
    if (const double gain = rate / rate_ - 1; gain > kWorthSaying) {
      add("CUDA graphs (" + host_words() + "): " + rate_text(rate, unit_) + " (" +
              signed_percent(gain) + ")",
          gain, same_gpus(gain));
    }
    return {};
  }

  /// Samples of a GPU's batch that fit, that the user allows and that the data set has.
  [[nodiscard]] std::int64_t most_samples() const {
    const Job& job = best_.scenario.job;
    const std::int64_t batches = static_cast<std::int64_t>(job.gpus) * job.accumulate;  // a step
    std::int64_t most = best_.limits.low;
    for (const std::int64_t all :
         {request_.limits.max_global_batch, best_.scenario.dataset_samples}) {
      if (all > 0) most = std::min(most, all / batches);
    }
    return most;
  }

  /// The first doubling of the batch, among those that fit, from which the host limits no longer.
  Status larger_batch() {
    if (best_.scenario.machine.device.gpu() == nullptr) return {};
    Scenario s = best_.scenario;
    const std::int64_t most = most_samples();
    while (2 * s.job.batch <= most) {
      s.job.batch *= 2;
      s.loader.batch = s.job.batch;
      const auto time = TRY(step_time_of(s, knowledge_));
      if (time.host_bound() && 4 * s.job.batch <= most) continue;
      const double rate = throughput_of(s, time).samples_per_s;
      if (const double gain = rate / rate_ - 1; gain > kWorthSaying) {
        add("batch " + std::to_string(s.job.batch) + " (" + host_words() +
                "): " + rate_text(rate, unit_) + " (" + signed_percent(gain) + ")",
            gain, same_gpus(gain));
      }
      return {};
    }
    return {};
  }

  /// Change of an epoch's GPU-hours when as many GPUs are so much faster.
  static double same_gpus(double gain) { return 1 / (1 + gain) - 1; }

  static std::string signed_percent(double gain) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%+.0f %%", 100 * gain);
    return buffer;
  }
  void add(std::string what, double gain, double price) {
    advice_.push_back({std::move(what), gain, price});
  }
  double gpu_alone() const {
    return static_cast<double>(best_.scenario.job.batch) * best_.scenario.job.accumulate *
           best_.scenario.job.gpus / seconds(best_.time.total);
  }
  bool input_limited() const { return best_.scenario.sample.known && rate_ < kFed * gpu_alone(); }
  bool mostly_convolution() const {
    const auto of = [&](KernelClass c) {
      return best_.time.class_device[static_cast<std::size_t>(c)].count();
    };
    return of(KernelClass::kConvolution) + of(KernelClass::kDepthwiseConvolution) >
           kMostlyConvolution * best_.time.device.count();
  }

  const PlanRequest& request_;
  const Knowledge& knowledge_;
  const TriedSetting& best_;
  double rate_;
  std::string unit_;
  std::vector<Advice> advice_;
};

}  // namespace

Result<std::vector<Advice>> advise(const PlanRequest& request, const Knowledge& knowledge,
                                   const TriedSetting& best,
                                   const std::vector<TriedSetting>& by_gpus,
                                   const std::vector<TriedSetting>& by_precision,
                                   const std::optional<InputPlan>& input) {
  Adviser adviser(request, knowledge, best);
  adviser.fewer_gpus(by_gpus);
  adviser.more_gpus(by_gpus);
  adviser.more_host_memory();
  if (input) adviser.input_knobs(*input);
  for (const Status& status : {adviser.other_precision(by_precision), adviser.channels_last(),
                               adviser.fused_optimizer(), adviser.relieve_the_host()}) {
    if (!status) return tl::unexpected(status.error());
  }
  return adviser.take();
}

}  // namespace stoker
