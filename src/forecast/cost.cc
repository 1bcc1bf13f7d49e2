#include "forecast/cost.h"

#include "base/units.h"
#include "forecast/forecast.h"

namespace stoker {
Figure gpu_hours(const Figure& seconds, int gpus) { return scaled(seconds, gpus / kSecondsAnHour); }

void add_cost(Forecast& f) {
  if (f.epoch_s.value > 0) f.gpu_hours_per_epoch = gpu_hours(f.epoch_s, f.job.gpus);
  if (f.price_per_gpu_hour <= 0) return;
  if (f.epoch_s.value > 0) f.epoch_cost = scaled(f.gpu_hours_per_epoch, f.price_per_gpu_hour);
  if (f.run.epochs > 0)
    f.run_cost = scaled(gpu_hours(f.run.seconds_total, f.job.gpus), f.price_per_gpu_hour);
}

}  // namespace stoker
