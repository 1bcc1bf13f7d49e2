#pragma once

#include <string>
#include <utility>
#include <vector>

#include "evidence/training/training_validation.h"

/// Rows that tests share.
namespace stoker::test_rows {

inline const char* const kCpuCalibration = R"({
 "format": "stoker-calibration", "schema_version": [1, 0],
 "provenance": {"date": "2026-11-28", "torch": "2.13.0+cpu", "driver": "", "onednn": "3.11"},
 "device": {"kind": "cpu", "name": "Xeon", "cores": 2, "simd_bits": 512, "l1_bytes": 49152,
            "l2_bytes": 2097152, "l3_bytes": 272629760, "memory_bytes": 25276317696,
            "context_bytes": 251658240, "clock_mhz": 2300.0},
 "load": {"foreign_share": 0.004, "steal_share": 0.001, "others_on_gpu": 0,
          "clocks_changed": false, "disturbed": false, "why": ""},
 "threads": [1, 2],
 "figures": [
  {"name": "call_us", "threads": 0, "value": 1.9, "spread": 0.02},
  {"name": "forward_us", "threads": 0, "value": 5.1, "spread": 0.03},
  {"name": "copy_gbs", "threads": 1, "value": 14.1, "spread": 0.02},
  {"name": "copy_gbs", "threads": 2, "value": 25.3, "spread": 0.02},
  {"name": "fma_gflops", "threads": 1, "value": 95.0, "spread": 0.01},
  {"name": "fma_gflops", "threads": 2, "value": 186.0, "spread": 0.01}],
 "operators": [
  {"kind": "gemm", "function": "mm", "sizes": {"m": 256, "n": 512, "k": 256}, "precision": "fp32",
   "pass": "forward", "threads": 1, "time_us": 720.0, "spread": 0.01, "warm": true},
  {"kind": "convolution", "function": "convolution_backward",
   "sizes": {"batch": 8, "in_channels": 64, "out_channels": 64, "height": 28, "width": 28,
             "kernel": 3, "stride": 1, "padding": 1, "groups": 1}, "precision": "fp32",
   "pass": "backward_weight", "threads": 2, "time_us": 5600.0, "spread": 0.01, "warm": true}],
 "complete": false})";

inline const char* const kTraining = R"({
 "format": "stoker-training-runs", "schema_version": [1, 0],
 "provenance": {"date": "2026-11-28", "torch": "2.13.0+cpu", "cuda": null},
 "device": {"kind": "cpu", "name": "Xeon", "cores": 2, "memory_bytes": 25276502016},
 "rule": "the best good repetition counts",
 "runs": [
  {"model": "models.py:net", "name": "net", "batch": 4, "threads": 1, "precision": "fp32",
   "optimizer": {"name": "sgd", "momentum": 0.9}, "status": "ok", "note": "", "steps": 7,
   "repetitions": [
    {"step_ms": 412.3, "phases": {"forward_ms": 131.0, "loss_ms": 0.5, "backward_ms": 266.0,
     "optimizer_ms": 14.5, "h2d_ms": 0.0, "data_ms": 0.25}, "resident_peak_bytes": 612000000,
     "resident_before_bytes": 230000000, "allocated_peak_bytes": null, "good": true, "why": ""},
    {"step_ms": 400.0, "phases": null, "resident_peak_bytes": 600000000, "good": false,
     "why": "others"},
    {"step_ms": 409.9, "phases": {"forward_ms": 130.0, "loss_ms": 0.2, "backward_ms": 265.0,
     "optimizer_ms": 14.1}, "resident_peak_bytes": 612400000, "good": true, "why": ""}]},
  {"model": "models.py:net", "name": "net", "batch": 4096, "threads": 1, "status": "oom",
   "note": "out of memory", "optimizer": null, "repetitions": []},
  {"model": "models.py:broken", "batch": 8, "threads": 2, "status": "failed", "note": "raised",
   "repetitions": []}],
 "complete": true})";

/// A run that was measured at `fact_ms` and forecast at `step_ms`, all of it in the backward's
/// convolutions and the forward's matrix products in these shares.
inline ComparedRun compared(std::string name, std::int64_t batch, double step_ms, double fact_ms,
                            double convolution_share = 1) {
  ComparedRun run;
  run.run.model = run.run.name = std::move(name);
  run.run.batch = batch;
  run.run.threads = 2;
  TrainingRepetition repetition;
  repetition.step = kMillisecond * fact_ms;
  repetition.peaks.resident = kMiB * 500;
  run.run.repetitions = {repetition, repetition};
  run.fact = fact_of(run.run);
  RunForecast forecast;
  const Band band{0.2, 0.2};
  forecast.forecast.step_ms = with_band(step_ms, band, "test");
  forecast.forecast.memory.device_peak =
      with_band(static_cast<double>((kMiB * 510).count()), {0.05, 0.05}, "test");
  forecast.forecast.memory.fits = true;
  const auto convolution = static_cast<std::size_t>(KernelClass::kConvolution);
  const auto gemm = static_cast<std::size_t>(KernelClass::kGemm);
  forecast.classes.by_phase[static_cast<std::size_t>(StepPhase::kBackward)][convolution] =
      convolution_share * step_ms;
  forecast.classes.by_phase[static_cast<std::size_t>(StepPhase::kForward)][gemm] =
      (1 - convolution_share) * step_ms;
  run.forecast = std::move(forecast);
  return run;
}

}  // namespace stoker::test_rows
