#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/settings/settings.h"

namespace stoker::cli {

/// What the user typed about the training step itself.
struct JobOptions {
  std::string optimizer, optimizer_loop, parallel, fsdp_precision, loss, checkpoint, last_batch,
      copy, seq_len;
  std::optional<std::int64_t> accumulate, nodes, validation, validation_samples, epochs, threads,
      fsdp_group;
  std::optional<double> momentum, weight_decay;
  std::vector<std::string> dimensions;
  bool nesterov = false, channels_last = false, cudnn_benchmark = false, bucket_view = false,
       zero_grad_after = false, zero_grad_between = false, zero_grad_fills = false,
       prefetching_loader = false, validation_with_grad = false, clip_checks = false,
       cuda_graphs = false, fsdp_offload = false, drop_output = false;
  std::optional<bool> clip, ema, grad_scaler;
};

[[nodiscard]] std::vector<Binding> job_bindings(JobOptions& o);

}  // namespace stoker::cli
