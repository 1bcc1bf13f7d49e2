#include "scenario/request/job_words.h"

#include "base/text.h"
#include "scenario/request/sample_facts.h"

namespace stoker {
namespace {

/// What of the step differs from the plainest training loop.
std::string training_words(const Job& job) {
  std::string words;
  const auto add = [&](bool given, const char* word) {
    if (given) words += std::string(", ") + word;
  };
  add(job.clip, "clipped");
  add(job.ema, "EMA");
  add(!job.checkpoint.empty(), "checkpointed");
  return words;
}

std::string parallel_words(const Job& job) {
  if (job.gpus < 2) return {};
  switch (job.parallel) {
    case Parallel::kDdp:
      return "DDP, ";
    case Parallel::kDataParallel:
      return "DataParallel, ";
    case Parallel::kFsdpZero2:
      return "FSDP ZeRO-2, ";
    case Parallel::kFsdpZero3:
      return "FSDP ZeRO-3, ";
  }
  return {};
}

std::string step_words(const Step& step, const Job& job) {
  std::string words = step.mode;
  if (step.mode == "train") {
    const bool sgd = job.optimizer.kind == OptimizerKind::kSgd;
    if (!step.optimizer.in_backward.empty())
      words += ", " + step.optimizer.in_backward + " in the backward";
    else
      words += ", " + (!sgd                         ? name_of(job.optimizer)
                       : job.optimizer.momentum > 0 ? "SGD momentum"
                                                    : "SGD");
  }
  words += training_words(job);
  const std::int64_t side = image_side(step);
  if (side > 0) words += ", " + std::to_string(side) + " px";
  for (const Dimension& d : step.dimensions) {
    if (d.name == "batch") continue;
    const auto it = job.dimensions.find(d.name);
    words += ", " + d.name + " " +
             std::to_string(it == job.dimensions.end() ? d.default_value : it->second);
  }
  return words;
}

}  // namespace

std::string ModelLine::text() const { return model + " | " + step + " | " + gpu + " | " + job; }

std::string ModelLine::text_without_gpu() const { return model + " | " + step + " | " + job; }

ModelLine model_line(const std::string& model, const Step& step, const Device& device,
                     const Job& job) {
  std::string threads;
  if (device.cpu() != nullptr)
    threads = std::to_string(job.threads) + (job.threads == 1 ? " thread, " : " threads, ");
  return {printable(model), printable(step_words(step, job)), printable(device->name),
          threads + parallel_words(job) + (job.compile ? "compiled, " : "eager, ") +
              std::string(name_of(job.precision))};
}

std::vector<std::string> unusual_settings(const Job& job) {
  std::vector<std::string> words;
  const auto add = [&](bool given, std::string word) {
    if (given) words.push_back(std::move(word));
  };
  const OptimizerSettings& o = job.optimizer;
  const bool trains = o.kind != OptimizerKind::kNone;
  // Tensor by tensor without anybody's asking is a CPU's default.
  const bool usual =
      o.loop == default_loop(o.kind) || (o.loop == OptimizerLoop::kForLoop && !o.loop_asked);
  add(trains && !usual, std::string(name_of(o.loop)) + " optimizer");
  add(trains && o.nesterov, "Nesterov momentum");
  add(job.accumulate > 1, "accumulates " + std::to_string(job.accumulate) + " batches");
  const bool scales = job.precision == Precision::kAmpFp16;  // what people do there
  add(job.grad_scaler && !scales, "gradient scaler");
  add(!job.grad_scaler && scales && trains, "no gradient scaler");
  add(job.clip_checks, "clipping checks its norm");
  std::string modules;
  for (const std::string& name : job.checkpoint) modules += (modules.empty() ? "" : ",") + name;
  add(!modules.empty(), "checkpoints " + modules);
  add(zeroes_after_step(job), "zero_grad() after the step");
  add(job.zero_grad_before_backward, "zero_grad() between forward and backward");
  add(job.zero_grad_fills, "zero_grad(set_to_none=False)");
  add(job.channels_last, "channels-last");
  add(job.drop_output, "drops its output");
  add(job.cudnn == CudnnProfile::kBenchmark, "cudnn.benchmark");
  add(job.cuda_graphs, "CUDA graphs");
  add(job.gpus > 1 && job.nodes > 1, std::to_string(job.nodes) + " nodes");
  add(job.fsdp_precision != FsdpPrecision::kNone,
      "mixed precision of FSDP: " + std::string(name_of(job.fsdp_precision)));
  add(job.fsdp_group > 0 && job.fsdp_group < job.gpus,
      "hybrid sharding in groups of " + std::to_string(job.fsdp_group));
  add(job.fsdp_offload, "shards in the host's memory");
  add(job.loss == LossKernel::kFused, "fused cross entropy");
  add(job.ddp_alone && job.gpus < 2, "DDP's buckets");
  add(job.gradient_as_bucket_view, "gradient_as_bucket_view");
  add(job.prefetching_loader, "prefetching loader");
  add(job.last_batch > 0, "last batch of " + std::to_string(job.last_batch));
  if (job.validation_batch) {
    add(true, "validation in batches of " + std::to_string(*job.validation_batch) +
                  (job.validation_no_grad ? "" : " with gradients"));
  }
  return words;
}

}  // namespace stoker
