#pragma once

#include <vector>

#include "accuracy/common/bench.h"
#include "program/job.h"
#include "program/program.h"
#include "step/step.h"

namespace stoker::accuracy {

/// timm's train.py with its defaults: fp32, SGD with Nesterov momentum and weight decay 2e-5
/// (foreach on CUDA), cudnn.benchmark, zero_grad after the step, PrefetchLoader
/// (huggingface/pytorch-image-models, train.py).
[[nodiscard]] Job timm_train_job();

/// timm's benchmark.py --bench train --amp under PyTorch 1.12: SGD with Nesterov momentum one
/// tensor at a time, gradients filled with zeros, cudnn.benchmark, no fused attention, cuBLAS
/// workspaces outside the allocator.
[[nodiscard]] Job timm_benchmark_job(bool channels_last);

/// The capture that a row of timm's benchmark needs: the script ran under PyTorch 1.12, without
/// fused attention.
[[nodiscard]] CaptureRequest timm_benchmark_request(const CsvRow& row);
std::vector<CaptureRequest> wanted_timm_benchmark(const Bench& bench, const Table& table);

/// One batch made before the first step and used by all of them.
void reuse_input(Program& program);

/// A backward inside autocast: the 16-bit copies of the weights live until the context ends, which
/// is after it.
[[nodiscard]] Step with_autocast_until_end(Step step);

}  // namespace stoker::accuracy
