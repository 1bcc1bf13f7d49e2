#include "scenario/request/fill_job.h"

#include <string>

#include "base/setting.h"
#include "scenario/request/fill_optimizer.h"
#include "scenario/request/refuse.h"

namespace stoker {
namespace {

Status fill_last_batch(const LastBatchRequest& request, Scenario& s) {
  if (std::holds_alternative<RestOfDataSet>(request)) {
    if (s.dataset_samples <= 0) {
      return refuse("auto needs the size of the data set: " + mark(Setting::kData) + " or " +
                        mark(Setting::kSamples),
                    Setting::kLastBatch);
    }
    s.last_batch.samples = s.dataset_samples;
    return {};
  }
  s.last_batch.given = std::get<std::int64_t>(request);
  if (s.last_batch.given < 1)
    return refuse("is auto, or a number of samples from 1 up", Setting::kLastBatch);
  return {};
}

Status fill_passes(const JobRequest& r, Scenario& s) {
  if (r.validation_batch != 0) s.job.validation_batch = r.validation_batch;
  s.job.validation_no_grad = !r.validation_with_grad;
  const std::string give_batch = "; give its batch with " + mark(Setting::kValidation);
  if (r.validation_with_grad && !s.job.validation_batch)
    return refuse("says how the validation runs" + give_batch, Setting::kValidationWithGrad);
  if (r.validation_samples && !s.job.validation_batch)
    return refuse("says how much a validation reads" + give_batch, Setting::kValidationSamples);
  s.validation_samples = r.validation_samples.value_or(0);
  if (r.epochs && s.dataset_samples <= 0) {
    return refuse("needs the size of an epoch: give " + mark(Setting::kSamples) + " or " +
                      mark(Setting::kData),
                  Setting::kEpochs);
  }
  s.epochs = r.epochs.value_or(0);
  return r.last_batch ? fill_last_batch(*r.last_batch, s) : Status{};
}

Status fill_copy(const JobRequest& r, Scenario& s) {
  if (!r.copy) return {};
  if (r.prefetching_loader && *r.copy != CopyWay::kOverlapped) {
    return refuse("contradicts " + mark(Setting::kPrefetchingLoader) +
                      ", whose copies run beside the step; give one of them",
                  Setting::kCopy);
  }
  s.copy = *r.copy;
  return {};
}

/// What the capture says of the loop around a training step, and the request that overrules it.
Status fill_training(const JobRequest& r, const Step& step, Scenario& s) {
  const CapturedTraining captured = step.mode == "train" ? step.training : CapturedTraining{};
  s.job.clip = r.clip.value_or(captured.clip.value_or(false));
  s.job.ema = r.ema.value_or(captured.ema.value_or(false));
  s.job.clip_checks = r.clip_checks;
  if (r.clip_checks && !s.job.clip) {
    return refuse("is a setting of clip_grad_norm_; add " + mark(Setting::kClip),
                  Setting::kClipChecks);
  }
  s.grad_scaler = r.grad_scaler;
  if (r.zero_grad_after && r.zero_grad_between) {
    return refuse("says another place than " + mark(Setting::kZeroGradAfter) + "; give one of them",
                  Setting::kZeroGradBetween);
  }
  s.job.zero_grad_before_backward = r.zero_grad_between;
  s.job.zero_grad_before_forward = !r.zero_grad_after && !r.zero_grad_between;
  s.job.zero_grad_fills = r.zero_grad_fills;
  return {};
}

}  // namespace

Status fill_job(const JobRequest& r, const Step& step, Scenario& s) {
  Job& job = s.job;
  job.optimizer = TRY(optimizer_of(r.optimizer, step));
  TRY(fill_passes(r, s));
  TRY(fill_copy(r, s));
  TRY(fill_parallel(r, job));
  TRY(fill_training(r, step, s));
  job.loss = r.loss.value_or(LossKernel::kCaptured);
  job.accumulate = static_cast<int>(r.accumulate.value_or(1));
  job.nodes = static_cast<int>(r.nodes.value_or(1));
  job.channels_last = r.channels_last;
  job.drop_output = r.drop_output;
  job.cudnn = r.cudnn_benchmark ? CudnnProfile::kBenchmark : CudnnProfile::kDefault;
  job.prefetching_loader = r.prefetching_loader;
  job.cuda_graphs = r.cuda_graphs;
  job.compile = step.compiled_graphs > 0;
  job.checkpoint = r.checkpoint;
  for (const std::string& name : job.checkpoint) {
    if (name.empty())
      return refuse("has an empty name; write blocks, or layer1,layer2.*", Setting::kCheckpoint);
  }
  return {};
}

Status fill_parallel(const JobRequest& r, Job& job) {
  job.parallel = r.parallel.value_or(job.parallel);
  if (r.bucket_view && job.parallel != Parallel::kDdp) {
    const bool usual = job.parallel == Parallel::kFsdpZero3;  // what "fsdp" alone means
    return refuse("is a setting of DDP; leave it out with " + mark(Setting::kParallel) + " " +
                      (usual ? "fsdp" : std::string(name_of(job.parallel))),
                  Setting::kBucketView);
  }
  job.gradient_as_bucket_view = r.bucket_view;
  job.ddp_alone = r.ddp_alone && job.parallel == Parallel::kDdp;
  job.fsdp_precision = r.fsdp_precision.value_or(FsdpPrecision::kNone);
  job.fsdp_group = static_cast<int>(r.fsdp_group.value_or(0));
  job.fsdp_offload = r.fsdp_offload;
  const auto only_fsdp = [&](bool given, Setting setting) -> Status {
    if (!given || is_fsdp(job.parallel)) return {};
    return refuse("is a setting of FSDP; add " + mark(Setting::kParallel) + " fsdp", setting);
  };
  TRY(only_fsdp(job.fsdp_precision != FsdpPrecision::kNone, Setting::kFsdpMixedPrecision));
  TRY(only_fsdp(job.fsdp_offload, Setting::kFsdpOffload));
  return only_fsdp(job.fsdp_group > 0, Setting::kFsdpGroup);
}

Status check_gpus_of(const Scenario& s) {
  if (s.job.parallel != Parallel::kDdp && s.job.gpus < 2) {
    return refuse(std::string(name_of(s.job.parallel)) + " shares a job between GPUs; give " +
                      mark(Setting::kGpus) + " 2 or more, or leave it out",
                  Setting::kParallel);
  }
  if (s.job.fsdp_precision != FsdpPrecision::kNone &&
      (s.job.precision == Precision::kFp32 || s.job.precision == Precision::kTf32)) {
    return refuse("computes in half precision; add " + mark(Setting::kPrecision) + " bf16",
                  Setting::kFsdpMixedPrecision);
  }
  if (s.job.fsdp_group > 0 && s.job.gpus % s.job.fsdp_group != 0) {
    return refuse(std::to_string(s.job.gpus) + " GPUs cannot be parted into groups of " +
                      std::to_string(s.job.fsdp_group),
                  Setting::kFsdpGroup);
  }
  return check_bucket_view(s.job, s.job.gpus);
}

Status check_bucket_view(const Job& job, int most_gpus) {
  if (!job.gradient_as_bucket_view || job.ddp_alone || most_gpus > 1) return {};
  return refuse("needs DDP on more than one GPU; give " + mark(Setting::kGpus) +
                    " 2 or more, or leave it out",
                Setting::kBucketView);
}

Status check_last_batch(const Scenario& s, std::int64_t batch) {
  if (s.last_batch.given < batch) return {};
  return refuse("what is left of an epoch is smaller than the batch of " + std::to_string(batch) +
                    ", not " + std::to_string(s.last_batch.given),
                Setting::kLastBatch);
}

}  // namespace stoker
