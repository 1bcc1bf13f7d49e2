#include "scenario/request/given_settings.h"

#include <cstdlib>

#include "scenario/settings/settings_table.h"

namespace stoker {
namespace {

/// Keeps what is said, in the order in which it is asked.
class Collector {
 public:
  template <class Number>
  void number(Setting setting, const std::optional<Number>& value) {
    if (value) given_.push_back({.setting = setting, .number = *value});
  }
  void pair(Setting setting, const std::optional<bool>& value) {
    if (value) given_.push_back({.setting = setting, .off = !*value});
  }
  void that(Setting setting, bool is_given) {
    if (is_given) given_.push_back({.setting = setting});
  }
  /// Texts of the environment are no settings of the request.
  void text(Setting setting, const GivenText& text) {
    that(setting, !text.text.empty() && text.where == mark(setting));
  }
  std::vector<GivenSetting> take() { return std::move(given_); }

 private:
  std::vector<GivenSetting> given_;
};

void collect_optimizer(const JobRequest& j, Collector& given) {
  given.that(Setting::kOptimizer, j.optimizer.kind.has_value());
  given.that(Setting::kOptimizerLoop, j.optimizer.loop.has_value());
  given.number(Setting::kMomentum, j.optimizer.momentum);
  given.number(Setting::kWeightDecay, j.optimizer.weight_decay);
  given.that(Setting::kNesterov, j.optimizer.nesterov);
  given.pair(Setting::kClip, j.clip);
  given.that(Setting::kClipChecks, j.clip_checks);
  given.pair(Setting::kEma, j.ema);
  given.pair(Setting::kGradScaler, j.grad_scaler);
  given.that(Setting::kZeroGradAfter, j.zero_grad_after);
  given.that(Setting::kZeroGradBetween, j.zero_grad_between);
  given.that(Setting::kZeroGradFills, j.zero_grad_fills);
}

void collect_loop(const JobRequest& j, Collector& given) {
  given.number(Setting::kAccumulate, j.accumulate);
  given.that(Setting::kCheckpoint, !j.checkpoint.empty());
  given.that(Setting::kLoss, j.loss.has_value());
  given.that(Setting::kCompile, j.compile);
  given.number(Setting::kNodes, j.nodes);
  given.number(Setting::kValidation, j.validation_batch);
  given.that(Setting::kValidationWithGrad, j.validation_with_grad);
  given.number(Setting::kValidationSamples, j.validation_samples);
  given.number(Setting::kEpochs, j.epochs);
  given.number(Setting::kThreads, j.threads);
}

void collect_of_gpus(const RunRequest& r, Collector& given) {
  const JobRequest& j = r.job;
  given.that(Setting::kParallel, j.parallel.has_value());
  given.that(Setting::kFsdpMixedPrecision, j.fsdp_precision.has_value());
  given.number(Setting::kFsdpGroup, j.fsdp_group);
  given.that(Setting::kBucketView, j.bucket_view);
  given.that(Setting::kLink, r.link.has_value());
  given.that(Setting::kCudaGraphs, j.cuda_graphs);
  given.that(Setting::kFsdpOffload, j.fsdp_offload);
  given.that(Setting::kCudnnBenchmark, j.cudnn_benchmark);
  given.that(Setting::kCopy, j.copy.has_value());
  if (!r.pin) given.pair(Setting::kPin, r.pin);
  given.that(Setting::kPrefetchingLoader, j.prefetching_loader);
  given.text(Setting::kAllocConf, r.allocator.config);
  given.number(Setting::kMemoryFraction, r.allocator.memory_fraction);
  given.text(Setting::kCublasWorkspace, r.allocator.cublas_workspace);
}

}  // namespace

const SettingRow& GivenSetting::row() const {
  for (const std::span<const SettingRow> part : {job_settings(), search_settings()}) {
    for (const SettingRow& row : part) {
      if (row.name == name_of(setting)) return row;
    }
  }
  std::abort();  // a setting of given_settings() without a row: a test looks for each
}

std::vector<GivenSetting> given_settings(const RunRequest& r) {
  Collector given;
  given.number(Setting::kGpus, r.gpus);
  given.number(Setting::kBatch, r.given_batch());
  given.number(Setting::kSamples, r.data.samples);
  given.number(Setting::kWorkers, r.workers);
  given.number(Setting::kPrefetch, r.prefetch);
  if (r.persistent_workers) given.pair(Setting::kPersistentWorkers, *r.persistent_workers);
  given.that(Setting::kStartMethod, r.start_method.has_value());
  given.number(Setting::kImageSize, r.data.image_size);
  collect_optimizer(r.job, given);
  collect_loop(r.job, given);
  collect_of_gpus(r, given);
  return given.take();
}

}  // namespace stoker
