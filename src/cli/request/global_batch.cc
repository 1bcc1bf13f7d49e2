#include "cli/request/global_batch.h"

#include <algorithm>

#include "base/setting.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {
namespace {

constexpr std::int64_t kMostAccumulated = 4096;

std::string text(std::int64_t number) { return std::to_string(number); }

Status uneven(std::int64_t global, std::int64_t part, const std::string& of) {
  const std::int64_t below = global / part * part;
  const std::string near = (below > 0 ? text(below) + " and " : std::string()) + text(below + part);
  return fail(ErrorCode::kUsage,
              text(global) + " samples cannot be shared evenly by " + of + "; " + near +
                  (below > 0 ? " can" : " can be"),
              "--global-batch");
}

/// The largest batch up to `limit` that makes `samples` in whole batches.
std::int64_t largest_divisor(std::int64_t samples, std::int64_t limit) {
  for (std::int64_t n = std::min(samples, limit); n > 1; --n) {
    if (samples % n == 0) return n;
  }
  return 1;
}

/// The batch per GPU, where neither it nor the accumulation was said.
Result<std::int64_t> batch_that_fits(std::int64_t per_gpu, const RunRequest& asked,
                                     const ScenarioTools& tools) {
  RunRequest request = asked;
  request.batch = BatchRequest(std::int64_t{1});
  Resolved resolved = TRY(resolve_exactly(request, tools));
  const auto at_once = TRY(batch_limits_of(resolved));
  if (at_once.low >= per_gpu) return per_gpu;
  // Gradients that are kept between batches take memory that one batch does not need.
  resolved.base.job.accumulate = 2;
  const auto accumulated = TRY(batch_limits_of(resolved));
  return largest_divisor(per_gpu, accumulated.low);
}

}  // namespace

Result<std::string> share_out(std::int64_t global, RunRequest& request,
                              const ScenarioTools& tools) {
  const std::int64_t gpus = request.gpus.value_or(1);
  const std::string on = text(gpus) + (gpus == 1 ? " GPU" : " GPUs");
  if (global % gpus != 0) TRY(uneven(global, gpus, on));
  const std::int64_t per_gpu = global / gpus;
  const auto given = request.given_batch();
  if (given && request.job.accumulate)
    return fail(ErrorCode::kUsage, "is batch x accumulate x GPUs; leave one of the three out",
                "--global-batch");
  std::int64_t batch = 0;
  if (given) {
    if (*given < 1 || per_gpu % *given != 0)
      TRY(uneven(global, std::max<std::int64_t>(1, *given) * gpus,
                 "batches of " + text(*given) + " on " + on));
    batch = *given;
  } else if (request.job.accumulate) {
    if (per_gpu % *request.job.accumulate != 0)
      TRY(uneven(global, *request.job.accumulate * gpus,
                 text(*request.job.accumulate) + " batches on " + on));
    batch = per_gpu / *request.job.accumulate;
  } else {
    batch = TRY(batch_that_fits(per_gpu, request, tools));
  }
  const std::int64_t accumulate = per_gpu / batch;
  if (accumulate > kMostAccumulated)
    return fail(ErrorCode::kUsage,
                "would take " + text(accumulate) + " batches of " + text(batch) + " on " + on +
                    ", and at most 4,096 are accumulated; take more GPUs or a smaller one",
                "--global-batch");
  request.batch = BatchRequest(batch);
  if (accumulate > 1) request.job.accumulate = accumulate;
  return "--batch " + text(batch) + " --accumulate " + text(accumulate) + " on " + on +
         " for the global batch of " + text(global) + " (--global-batch)";
}

}  // namespace stoker::cli
