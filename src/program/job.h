#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "operators/shapes.h"
#include "program/copy_way.h"
#include "step/step.h"

namespace stoker {

enum class Precision : std::uint8_t { kFp32, kTf32, kAmpFp16, kAmpBf16, kBf16, kFp16 };
enum class OptimizerKind : std::uint8_t {
  kSgd,
  kAdam,
  kAdamW,
  kRmsprop,
  kAdagrad,
  kAdadelta,
  kAdamax,
  kNAdam,
  kRAdam,
  kAdafactor,
  kLion,
  kLbfgs,
  kNone
};
/// How the optimizer walks the parameters.
enum class OptimizerLoop : std::uint8_t { kForeach, kFused, kForLoop };
/// How several GPUs share a job. kDataParallel is nn.DataParallel (one process, GPU 0 gathers); the
/// FSDP kinds are torch.distributed.fsdp.fully_shard: ZeRO-2 keeps the gathered parameters until
/// the backward (reshard_after_forward=False), ZeRO-3 drops them after each unit's forward.
enum class Parallel : std::uint8_t { kDdp, kDataParallel, kFsdpZero2, kFsdpZero3 };
/// torch.distributed.fsdp.MixedPrecisionPolicy with param_dtype the job's half precision: shards
/// and optimizer state in FP32, parameters gathered and computed in half precision, gradients
/// reduced in FP32 (reduce_dtype=torch.float32) or in half precision. kNone: no policy, all as
/// captured.
enum class FsdpPrecision : std::uint8_t { kNone, kReduceFp32, kReduceHalf };
/// How the cross entropy over a model's scores runs. kFused: one kernel on the scores as they are,
/// whose backward writes over them (rewrite/fused_loss.h).
enum class LossKernel : std::uint8_t { kCaptured, kFused };
/// Which convolution algorithms cuDNN may take: torch.backends.cudnn.benchmark off or on.
enum class CudnnProfile : std::uint8_t { kDefault, kBenchmark };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kSgd;
  OptimizerLoop loop = OptimizerLoop::kForeach;
  double momentum = 0.9;  ///< SGD and RMSprop; 0: no momentum buffer
  bool nesterov = false;
  double weight_decay = 0;
  bool centered = false;   ///< RMSprop: the gradient's average is kept too
  bool amsgrad = false;    ///< Adam, AdamW: so is the largest second moment
  bool decoupled = false;  ///< NAdam, RAdam: weight decay as AdamW has it
  int history = 100;       ///< LBFGS: pairs of vectors that it keeps (history_size)
  /// `loop` was chosen: foreach= or fused= was said. Else a CPU takes its own default
  /// (lower/cpu.h).
  bool loop_asked = false;
  /// Bits of an element of the state; 8: bitsandbytes' optimizers, quantised by blocks.
  int state_bits = 32;
};

/// Everything that a person decides about one training job, apart from model and machine. `batch`
/// is per GPU; global batch = batch x gpus x accumulate.
struct Job {
  std::int64_t batch = 1;
  int gpus = 1;
  int nodes = 1;
  int threads = 0;  ///< on a CPU: torch.set_num_threads; 0: all of its cores
  int accumulate = 1;
  Precision precision = Precision::kFp32;
  OptimizerSettings optimizer;
  Parallel parallel = Parallel::kDdp;  ///< with one GPU there is nothing to be parallel about
  FsdpPrecision fsdp_precision = FsdpPrecision::kNone;
  /// Hybrid sharding: GPUs that share one copy of the model, each such group holding all of it; 0:
  /// all GPUs are one group.
  int fsdp_group = 0;
  /// FSDP keeps shards, their gradients and the optimizer's state in the host's memory.
  bool fsdp_offload = false;
  LossKernel loss = LossKernel::kCaptured;
  CudnnProfile cudnn = CudnnProfile::kDefault;
  bool channels_last = false;
  bool zero_grad_before_forward = true;  ///< set_to_none, PyTorch's default since 2.0
  /// Between the forward and the backward: gradients of the step before live through the forward.
  /// zero_grad_before_forward is false then.
  bool zero_grad_before_backward = false;
  bool zero_grad_fills = false;  ///< zero_grad(set_to_none=False): gradients stay and are added to
  bool drop_output = false;      ///< output and loss die with the iteration: `del output, loss`
  bool clip = false;             ///< torch.nn.utils.clip_grad_norm_ before the optimizer's step
  bool clip_checks = false;      ///< its error_if_nonfinite=True: the host reads the norm
  bool ema = false;              ///< a moving average of parameters and buffers beside the model
  bool grad_scaler = false;      ///< torch.amp.GradScaler around loss and step
  /// Modules whose activations are recomputed in the backward (torch.utils.checkpoint): names as in
  /// named_modules(), a name ending in ".*" for each of its children, or "blocks" for the model's
  /// repeated blocks. Empty: none.
  std::vector<std::string> checkpoint;
  bool gradient_as_bucket_view = false;
  /// The model is wrapped in DistributedDataParallel though one GPU trains: its buckets are there.
  bool ddp_alone = false;
  bool tf32_matmul = false;                    ///< torch.backends.cuda.matmul.allow_tf32
  bool cublas_workspaces_in_allocator = true;  ///< PyTorch >= 1.11 or so; off for older software
  std::map<std::string, std::int64_t>
      dimensions;  ///< seq_len=128 ...; unnamed ones take their default
  CopyWay copy = CopyWay::kBlocking;
  /// Forward, backward and, where it can, the optimizer are captured once and replayed as CUDA
  /// graphs.
  bool cuda_graphs = false;
  bool compile = false;  ///< the step was captured under torch.compile
  /// A loader that copies the next batch as bytes and normalises it on the device, on a side stream
  /// (timm's PrefetchLoader): its buffers come from that stream's blocks.
  bool prefetching_loader = false;
  /// A validation pass between epochs, with this batch; nullopt: none.
  std::optional<std::int64_t> validation_batch;
  bool validation_no_grad =
      true;                     ///< false: the graph is kept, as when torch.no_grad() is forgotten
  std::int64_t last_batch = 0;  ///< samples of an epoch's last, smaller batch; 0: dropped or full
  /// CUBLAS_WORKSPACE_CONFIG, in bytes a handle; nullopt: PyTorch's default for the GPU.
  std::optional<Bytes> cublas_workspace;
  /// CUBLASLT_WORKSPACE_SIZE; nullopt: PyTorch's default.
  std::optional<Bytes> cublaslt_workspace;
  /// Forces one attention backend; nullopt: as PyTorch's dispatcher chooses on this GPU.
  std::optional<AttentionBackend> attention;
};

