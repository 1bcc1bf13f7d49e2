#include "cli/request/job_options.h"

namespace stoker::cli {

std::vector<Binding> job_bindings(JobOptions& o) {
  return {{"optimizer", &o.optimizer},
          {"optimizer-loop", &o.optimizer_loop},
          {"momentum", &o.momentum},
          {"weight-decay", &o.weight_decay},
          {"nesterov", &o.nesterov},
          {"clip", &o.clip},
          {"clip-checks", &o.clip_checks},
          {"ema", &o.ema},
          {"grad-scaler", &o.grad_scaler},
          {"zero-grad-after", &o.zero_grad_after},
          {"zero-grad-fills", &o.zero_grad_fills},
          {"zero-grad-between", &o.zero_grad_between},
          {"accumulate", &o.accumulate},
          {"checkpoint", &o.checkpoint},
          {"seq-len", &o.seq_len},
          {"dim", &o.dimensions},
          {"threads", &o.threads},
          {"channels-last", &o.channels_last},
          {"drop-output", &o.drop_output},
          {"cudnn-benchmark", &o.cudnn_benchmark},
          {"cuda-graphs", &o.cuda_graphs},
          {"copy", &o.copy},
          {"validation", &o.validation},
          {"validation-samples", &o.validation_samples},
          {"validation-with-grad", &o.validation_with_grad},
          {"last-batch", &o.last_batch},
          {"epochs", &o.epochs},
          {"prefetching-loader", &o.prefetching_loader},
          {"nodes", &o.nodes},
          {"parallel", &o.parallel},
          {"fsdp-mixed-precision", &o.fsdp_precision},
          {"fsdp-group", &o.fsdp_group},
          {"fsdp-cpu-offload", &o.fsdp_offload},
          {"loss", &o.loss},
          {"bucket-view", &o.bucket_view}};
}

}  // namespace stoker::cli
