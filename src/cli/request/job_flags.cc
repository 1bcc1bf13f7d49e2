#include "cli/request/job_flags.h"

namespace stoker::cli {

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

}  // namespace stoker::cli