[[nodiscard]] std::string_view name_of(Precision precision);      ///< "amp-fp16"
[[nodiscard]] std::string_view name_of(OptimizerKind kind);       ///< "adamw"
[[nodiscard]] std::string_view name_of(OptimizerLoop loop);       ///< "foreach"
[[nodiscard]] std::string_view name_of(Parallel parallel);        ///< "ddp", "dp", "fsdp-zero3"
[[nodiscard]] std::string_view name_of(FsdpPrecision precision);  ///< "none", "reduce-fp32"
[[nodiscard]] std::string_view name_of(LossKernel loss);          ///< "captured", "fused"
/// An optimizer with the bits of its state: "adamw", "adamw8bit".
[[nodiscard]] std::string name_of(const OptimizerSettings& settings);
/// 8 where the name is one of bitsandbytes' quantised optimizers ("AdamW8bit", "paged_adamw_8bit"),
/// else 32.
[[nodiscard]] int state_bits_named(std::string_view name);
/// Whether bitsandbytes has one of this kind whose state takes 8 bits an element.
[[nodiscard]] bool has_8bit_states(OptimizerKind kind);
/// The precision of that name; an unknown one is refused with the nearest known.
[[nodiscard]] Result<Precision> parse_precision(std::string_view name);
/// The optimizer of that name, bitsandbytes' 8-bit ones too; state_bits_named tells them apart.
[[nodiscard]] Result<OptimizerKind> parse_optimizer(std::string_view name);
[[nodiscard]] Result<OptimizerLoop> parse_optimizer_loop(std::string_view name);
/// The way of that name; "fsdp" and "zero3" mean "fsdp-zero3", "zero2" "fsdp-zero2".
[[nodiscard]] Result<Parallel> parse_parallel(std::string_view name);
/// The policy of that name; llm-foundry's "default" is reduce-fp32, "pure" reduce-half.
[[nodiscard]] Result<FsdpPrecision> parse_fsdp_precision(std::string_view name);
[[nodiscard]] Result<LossKernel> parse_loss_kernel(std::string_view name);

/// zero_grad() follows the optimizer's step.
[[nodiscard]] constexpr bool zeroes_after_step(const Job& job) {
  return !job.zero_grad_before_forward && !job.zero_grad_before_backward;
}

/// fully_shard, either kind.
[[nodiscard]] constexpr bool is_fsdp(Parallel parallel) {
  return parallel == Parallel::kFsdpZero2 || parallel == Parallel::kFsdpZero3;
}

/// What PyTorch does on CUDA when nothing is said: foreach, and for-loop for Adafactor.
[[nodiscard]] OptimizerLoop default_loop(OptimizerKind kind);

/// The capture that a precision runs from: fp32 and tf32 differ in the machine's units only.
[[nodiscard]] std::string_view capture_precision(Precision precision);

/// The optimizer that the capture function returned, or the default when it returned none.
[[nodiscard]] OptimizerSettings captured_optimizer(const Step& step);
/// What steps one of its groups, with the group's own weight decay.
[[nodiscard]] OptimizerSettings captured_optimizer(const Step& step,
                                                   const CapturedOptimizer::Group& group);

/// Numbers that no machine could make sense of: batch 0, negative counts.
[[nodiscard]] Status check_job(const Job& job);

}  // namespace stoker
