#include "cli/job_flags.h"

#include <charconv>
#include <tuple>

#include "base/text.h"
#include "lower/optimizer/optimizer_recipes.h"

namespace stoker::cli {
namespace {

Status refuse(std::string message, const char* flag) {
  return fail(ErrorCode::kUsage, std::move(message), flag);
}

Status fill_optimizer(const JobOptions& o, const Step& step, OptimizerSettings& settings) {
  settings = captured_optimizer(step);
  const CapturedOptimizer& captured = step.optimizer;
  if (o.optimizer.empty() && step.mode == "train" && !captured.name.empty()) {
    if (const auto known = parse_optimizer(captured.name); !known) {
      return refuse(
          "the capture function returned " +
              (captured.class_name.empty() ? captured.name : captured.class_name) +
              ", which is not modelled; name the nearest that is: " + known.error().message,
          "--optimizer");
    }
  }
  if (!o.optimizer.empty()) {
    const auto kind = TRY(parse_optimizer(o.optimizer));
    if (kind != settings.kind) {
      settings = OptimizerSettings{.kind = kind, .loop = default_loop(kind)};
      if (kind != OptimizerKind::kSgd) settings.momentum = 0;
    }
  }
  if (!o.optimizer_loop.empty()) {
    const auto loop = TRY(parse_optimizer_loop(o.optimizer_loop));
    if (loop == OptimizerLoop::kFused && !has_fused(settings.kind)) {
      return refuse("PyTorch has no fused " + std::string(name_of(settings.kind)) +
                        "; sgd, adam, adamw and adagrad have one",
                    "--optimizer-loop");
    }
    settings.loop = loop;
    settings.loop_asked = true;
  }
  const auto in_range = [](const char* flag, std::optional<double> value) -> Status {
    if (value && !(*value >= 0 && *value <= 1))
      return fail(ErrorCode::kBadInput, "must lie between 0 and 1", flag);
    return {};
  };
  if (auto s = in_range("--momentum", o.momentum); !s) return s;
  if (auto s = in_range("--weight-decay", o.weight_decay); !s) return s;
  const bool sgd = settings.kind == OptimizerKind::kSgd;
  const std::string leave_out = "; leave it out with " + std::string(name_of(settings.kind));
  if (o.momentum && !sgd && settings.kind != OptimizerKind::kRmsprop)
    return refuse("is a setting of sgd and rmsprop" + leave_out, "--momentum");
  if (o.nesterov && !sgd) return refuse("is a setting of sgd" + leave_out, "--nesterov");
  if (o.momentum) settings.momentum = *o.momentum;
  if (o.weight_decay) settings.weight_decay = *o.weight_decay;
  settings.nesterov = settings.nesterov || o.nesterov;
  if (o.nesterov && settings.momentum == 0)
    return refuse("Nesterov momentum needs a momentum: --momentum 0.9", "--nesterov");
  return {};
}

/// Flags that belong to training, given for a step that was captured for inference.
Status check_mode(const JobOptions& o, const Step& step) {
  if (step.mode == "train") return {};
  for (const auto& [given, flag] : {std::pair(!o.optimizer.empty(), "--optimizer"),
                                    {!o.optimizer_loop.empty(), "--optimizer-loop"},
                                    {o.momentum.has_value(), "--momentum"},
                                    {o.weight_decay.has_value(), "--weight-decay"},
                                    {o.nesterov, "--nesterov"},
                                    {o.clip, "--clip"},
                                    {o.no_clip, "--no-clip"},
                                    {o.clip_checks, "--clip-checks"},
                                    {o.ema, "--ema"},
                                    {o.no_ema, "--no-ema"},
                                    {o.grad_scaler, "--grad-scaler"},
                                    {o.no_grad_scaler, "--no-grad-scaler"},
                                    {o.zero_grad_after, "--zero-grad-after"},
                                    {o.zero_grad_fills, "--zero-grad-fills"},
                                    {o.accumulate.has_value(), "--accumulate"},
                                    {!o.checkpoint.empty(), "--checkpoint"},
                                    {o.validation.has_value(), "--validation"},
                                    {o.validation_with_grad, "--validation-with-grad"},
                                    {o.validation_samples.has_value(), "--validation-samples"},
                                    {o.bucket_view, "--bucket-view"}}) {
    if (given)
      return refuse(step.name + " was captured for " + step.mode +
                        ", which has no backward; leave the flag out, or capture it for training",
                    flag);
  }
  return {};
}

Status fill_passes(const JobOptions& o, Scenario& s) {
  s.job.validation_batch = o.validation;
  s.job.validation_no_grad = !o.validation_with_grad;
  if (o.validation_with_grad && !o.validation)
    return refuse("says how the validation runs; give its batch with --validation",
                  "--validation-with-grad");
  if (o.validation_samples && !o.validation)
    return refuse("says how much a validation reads; give its batch with --validation",
                  "--validation-samples");
  s.validation_samples = o.validation_samples.value_or(0);
  if (o.epochs && s.dataset_samples <= 0)
    return refuse("needs the size of an epoch: give --samples or --data", "--epochs");
  s.epochs = o.epochs.value_or(0);
  if (o.last_batch.empty()) return {};
  if (o.last_batch == "auto") {
    if (s.dataset_samples <= 0)
      return refuse("auto needs the size of the data set: --data or --samples", "--last-batch");
    s.last_batch.samples = s.dataset_samples;
    return {};
  }
  std::int64_t& given = s.last_batch.given;
  const char* end = o.last_batch.data() + o.last_batch.size();
  const auto [stop, error] = std::from_chars(o.last_batch.data(), end, given);
  if (error != std::errc() || stop != end || given < 1)
    return refuse("\"" + o.last_batch + "\" is neither auto nor a number of samples from 1 up",
                  "--last-batch");
  return {};
}

Status fill_copy(const JobOptions& o, Scenario& s) {
  if (o.copy.empty()) return {};
  for (const auto& [name, way] : {std::pair("overlapped", CopyWay::kOverlapped),
                                  {"non-blocking", CopyWay::kNonBlocking},
                                  {"blocking", CopyWay::kBlocking}}) {
    if (simplified(o.copy) != simplified(name)) continue;
    if (o.prefetching_loader && way != CopyWay::kOverlapped)
      return refuse(
          "contradicts --prefetching-loader, whose copies run beside the step; give one "
          "of them",
          "--copy");
    s.copy = way;
    return {};
  }
  return refuse("\"" + o.copy + "\" is none of overlapped, non-blocking, blocking", "--copy");
}

/// What the capture says of the loop around a training step, and the flags that overrule it.
Status fill_training(const JobOptions& o, const Step& step, Scenario& s) {
  for (const auto& [both, flag, no_flag] :
       {std::tuple(o.clip && o.no_clip, "--clip", "--no-clip"),
        {o.ema && o.no_ema, "--ema", "--no-ema"},
        {o.grad_scaler && o.no_grad_scaler, "--grad-scaler", "--no-grad-scaler"}}) {
    if (both) return refuse(std::string("contradicts ") + no_flag + "; give one of them", flag);
  }
  const CapturedTraining captured = step.mode == "train" ? step.training : CapturedTraining{};
  s.job.clip = o.clip || (captured.clip.value_or(false) && !o.no_clip);
  s.job.ema = o.ema || (captured.ema.value_or(false) && !o.no_ema);
  s.job.clip_checks = o.clip_checks;
  if (o.clip_checks && !s.job.clip)
    return refuse("is a setting of clip_grad_norm_; add --clip", "--clip-checks");
  if (o.grad_scaler) s.grad_scaler = true;
  if (o.no_grad_scaler) s.grad_scaler = false;
  return {};
}

Status fill_zero_grad(const JobOptions& o, Job& job) {
  job.zero_grad_before_forward = !o.zero_grad_after;
  job.zero_grad_fills = o.zero_grad_fills;
  return {};
}

}  // namespace

std::vector<Flag> job_flags(JobOptions& o) {
  std::vector<Flag> flags;
  const auto add = [&](const char* group, std::vector<Flag> under) {
    for (Flag& flag : grouped(group, std::move(under))) flags.push_back(std::move(flag));
  };
  add("Optimizer",
      {{"--optimizer",
        "sgd, adam, adamw, rmsprop, adagrad, adafactor, lion, none; default: captured, else sgd",
        &o.optimizer},
       {"--optimizer-loop", "foreach (default), fused, for-loop", &o.optimizer_loop},
       {"--momentum", "of SGD and RMSprop; default 0.9 for SGD", &o.momentum},
       {"--weight-decay", "default 0", &o.weight_decay},
       {"--nesterov", "Nesterov momentum", &o.nesterov},
       {"--clip", "clip_grad_norm_ before the optimizer's step", &o.clip},
       {"--no-clip", "without the clipping that was captured", &o.no_clip},
       {"--clip-checks", "clipping with error_if_nonfinite=True: the host waits for the norm",
        &o.clip_checks},
       {"--ema", "a moving average of the model beside it", &o.ema},
       {"--no-ema", "without the average that was captured", &o.no_ema},
       {"--grad-scaler", "torch.amp.GradScaler; default: for training in amp-fp16", &o.grad_scaler},
       {"--no-grad-scaler", "amp-fp16 without it", &o.no_grad_scaler},
       {"--zero-grad-after", "zero_grad after the optimizer step, not before the forward",
        &o.zero_grad_after},
       {"--zero-grad-fills", "zero_grad(set_to_none=False): gradients stay", &o.zero_grad_fills}});
  add("Step",
      {{"--accumulate", "batches per optimizer step; default 1", &o.accumulate},
       {"--checkpoint", "recompute these modules: names, NAME.*, or \"blocks\"; comma separated",
        &o.checkpoint},
       {"--seq-len", "sequence length of models that have one", &o.seq_len},
       {"--dim", "NAME=NUMBER, another dimension of the model; may repeat", &o.dimensions},
       {"--threads", "of a CPU: torch.set_num_threads; default: all cores of the machine",
        &o.threads},
       {"--channels-last", "channels-last memory format", &o.channels_last},
       {"--cudnn-benchmark", "torch.backends.cudnn.benchmark = True", &o.cudnn_benchmark},
       {"--cuda-graphs", "forward, backward and optimizer replayed as CUDA graphs; approximate",
        &o.cuda_graphs},
       {"--copy", "of the batch: overlapped (default), non-blocking or blocking, both in line",
        &o.copy},
       {"--validation", "batch of a validation pass between epochs; default: none", &o.validation},
       {"--validation-samples", "samples of that pass, for its time", &o.validation_samples},
       {"--validation-with-grad", "the validation forgets torch.no_grad()",
        &o.validation_with_grad},
       {"--last-batch", "samples of an epoch's last batch, or auto; default: full or dropped",
        &o.last_batch},
       {"--epochs", "length of a run: start-up, first epoch and total time", &o.epochs},
       {"--prefetching-loader", "the next batch waits on the device as bytes (timm's loader)",
        &o.prefetching_loader}});
  add("Several GPUs",
      {{"--nodes", "computers that the GPUs are spread over; default 1", &o.nodes},
       {"--parallel", "ddp (default), dp, fsdp (= fsdp-zero3), fsdp-zero2", &o.parallel},
       {"--bucket-view", "DDP with gradient_as_bucket_view=True", &o.bucket_view}});
  return flags;
}

Status fill_dimensions(const JobOptions& o, Job& job) {
  if (o.seq_len) job.dimensions["seq_len"] = *o.seq_len;
  for (const std::string& text : o.dimensions) {
    const auto at = text.find('=');
    std::int64_t value = 0;
    if (at == std::string::npos || at == 0)
      return refuse("\"" + text + "\" is not NAME=NUMBER", "--dim");
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + at + 1, end, value);
    if (error == std::errc::result_out_of_range)
      return refuse("the number of \"" + text + "\" is too large", "--dim");
    if (error != std::errc() || stop != end)
      return refuse("\"" + text + "\" is not NAME=NUMBER", "--dim");
    job.dimensions[text.substr(0, at)] = value;
  }
  return {};
}

