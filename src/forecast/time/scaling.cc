#include "forecast/time/scaling.h"

#include <algorithm>
#include <cmath>

#include "base/setting.h"
#include "base/text.h"
#include "forecast/node_share.h"
#include "forecast/settings.h"
#include "timing/collective/collectives.h"

namespace stoker {
namespace {

/// Ranks of a measured step still differ from run to run.
constexpr double kMeasuredSpread = 0.03;

double global_samples(const Job& job) { return static_cast<double>(job.batch) * job.accumulate; }

/// As few nodes as hold the GPUs, in equal parts.
int nodes_for(int gpus, int gpus_per_node) {
  int nodes = (gpus + gpus_per_node - 1) / gpus_per_node;
  while (gpus % nodes != 0) ++nodes;
  return nodes;
}

/// The forecast of one job, as far as scaling reads it.
struct Run {
  Scenario scenario;
  Forecast forecast;
  double rate = 0;  ///< samples/s of the whole job
};

class Scaler {
 public:
  Scaler(const Scenario& scenario, const ScalingRequest& request, const Knowledge& knowledge)
      : base_(scenario), request_(request), knowledge_(knowledge) {}

  Result<Scaling> run();

 private:
  Scenario scenario_for(int gpus) const;
  Result<Run> forecast_of(Scenario scenario) const;
  Result<Run> alone();
  ScalingPoint point_for(int gpus, const ScalingPoint* before) const;
  std::string worst_loss(const Run& run) const;
  Figure banded(double value, const Run& run, bool of_time) const;
  void judge(Scaling& scaling) const;
  void add_alternatives(Scaling& scaling) const;

