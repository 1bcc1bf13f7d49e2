#include "forecast/settings.h"

namespace stoker {

void set_precision(Scenario& s, const Step& step, Precision precision) {
  s.step = &step;
  s.job.precision = precision;
  const bool train = step.mode == "train";
  const bool usual = precision == Precision::kAmpFp16;
  const bool captured = train && step.training.grad_scaler.value_or(usual);
  s.job.grad_scaler = s.grad_scaler.value_or(captured);
}

void set_pinning(Scenario& s, bool pin) {
  s.loader.pin = pin;
  s.job.copy = pin ? s.copy : CopyWay::kPageable;
}

void set_batch(Scenario& s, std::int64_t batch) {
  s.job.batch = batch;
  s.job.last_batch = last_batch_at(s.last_batch, batch, s.job.gpus);
}

}  // namespace stoker