Status fill_job(const JobOptions& o, const Step& step, Scenario& s) {
  Job& job = s.job;
  for (const Status& status : {check_mode(o, step), fill_optimizer(o, step, job.optimizer),
                               fill_passes(o, s), fill_copy(o, s), fill_parallel(o, job),
                               fill_training(o, step, s), fill_zero_grad(o, job)}) {
    if (!status) return status;
  }
  job.accumulate = static_cast<int>(o.accumulate.value_or(1));
  job.nodes = static_cast<int>(o.nodes.value_or(1));
  job.channels_last = o.channels_last;
  job.cudnn = o.cudnn_benchmark ? CudnnProfile::kBenchmark : CudnnProfile::kDefault;
  job.prefetching_loader = o.prefetching_loader;
  job.cuda_graphs = o.cuda_graphs;
  if (!o.checkpoint.empty()) job.checkpoint = split(o.checkpoint, ',');
  for (const std::string& name : job.checkpoint) {
    if (name.empty())
      return refuse("has an empty name; write blocks, or layer1,layer2.*", "--checkpoint");
  }
  return {};
}

Status check_gpus_of(const Scenario& s) {
  if (s.job.parallel != Parallel::kDdp && s.job.gpus < 2) {
    return refuse(std::string(name_of(s.job.parallel)) +
                      " shares a job between GPUs; give --gpus 2 or more, or leave it out",
                  "--parallel");
  }
  return check_bucket_view(s.job, s.job.gpus);
}

Status fill_parallel(const JobOptions& o, Job& job) {
  if (!o.parallel.empty()) {
    const auto parallel = parse_parallel(o.parallel);
    if (!parallel) return fail(parallel.error().code, parallel.error().message, "--parallel");
    job.parallel = *parallel;
  }
  if (o.bucket_view && job.parallel != Parallel::kDdp) {
    return refuse("is a setting of DDP; leave it out with --parallel " + o.parallel,
                  "--bucket-view");
  }
  job.gradient_as_bucket_view = o.bucket_view;
  return {};
}

Status check_bucket_view(const Job& job, int most_gpus) {
  if (!job.gradient_as_bucket_view || most_gpus > 1) return {};
  return refuse("needs DDP on more than one GPU; give --gpus 2 or more, or leave it out",
                "--bucket-view");
}

Status check_last_batch(const Scenario& s, std::int64_t batch) {
  if (s.last_batch.given < batch) return {};
  return refuse("what is left of an epoch is smaller than the batch of " + std::to_string(batch) +
                    ", not " + std::to_string(s.last_batch.given),
                "--last-batch");
}

}  // namespace stoker::cli
