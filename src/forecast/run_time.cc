#include "forecast/run_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "forecast/forecast.h"
#include "forecast/short_batch.h"
#include "forecast/start_up.h"

namespace stoker {
namespace {

/// Both are wrong in the same direction, or may be: their bands add.
Figure plus(const Figure& a, const Figure& b) {
  return {a.value + b.value, a.low + b.low, a.high + b.high, a.basis};
}

const PassTime* pass_of(const Forecast& f, const char* name) {
  const auto it = std::find_if(f.passes.begin(), f.passes.end(),
                               [&](const PassTime& p) { return p.name.starts_with(name); });
  return it == f.passes.end() ? nullptr : &*it;
}

/// Each rank validates its share, through a loader like that of the training.
Figure validation(const Scenario& s, const Forecast& f) {
  const PassTime* pass = pass_of(f, "validation");
  if (pass == nullptr || s.validation_samples <= 0) return {};
  const auto batch = static_cast<double>(*s.job.validation_batch);
  const double samples = static_cast<double>(s.validation_samples) / s.job.gpus;
  const double on_gpu = std::ceil(samples / batch) * seconds(pass->total);
  double value = on_gpu;
  Band band = f.time.band;
  std::string basis = f.time.basis;
  if (s.sample.known) {
    LoaderSettings loader = s.loader;
    loader.batch = *s.job.validation_batch;
    loader.dataset_samples = s.validation_samples;
    const LoaderForecast l = simulate_loader(
        loader, s.sample, host_share(s),
        Consumer{.step = pass->total, .host_cpu = std::min(pass->total, pass->host)});
    value = std::max(on_gpu, seconds(l.epoch));
    if (value > on_gpu) {
      band = {std::max(band.below, s.sample.band.below), std::max(band.above, s.sample.band.above)};
      basis = s.sample.basis;
    }
  }
  return with_band(value, band, basis);
}

/// What a smaller last batch takes more than its share of a full step; the samples themselves are
/// in the epoch's time already, and where the data set leaves such a batch over, all of it is.
double last_batch_excess(const Scenario& s, const Forecast& f) {
  const PassTime* pass = pass_of(f, "last batch");
  if (pass == nullptr || f.job.last_batch <= 0 || short_batch(s) > 0) return 0;
  const double share = static_cast<double>(f.job.last_batch) / static_cast<double>(f.job.batch);
  return std::max(0.0, seconds(pass->total) - share * seconds(f.time.total));
}

}  // namespace

RunTime run_time_of(const Scenario& s, const Program& program, const Forecast& f) {
  RunTime run;
  if (s.epochs <= 0 || f.epoch_s.value <= 0) return run;
  run.epochs = s.epochs;
  run.start_up = start_up_parts(s, program, f);
  for (const RunPart& part : run.start_up)
    run.seconds_start_up = plus(run.seconds_start_up, part.seconds);
  run.seconds_start_up.basis = "sum of its parts";
  run.seconds_validation = validation(s, f);
  const double excess = last_batch_excess(s, f);
  run.seconds_epoch = plus(plus(f.epoch_s, {excess, excess, excess, ""}), run.seconds_validation);
  run.seconds_first_epoch = plus(run.seconds_epoch, run.seconds_start_up);
  run.seconds_total =
      plus(scaled(run.seconds_epoch, static_cast<double>(s.epochs)), run.seconds_start_up);
  return run;
}

}  // namespace stoker
