#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "forecast/forecast.h"
#include "input/loader/loader_simulation.h"
#include "input/probe/sample_cost.h"
#include "program/job.h"

namespace stoker {

/// What is known of the data.
struct DataRequest {
  /// Folder or file of data, a probe file of one or of a pipeline, or a well-known data set
  /// (input/data/known_data.h); "": none.
  std::string path;
  std::optional<Nanos> sample_cost = {};        ///< CPU time of one sample, instead of `path`
  std::optional<SampleCost> observed = {};      ///< costs seen in a run, instead of `path`
  std::optional<std::int64_t> samples = {};     ///< of an epoch; default: those of `path`
  std::optional<std::int64_t> image_size = {};  ///< side of crops; default: the model's
  bool reprobe = false;                         ///< measure again what a probe is remembered of
  std::string storage = {};  ///< where the data will lie: "nfs"; "": as probed or as the host says
};

struct OptimizerRequest {
  std::optional<OptimizerKind> kind;  ///< default: the captured one, else SGD
  int state_bits = 32;                ///< of `kind`: OptimizerSettings::state_bits
  std::optional<OptimizerLoop> loop;
  std::optional<double> momentum, weight_decay;
  bool nesterov = false;
};

/// A smaller batch at the end of an epoch: of this many samples, or of what the data set leaves.
struct RestOfDataSet {};
using LastBatchRequest = std::variant<std::int64_t, RestOfDataSet>;

/// The training loop and how several GPUs share it. What is absent is as captured, or PyTorch's
/// default.
struct JobRequest {
  OptimizerRequest optimizer;
  std::optional<bool> clip, ema, grad_scaler;
  bool clip_checks = false, zero_grad_after = false, zero_grad_between = false,
       zero_grad_fills = false, drop_output = false;
  std::optional<std::int64_t> accumulate, threads, epochs;
  std::vector<std::string> checkpoint;             ///< Job::checkpoint
  std::map<std::string, std::int64_t> dimensions;  ///< besides the batch
  bool channels_last = false, cudnn_benchmark = false, cuda_graphs = false, compile = false,
       prefetching_loader = false;
  std::optional<CopyWay> copy;  ///< from page-locked memory; default: overlapped
  std::optional<std::int64_t> validation_batch, validation_samples;
  bool validation_with_grad = false;
  std::optional<LastBatchRequest> last_batch;
  std::optional<std::int64_t> nodes;
  std::optional<Parallel> parallel;
  std::optional<FsdpPrecision> fsdp_precision;
  std::optional<LossKernel> loss;
  std::optional<std::int64_t> fsdp_group;
  bool fsdp_offload = false;
  bool bucket_view = false;
  bool ddp_alone = false;  ///< Job::ddp_alone; no flag says it, a script does
};

/// A text in PyTorch's own syntax, and where it stood: a setting's mark or a variable's name.
struct GivenText {
  std::string text, where;
};

/// PyTorch's allocator and cuBLAS's workspaces. An empty text is PyTorch's default.
struct AllocatorRequest {
  GivenText config;              ///< as PYTORCH_ALLOC_CONF
  GivenText cublas_workspace;    ///< as CUBLAS_WORKSPACE_CONFIG
  GivenText cublaslt_workspace;  ///< as CUBLASLT_WORKSPACE_SIZE
  std::optional<double> memory_fraction;
};

/// The largest batch that is safe on the GPU.
struct LargestSafeBatch {};
using BatchRequest = std::variant<std::int64_t, LargestSafeBatch>;

/// Low-rank adapters on a frozen model.
struct AdapterWish {
  std::string lora;       ///< "r=16,targets=q_proj,v_proj"; "": as --qlora has it, or none
  bool four_bit = false;  ///< the frozen linear layers in NF4 (QLoRA)

  [[nodiscard]] bool any() const { return four_bit || !lora.empty(); }
};

/// How a model that is captured on the fly is captured.
struct CaptureWishes {
  std::string mode;  ///< train, forward, inference; "": the captured one
  /// "net.py:12=false": what a value is that the model reads at this line of its code.
  std::vector<std::string> assumptions;
  bool again = false;    ///< also where a capture is remembered
  bool compile = false;  ///< under torch.compile
  AdapterWish adapters = {};
};

/// How a training script is run that stands in place of a model.
struct ScriptRequest {
  std::vector<std::string> arguments;  ///< its own
  std::string batch_argument;          ///< what of it carries the batch; "": its DataLoader
};

/// Model, machine, data and settings of a training run. An absent value means its default.
struct RunRequest {
  /// Zoo name, step file, torchvision:NAME, timm:NAME, hf:ORG/NAME, FILE.py:FUNCTION.
  std::string model;
  CaptureWishes capture;
  ScriptRequest script;               ///< where `model` is FILE.py
  std::string machine;                ///< a GPU's name, "cpu" or a machine file
  std::string host;                   ///< "cores=16,ram=64G" or a machine file; "": this machine
  std::string coefficients;           ///< time coefficients to lay over those that ship; "": none
  std::vector<Precision> precisions;  ///< in order of preference; none: see resolve() and exactly()
  std::optional<double> price_per_gpu_hour;  ///< default: the machine file's
  std::string price_file;                    ///< prices of rented machines (device/instances.h), ""
  std::optional<BatchRequest> batch;
  std::optional<std::int64_t> gpus;  ///< exactly these; of a search, the most that it considers
  std::optional<double> network_bandwidth;  ///< bytes/s of a node; default: the machine file's
  std::optional<GpuLink> link;  ///< between the GPUs of a computer; default: the machine's
  std::optional<std::int64_t> workers, prefetch;
  bool pin_given = false;  ///< `pin` was said
  bool pin = true;         ///< batches in page-locked memory; a CPU has no use for it
  std::optional<bool> persistent_workers;   ///< default: the probed loader's, else they are kept
  std::optional<StartMethod> start_method;  ///< of workers; default: the probed loader's, else fork
  DataRequest data;
  JobRequest job;
  AllocatorRequest allocator;

  /// The number of samples that was asked for; nullopt: none, or the largest.
  [[nodiscard]] std::optional<std::int64_t> given_batch() const {
    const auto* samples = batch ? std::get_if<std::int64_t>(&*batch) : nullptr;
    return samples != nullptr ? std::optional(*samples) : std::nullopt;
  }
  [[nodiscard]] bool wants_largest_batch() const {
    return batch && std::holds_alternative<LargestSafeBatch>(*batch);
  }
};

}  // namespace stoker
