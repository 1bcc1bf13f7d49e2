#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "forecast/forecast.h"

namespace stoker::cli {

/// What the user typed about the training step itself.
struct JobOptions {
  std::string optimizer, optimizer_loop, parallel, checkpoint, last_batch, copy;
  std::optional<std::int64_t> accumulate, nodes, seq_len, validation, validation_samples, epochs,
      threads;
  std::optional<double> momentum, weight_decay;
  std::vector<std::string> dimensions;
  bool nesterov = false, channels_last = false, cudnn_benchmark = false, bucket_view = false,
       zero_grad_after = false, zero_grad_fills = false, clip = false, no_clip = false, ema = false,
       no_ema = false, grad_scaler = false, no_grad_scaler = false, prefetching_loader = false,
       validation_with_grad = false, clip_checks = false, cuda_graphs = false;
};

/// Under their headings.
[[nodiscard]] std::vector<Flag> job_flags(JobOptions& o);

[[nodiscard]] Status fill_dimensions(const JobOptions& o, Job& job);

/// Fills the rest of the job of `scenario` from the captured step and the flags; its
/// `dataset_samples` are known already. Precision, batch and GPUs are left to the verb.
[[nodiscard]] Status fill_job(const JobOptions& o, const Step& step, Scenario& scenario);

/// What cannot be meant once the number of GPUs is decided: FSDP or a bucket view on one.
[[nodiscard]] Status check_gpus_of(const Scenario& scenario);

/// What the flags say of how several GPUs share the job.
[[nodiscard]] Status fill_parallel(const JobOptions& o, Job& job);
/// A bucket view where no more than `most_gpus` are considered.
[[nodiscard]] Status check_bucket_view(const Job& job, int most_gpus);

/// What is left of an epoch is less than a batch.
[[nodiscard]] Status check_last_batch(const Scenario& scenario, std::int64_t batch);

}  // namespace stoker::cli