  const Scenario& base_;
  const ScalingRequest& request_;
  const Knowledge& knowledge_;
  double pace_ = 1;
  Run one_;
};

/// The job shared in this way, without what belongs to others.
void share_by(Parallel parallel, Job& job) {
  job.parallel = parallel;
  if (parallel != Parallel::kDdp) job.gradient_as_bucket_view = false;
  if (is_fsdp(parallel)) return;
  job.fsdp_precision = FsdpPrecision::kNone;
  job.fsdp_group = 0;
  job.fsdp_offload = false;
}

Scenario Scaler::scenario_for(int gpus) const {
  Scenario s = base_;
  s.pace = pace_;
  s.job.gpus = gpus;
  s.job.nodes = nodes_for(gpus, request_.gpus_per_node);
  s.machine.nodes = s.job.nodes;
  s.machine.gpu_count = gpus_per_node(gpus, s.job.nodes);
  if (gpus == 1) share_by(Parallel::kDdp, s.job);
  if (gpus < s.job.fsdp_group) s.job.fsdp_group = 0;
  std::int64_t batch = base_.job.batch;
  if (request_.strong) {
    const Share share = share_of(base_.job.batch, base_.job.accumulate, gpus);
    batch = share.batch;
    s.job.accumulate = share.accumulate;
  }
  set_batch(s, batch);
  if (!request_.loader_given)
    s.loader.workers = workers_of_cores(s.machine.host.cores, s.machine.gpu_count);
  return s;
}

Result<Run> Scaler::forecast_of(Scenario scenario) const {
  auto f = TRY(forecast(scenario, knowledge_));
  Run run{std::move(scenario), std::move(f), 0};
  const Job& job = run.scenario.job;
  run.rate = run.forecast.samples_per_s.value;
  // Where the global batch does not divide, some GPUs have less to do and wait.
  if (request_.strong) run.rate *= global_samples(base_.job) / (global_samples(job) * job.gpus);
  return run;
}

Result<Run> Scaler::alone() {
  auto run = forecast_of(scenario_for(1));
  if (!run || request_.step_ms <= 0) return run;
  pace_ = request_.step_ms / run->forecast.step_ms.value;
  return forecast_of(scenario_for(1));
}

/// A measured step of one GPU leaves only what more GPUs add uncertain.
Figure Scaler::banded(double value, const Run& run, bool of_time) const {
  const StepTime& time = run.forecast.time;
  Band band = time.band;
  if (request_.step_ms > 0) {
    const double exposed = time.exposed_communication / time.total;
    const double relative = std::hypot(kMeasuredSpread, exposed * time.communication_spread);
    band = {relative / (1 + relative), relative};
  }
  if (of_time) return with_band(value, band, time.basis);
  return {value, value / (1 + band.above), value / (1 - band.below), time.basis};
}

/// What the step loses against one GPU's, by its largest part.
std::string Scaler::worst_loss(const Run& run) const {
  const Forecast& f = run.forecast;
  const StepTime& t = f.time;
  const Job& job = run.scenario.job;
  const double total = t.total.count();
  const double samples =
      request_.strong ? global_samples(base_.job) : global_samples(job) * job.gpus;
  const double elapsed = samples / run.rate * 1e9;
  const double fair = samples / one_.rate / job.gpus * 1e9;
  struct Loss {
    double time;
    std::string what;
  };
  const double slowest = t.straggling.count();
  const double host = t.exposed_host.count() -
                      one_.forecast.time.exposed_host.count() / (request_.strong ? job.gpus : 1);
  const auto optimizer = static_cast<std::size_t>(StepPhase::kOptimizer);
  const double on_host =
      job.fsdp_offload ? (t.phase_elapsed[optimizer] - t.phase_device[optimizer]).count() : 0;
  std::vector<Loss> losses{
      {elapsed - total,
       f.limiter.kind == Limiter::kInput ? f.limiter.what : "uneven shares of the batch"},
      {t.exposed_communication.count() - slowest, "waiting for communication"},
      {slowest, "waiting for the slowest GPU"},
      {on_host, "the optimizer on the host's processor"},
      {host, "launching kernels (Python and CPU)"}};
  double known = 0;
  for (const Loss& loss : losses) known += std::max(0.0, loss.time);
  losses.push_back({elapsed - fair - known, "smaller batches use a GPU less well"});
  const auto most = std::max_element(losses.begin(), losses.end(),
                                     [](const Loss& a, const Loss& b) { return a.time < b.time; });
  const double share = most->time / elapsed;
  if (share < 0.005) return "nothing worth naming";
  return most->what + ", " + std::to_string(std::lround(100 * share)) + " % of the step";
}

ScalingPoint Scaler::point_for(int gpus, const ScalingPoint* before) const {
  ScalingPoint point;
  point.gpus = gpus;
  const Scenario scenario = scenario_for(gpus);
  point.nodes = scenario.job.nodes;
  point.batch = scenario.job.batch;
  point.accumulate = scenario.job.accumulate;
  if (request_.strong && gpus > global_samples(base_.job)) {
    point.impossible = "more GPUs than samples in the global batch of " +
                       with_commas(std::llround(global_samples(base_.job)));
    return point;
  }
  const auto run = forecast_of(scenario);
  if (!run) {
    point.impossible = run.error().message;
    return point;
  }
  const StepTime& time = run->forecast.time;
  point.fits = run->forecast.memory.fits;
  point.verdict = run->forecast.memory.verdict;
  point.step_ms = banded(milliseconds(time.total), *run, true);
  point.samples_per_s = banded(run->rate, *run, false);
  point.efficiency = run->rate / gpus / one_.rate;
  const int fewer = before != nullptr ? before->gpus : 1;
  const double rate = before != nullptr ? before->samples_per_s.value : one_.rate;
  point.marginal = gpus > fewer ? (run->rate - rate) / (gpus - fewer) / one_.rate : 1;
  point.communication_ms = milliseconds(time.communication);
  point.exposed_communication_ms = milliseconds(time.exposed_communication);
  point.loss = gpus > 1 ? worst_loss(*run) : "";
  return point;
}

/// A further GPU pays while it adds at least kLeastMarginal of what the first does.
void Scaler::judge(Scaling& scaling) const {
  for (const ScalingPoint& point : scaling.points) {
    if (!point.impossible.empty()) {
      if (scaling.stops_at == 0 && point.gpus > scaling.pays_up_to) {
        scaling.stops_at = point.gpus;
        scaling.why = point.impossible;
      }
    } else if (point.gpus > 1 && point.marginal < kLeastMarginal) {
      scaling.stops_at = point.gpus;
      scaling.why = point.loss;
    }
    if (scaling.stops_at > 0) return;
    scaling.pays_up_to = point.gpus;
    scaling.why = point.loss;
  }
}

/// The ways that this number of GPUs could also share the job.
void Scaler::add_alternatives(Scaling& scaling) const {
  if (scaling.pays_up_to < 2 || base_.step->mode != "train") return;
  for (const Parallel parallel :
       {Parallel::kDdp, Parallel::kFsdpZero2, Parallel::kFsdpZero3, Parallel::kDataParallel}) {
    Scenario s = scenario_for(scaling.pays_up_to);
    if (parallel == Parallel::kDataParallel && s.job.nodes > 1) continue;
    share_by(parallel, s.job);
    const auto run = forecast_of(std::move(s));
    if (!run) continue;
    scaling.alternatives.push_back({parallel,
                                    banded(milliseconds(run->forecast.time.total), *run, true),
                                    run->forecast.memory.fits});
  }
  std::stable_sort(scaling.alternatives.begin(), scaling.alternatives.end(),
                   [](const auto& a, const auto& b) { return a.step_ms.value < b.step_ms.value; });
}

Result<Scaling> Scaler::run() {
  auto one = TRY(alone());
  one_ = std::move(one);
  Scaling scaling;
  scaling.strong = request_.strong;
  scaling.global_batch = std::llround(global_samples(base_.job));
  scaling.pace = pace_;
  scaling.one_gpu_step_ms = banded(milliseconds(one_.forecast.time.total), one_, true);
  scaling.one_gpu_samples_per_s = banded(one_.rate, one_, false);
  const ScalingPoint* before = nullptr;
  scaling.points.reserve(request_.counts.size());
  for (const int gpus : request_.counts) {
    scaling.points.push_back(point_for(gpus, before));
    if (scaling.points.back().impossible.empty()) before = &scaling.points.back();
  }
  judge(scaling);
  add_alternatives(scaling);
  scaling.basis = one_.forecast.time.basis;
  if (before != nullptr) {
    scaling.basis = before->step_ms.basis;
    const auto coefficients = TRY(knowledge_.timing.for_device(base_.machine.device));
    const std::string fabric =
        link_assumption(base_.machine, {gpus_per_node(before->gpus, before->nodes), before->nodes},
                        coefficients.collective);
    if (!fabric.empty()) scaling.assumed.push_back(fabric);
  }
  return scaling;
}

}  // namespace

Share share_of(std::int64_t batch, int accumulate, int gpus) {
  const std::int64_t global = batch * accumulate;
  // Rounded up, so that a micro-batch never grows.
  const std::int64_t samples = (global + gpus - 1) / gpus;
  Share share;
  share.accumulate = static_cast<int>(std::max<std::int64_t>(1, (samples + batch - 1) / batch));
  share.batch = std::max<std::int64_t>(1, (samples + share.accumulate - 1) / share.accumulate);
  return share;
}

Result<Scaling> forecast_scaling(const Scenario& scenario, const ScalingRequest& request,
                                 const Knowledge& knowledge) {
  if (request.counts.empty() || request.counts.front() < 1)
    return fail(ErrorCode::kUsage, "needs numbers of GPUs from 1 up", mark(Setting::kGpus));
  if (request.gpus_per_node < 1)
    return fail(ErrorCode::kUsage, "must be at least 1", mark(Setting::kGpusPerNode));
  return Scaler(scenario, request, knowledge).run();
}

}  // namespace stoker
