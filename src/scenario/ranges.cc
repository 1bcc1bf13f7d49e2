#include "scenario/ranges.h"

#include <cstdio>
#include <string>

#include "base/text.h"

namespace stoker {

Status check_range(Setting setting, const std::optional<std::int64_t>& value, std::int64_t low,
                   std::int64_t high) {
  if (!value || (*value >= low && *value <= high)) return {};
  return fail(ErrorCode::kBadInput,
              "must be between " + with_commas(low) + " and " + with_commas(high) + ", not " +
                  std::to_string(*value),
              mark(setting));
}

Status check_price(double price) {
  if (price > 0 && price < kDearestGpu) return {};
  char number[32];
  std::snprintf(number, sizeof number, "%g", price);
  return fail(ErrorCode::kBadInput,
              std::string("must be a positive price per GPU and hour, not ") + number,
              mark(Setting::kPrice));
}

Status check_ranges(const RunRequest& r) {
  struct Range {
    Setting setting;
    std::optional<std::int64_t> value;
    std::int64_t low, high;
  };
  for (const Range& range :
       {Range{Setting::kBatch, r.given_batch(), 1, kMostBatch},
        {Setting::kSamples, r.data.samples, 1, kMostSamples},
        {Setting::kWorkers, r.workers, 0, kMostWorkers},
        {Setting::kPrefetch, r.prefetch, 1, kMostWorkers},
        {Setting::kImageSize, r.data.image_size, 1, kMostImageSide},
        {Setting::kAccumulate, r.job.accumulate, 1, 4096},
        {Setting::kNodes, r.job.nodes, 1, 1024},
        {Setting::kValidation, r.job.validation_batch, 1, kMostBatch},
        {Setting::kValidationSamples, r.job.validation_samples, 1, kMostSamples},
        {Setting::kEpochs, r.job.epochs, 1, 1LL << 20}}) {
    TRY(check_range(range.setting, range.value, range.low, range.high));
  }
  if (r.price_per_gpu_hour) TRY(check_price(*r.price_per_gpu_hour));
  return {};
}

}  // namespace stoker
