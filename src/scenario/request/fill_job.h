#pragma once

#include <cstdint>

#include "base/result.h"
#include "forecast/forecast.h"
#include "scenario/request/request.h"

namespace stoker {

/// Fills the rest of the job of `scenario` from the captured step and the request; its
/// `dataset_samples` are known already. Precision, batch and GPUs are left to the caller.
[[nodiscard]] Status fill_job(const JobRequest& request, const Step& step, Scenario& scenario);

/// How several GPUs share the job.
[[nodiscard]] Status fill_parallel(const JobRequest& request, Job& job);

/// What cannot be meant once the number of GPUs is decided: FSDP or a bucket view on one.
[[nodiscard]] Status check_gpus_of(const Scenario& scenario);
/// A bucket view where no more than `most_gpus` are considered.
[[nodiscard]] Status check_bucket_view(const Job& job, int most_gpus);

/// What is left of an epoch is less than a batch.
[[nodiscard]] Status check_last_batch(const Scenario& scenario, std::int64_t batch);

}  // namespace stoker
