#pragma once

#include "report/model/report.h"

/// A forecast as the models would hand it over, in round numbers, for tests of what is said of it.
namespace stoker::testing_support {

inline Nanos millis(double ms) { return ms * kMillisecond; }

/// Batch 32 on one GPU of 16 GiB: 4 GiB [3-5], 320 [300-340] samples a second, limited by kernels.
inline Forecast made_forecast() {
  Forecast f;
  f.job.batch = 32;
  f.gpu_name = "T4";
  f.memory.device_peak = {4.0 * kGiB.count(), 3.0 * kGiB.count(), 5.0 * kGiB.count(), "rows"};
  f.memory.reserved_peak = f.memory.allocated_peak = f.memory.device_peak;
  f.memory.usable = kGiB * 15;
  f.memory.nameplate = kGiB * 16;
  f.memory.fits = true;
  f.memory.verdict = MemoryVerdictWord::kFits;
  f.memory.peak_words = "backward, iteration 2";
  f.step_ms = {100, 90, 110, "rows"};
  f.forward_ms = exact(30, "rows");
  f.backward_ms = exact(60, "rows");
  f.optimizer_ms = exact(10, "rows");
  f.host_ms = exact(20, "rows");
  f.samples_per_s = {320, 300, 340, "rows"};
  f.gpu_busy = exact(0.9, "rows");
  f.mfu = exact(0.4, "rows");
  f.limiter = {Limiter::kGpuCompute, "GPU compute", 320};
  f.next_limiter = {Limiter::kInput, "preparing samples", 1234};
  f.time.device = millis(100);
  f.time.total = millis(100);
  return f;
}

inline ReportContext made_context() {
  ReportContext c;
  c.tool_version = "9.8.7";
  c.model = "resnet50";
  c.model_line = "resnet50 | T4";
  c.sample_word = "img";
  c.host_name = "host";
  c.host_cores = 8;
  return c;
}

/// What an epoch and a run of it take and cost.
inline void give_epoch(Forecast& f, double seconds, double money, std::int64_t epochs = 0) {
  f.epoch_s = {seconds, seconds * 0.9, seconds * 1.1, "rows"};
  f.epoch_cost = exact(money, "rows");
  f.price_per_gpu_hour = money > 0 ? 1 : 0;
  f.gpu_hours_per_epoch = exact(seconds * f.job.gpus / kSecondsAnHour, "rows");
  if (epochs == 0) return;
  const auto n = static_cast<double>(epochs);
  f.run.epochs = epochs;
  f.run.seconds_total = scaled(f.epoch_s, n);
  f.run.seconds_epoch = f.run.seconds_first_epoch = f.epoch_s;
  f.run_cost = exact(money * n, "rows");
}

}  // namespace stoker::testing_support
