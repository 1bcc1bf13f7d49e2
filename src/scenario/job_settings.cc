#include "scenario/settings_table.h"

namespace stoker {
namespace {

using Type = SettingType;
using Devices = SettingDevices;

constexpr std::string_view kBoth = "plan predict", kPlan = "plan", kPredict = "predict";
constexpr std::string_view kMachine = "Machine", kData = "Data", kStep = "Step",
                           kOptimizer = "Optimizer", kSeveral = "Several GPUs", kMemory = "Memory",
                           kSearch = "Search", kAnswer = "Answer",
                           kInputAlone = "Input alone, without a model";

/// Beyond it bytes of a batch no longer fit into 64 bits.
constexpr double kMostBatch = 1 << 24;
constexpr double kMostSamples = 1LL << 50;
constexpr double kMostProcesses = 1024;

// clang-format off
const SettingRow kRows[] = {
  {.name = "model", .verbs = kBoth, .group = "", .value = "MODEL", .words = "zoo name, step file, torchvision:NAME, timm:NAME or FILE.py:FUNCTION", .positional = true},

  {.name = "gpu", .verbs = kPlan, .group = kMachine, .value = "GPU", .words = "GPUs side by side: a100-40gb,h100 (`stoker gpus`), cpu, or machine files", .first = kPlan},
  {.name = "gpu", .verbs = kPredict, .group = kMachine, .value = "GPU", .words = "GPU (`stoker gpus`), cpu, or machine file; several side by side: a,b,c", .first = kPredict, .required = true},
  {.name = "gpus", .verbs = kPlan, .group = kMachine, .value = "N", .words = "numbers of GPUs to consider: 4, 1,2,4 or 1..8", .fallback = "1..4", .aliases = "num-gpus", .devices = Devices::kGpu, .first = kPlan},
  {.name = "gpus", .verbs = kPredict, .group = kMachine, .value = "N", .words = "number of GPUs; 1..64: how many pay", .fallback = "1", .aliases = "num-gpus", .devices = Devices::kGpu, .first = kPredict},
  {.name = "host", .verbs = kBoth, .group = kMachine, .value = "HOST", .words = "cores=16,ram=64G,shm=8G,disk=2G,iops=90000,speed=1.2 or a machine file", .fallback = "this machine", .first = kPlan},
  {.name = "coefficients", .verbs = kBoth, .group = kMachine, .value = "FILE", .words = "time coefficients of `stoker fit`, over those that ship"},
  {.name = "price", .verbs = kBoth, .group = kMachine, .value = "MONEY", .words = "per GPU and hour; for several GPUs one each: 1.3,2.5", .fallback = "the machine file's", .first = kPlan},

  {.name = "data", .verbs = kBoth, .group = kData, .value = "PATH", .words = "folder or file of data, or a probe file of `stoker probe`", .aliases = "data-dir data-path", .first = kBoth},
  {.name = "reprobe", .verbs = kBoth, .group = kData, .type = Type::kSwitch, .words = "measure the folder again even if a probe is remembered"},
  {.name = "samples", .verbs = kBoth, .group = kData, .type = Type::kWhole, .value = "N", .words = "samples in an epoch", .fallback = "those in --data", .range = SettingRange{1, kMostSamples}},
  {.name = "sample-cost", .verbs = kBoth, .group = kData, .value = "TIME", .words = "CPU time of one sample instead of --data: 2.5ms"},
  {.name = "image-size", .verbs = kBoth, .group = kData, .type = Type::kWhole, .value = "N", .words = "side that images are cropped to", .fallback = "the model's", .aliases = "img-size", .range = SettingRange{1, 8192}},
  {.name = "workers", .verbs = kPlan, .group = kData, .type = Type::kWhole, .value = "N", .words = "fix the DataLoader workers per GPU", .fallback = "searched", .aliases = "num-workers dataloader-num-workers", .range = SettingRange{0, kMostProcesses}},
  {.name = "workers", .verbs = kPredict, .group = kData, .type = Type::kWhole, .value = "N", .words = "DataLoader workers per GPU", .fallback = "cores / GPUs", .aliases = "num-workers dataloader-num-workers", .range = SettingRange{0, kMostProcesses}, .first = kPredict},
  {.name = "prefetch", .verbs = kPlan, .group = kData, .type = Type::kWhole, .value = "N", .words = "fix the batches ahead per worker", .fallback = "searched", .aliases = "prefetch-factor dataloader-prefetch-factor", .range = SettingRange{1, kMostProcesses}},
  {.name = "prefetch", .verbs = kPredict, .group = kData, .type = Type::kWhole, .value = "N", .words = "batches ahead per worker", .fallback = "2", .aliases = "prefetch-factor dataloader-prefetch-factor", .range = SettingRange{1, kMostProcesses}},
  {.name = "pin", .verbs = kBoth, .group = kData, .type = Type::kPair, .words = "batches in pinned memory: DataLoader(pin_memory=True)", .fallback = "pinned", .aliases = "pin-memory pin-mem dataloader-pin-memory", .devices = Devices::kGpu},

  {.name = "batch", .verbs = kPlan, .group = kStep, .type = Type::kWhole, .value = "N", .words = "fix the batch per GPU", .fallback = "searched", .aliases = "batch-size per-device-train-batch-size", .range = SettingRange{1, kMostBatch}, .first = kPlan},
  {.name = "batch", .verbs = kPredict, .group = kStep, .value = "N", .words = "per GPU, or max: the largest that is safe", .fallback = "the captured one", .aliases = "batch-size per-device-train-batch-size", .first = kPredict},
  {.name = "precision", .verbs = kPlan, .group = kStep, .value = "P", .words = "one or several of fp32,tf32,amp-fp16,amp-bf16,bf16,fp16", .fallback = "all that the GPU has", .values = "fp32 tf32 amp-fp16 amp-bf16 bf16 fp16", .first = kPlan},
  {.name = "precision", .verbs = kPredict, .group = kStep, .value = "P", .words = "fp32, tf32, amp-fp16, amp-bf16, bf16, fp16", .fallback = "fp32, or the step file's", .values = "fp32 tf32 amp-fp16 amp-bf16 bf16 fp16", .first = kPredict},
  {.name = "accumulate", .verbs = kBoth, .group = kStep, .type = Type::kWhole, .value = "N", .words = "batches per optimizer step", .fallback = "1", .aliases = "gradient-accumulation-steps accumulate-grad-batches", .range = SettingRange{1, 4096}, .training = true},
  {.name = "checkpoint", .verbs = kBoth, .group = kStep, .value = "NAMES", .words = "recompute these modules: names, NAME.*, or \"blocks\"; comma separated", .first = kPredict, .training = true},
  {.name = "seq-len", .verbs = kBoth, .group = kStep, .type = Type::kWhole, .value = "N", .words = "sequence length of models that have one", .fallback = "the capture's", .aliases = "seq-length sequence-length max-seq-length"},
  {.name = "dim", .verbs = kBoth, .group = kStep, .type = Type::kList, .value = "NAME=N", .words = "another dimension of the model; may repeat", .fallback = "the capture's"},
  {.name = "threads", .verbs = kBoth, .group = kStep, .type = Type::kWhole, .value = "N", .words = "torch.set_num_threads", .fallback = "all cores of the machine", .aliases = "num-threads", .devices = Devices::kCpu},
  {.name = "channels-last", .verbs = kBoth, .group = kStep, .type = Type::kSwitch, .words = "channels-last memory format"},
  {.name = "cudnn-benchmark", .verbs = kBoth, .group = kStep, .type = Type::kSwitch, .words = "torch.backends.cudnn.benchmark = True", .devices = Devices::kGpu},
  {.name = "cuda-graphs", .verbs = kBoth, .group = kStep, .type = Type::kSwitch, .words = "forward, backward and optimizer replayed as CUDA graphs; approximate", .devices = Devices::kGpu},
  {.name = "copy", .verbs = kBoth, .group = kStep, .value = "WAY", .words = "of the batch to the GPU: overlapped, or non-blocking or blocking, both in line", .fallback = "overlapped", .noun = "way of copying", .values = "overlapped non-blocking blocking", .devices = Devices::kGpu},
  {.name = "validation", .verbs = kBoth, .group = kStep, .type = Type::kWhole, .value = "N", .words = "batch of a validation pass between epochs", .fallback = "none", .range = SettingRange{1, kMostBatch}, .training = true},
  {.name = "validation-samples", .verbs = kBoth, .group = kStep, .type = Type::kWhole, .value = "N", .words = "samples of that pass, for its time", .range = SettingRange{1, kMostSamples}, .training = true},
  {.name = "validation-with-grad", .verbs = kBoth, .group = kStep, .type = Type::kSwitch, .words = "the validation forgets torch.no_grad()", .training = true},
  {.name = "last-batch", .verbs = kBoth, .group = kStep, .value = "N", .words = "samples of an epoch's last batch, or auto", .fallback = "full or dropped"},
  {.name = "epochs", .verbs = kBoth, .group = kStep, .type = Type::kWhole, .value = "N", .words = "length of a run: start-up, first epoch and total time", .aliases = "max-epochs num-train-epochs", .range = SettingRange{1, 1 << 20}},
  {.name = "prefetching-loader", .verbs = kBoth, .group = kStep, .type = Type::kSwitch, .words = "the next batch waits on the device as bytes (timm's loader)", .devices = Devices::kGpu},

  {.name = "optimizer", .verbs = kBoth, .group = kOptimizer, .value = "NAME", .words = "sgd, adam, adamw, rmsprop, adagrad, adafactor, lion, none", .fallback = "captured, else sgd", .values = "sgd adam adamw rmsprop adagrad adafactor lion none", .first = kBoth, .training = true},
  {.name = "optimizer-loop", .verbs = kBoth, .group = kOptimizer, .value = "LOOP", .words = "foreach, fused, for-loop", .fallback = "foreach", .training = true},
  {.name = "momentum", .verbs = kBoth, .group = kOptimizer, .type = Type::kNumber, .value = "X", .words = "of SGD and RMSprop", .fallback = "0.9 for SGD", .range = SettingRange{0, 1}, .training = true},
  {.name = "weight-decay", .verbs = kBoth, .group = kOptimizer, .type = Type::kNumber, .value = "X", .words = "of the optimizer", .fallback = "0", .range = SettingRange{0, 1}, .training = true},
  {.name = "nesterov", .verbs = kBoth, .group = kOptimizer, .type = Type::kSwitch, .words = "Nesterov momentum", .training = true},
  {.name = "clip", .verbs = kBoth, .group = kOptimizer, .type = Type::kPair, .words = "clip_grad_norm_ before the optimizer's step", .fallback = "captured", .training = true},
  {.name = "clip-checks", .verbs = kBoth, .group = kOptimizer, .type = Type::kSwitch, .words = "clipping with error_if_nonfinite=True: the host waits for the norm", .training = true},
  {.name = "ema", .verbs = kBoth, .group = kOptimizer, .type = Type::kPair, .words = "a moving average of the model beside it", .fallback = "captured", .aliases = "model-ema", .training = true},
  {.name = "grad-scaler", .verbs = kBoth, .group = kOptimizer, .type = Type::kPair, .words = "torch.amp.GradScaler", .fallback = "for training in amp-fp16", .training = true},
  {.name = "zero-grad-after", .verbs = kBoth, .group = kOptimizer, .type = Type::kSwitch, .words = "zero_grad after the optimizer step, not before the forward", .training = true},
  {.name = "zero-grad-fills", .verbs = kBoth, .group = kOptimizer, .type = Type::kSwitch, .words = "zero_grad(set_to_none=False): gradients stay", .training = true},

  {.name = "nodes", .verbs = kBoth, .group = kSeveral, .type = Type::kWhole, .value = "N", .words = "computers that the GPUs are spread over", .fallback = "1", .aliases = "nnodes num-nodes", .range = SettingRange{1, kMostProcesses}, .devices = Devices::kGpu},
  {.name = "parallel", .verbs = kBoth, .group = kSeveral, .value = "KIND", .words = "ddp, dp, fsdp (= fsdp-zero3), fsdp-zero2", .fallback = "ddp", .noun = "kind of parallelism", .values = "ddp dp fsdp-zero2 fsdp-zero3 fsdp zero2 zero3", .devices = Devices::kGpu},
  {.name = "bucket-view", .verbs = kBoth, .group = kSeveral, .type = Type::kSwitch, .words = "DDP with gradient_as_bucket_view=True", .devices = Devices::kGpu, .training = true},
  {.name = "gpus-per-node", .verbs = kPredict, .group = kSeveral, .type = Type::kWhole, .value = "N", .words = "of --gpus 1..64: how many a computer has", .fallback = "the machine file's, else 8", .aliases = "nproc-per-node"},
  {.name = "network", .verbs = kPredict, .group = kSeveral, .value = "RATE", .words = "between nodes: 100G, 4x100G (gigabit/s of a node), edr, hdr, ndr, xdr", .fallback = "10 Gbit/s"},
  {.name = "strong", .verbs = kPredict, .group = kSeveral, .type = Type::kSwitch, .words = "of --gpus 1..64: share the batch of one GPU out, instead of a batch each"},
  {.name = "step-ms", .verbs = kPredict, .group = kSeveral, .type = Type::kNumber, .value = "X", .words = "of --gpus 1..64: measured step of one GPU in milliseconds", .fallback = "its forecast"},

  {.name = "alloc-conf", .verbs = kBoth, .group = kMemory, .value = "CONF", .words = "as PYTORCH_ALLOC_CONF, which is read too", .devices = Devices::kGpu},
  {.name = "memory-fraction", .verbs = kBoth, .group = kMemory, .type = Type::kNumber, .value = "X", .words = "as torch.cuda.set_per_process_memory_fraction", .range = SettingRange{0, 1, true}, .devices = Devices::kGpu},
  {.name = "cublas-workspace", .verbs = kBoth, .group = kMemory, .value = "CONF", .words = "as CUBLAS_WORKSPACE_CONFIG (:4096:2:16:8), which is read too", .devices = Devices::kGpu},

  {.name = "objective", .verbs = kPlan, .group = kSearch, .value = "WHAT", .words = "throughput, cost, epoch or energy", .fallback = "throughput", .values = "throughput cost epoch energy", .first = kPlan},
  {.name = "max-global-batch", .verbs = kPlan, .group = kSearch, .type = Type::kWhole, .value = "N", .words = "ceiling of batch x GPUs x accumulate, for convergence", .range = SettingRange{1}},
  {.name = "budget", .verbs = kPlan, .group = kSearch, .type = Type::kNumber, .value = "MONEY", .words = "that an epoch may cost; needs --price", .range = SettingRange{.above_low = true}},
  {.name = "run-budget", .verbs = kPlan, .group = kSearch, .type = Type::kNumber, .value = "MONEY", .words = "that a run may cost; needs --price and --epochs", .range = SettingRange{.above_low = true}},
  {.name = "method", .verbs = kPlan, .group = kSearch, .value = "METHOD", .words = "simulation, or thesis: also the settings by the rule of docs/models/recommendations.md", .fallback = "simulation", .values = "simulation thesis"},

  {.name = "step-ms", .verbs = kPlan, .group = kInputAlone, .type = Type::kNumber, .value = "X", .words = "measured milliseconds of a training step without waiting for data", .range = SettingRange{0, 1e7, true}},
  {.name = "blocking", .verbs = kPlan, .group = kInputAlone, .type = Type::kSwitch, .words = "the loop waits for every step (loss.item() each step, a step on the CPU)"},
  {.name = "cores", .verbs = kPlan, .group = kInputAlone, .type = Type::kNumber, .value = "X", .words = "cores that the loaders may use", .fallback = "this machine's", .range = SettingRange{0, 4096, true}},

  {.name = "explain", .verbs = kPredict, .group = kAnswer, .type = Type::kSwitch, .words = "memory by part, over a step and by module; time; what to change", .first = kPredict},
  {.name = "by-layer", .verbs = kPredict, .group = kAnswer, .type = Type::kSwitch, .words = "instead: each layer as a network of its own, their sum, and the step"},
  {.name = "method", .verbs = kPredict, .group = kAnswer, .value = "METHOD", .words = "simulation, or two-point: also the largest batch by two readings", .fallback = "simulation", .values = "simulation two-point"},
  {.name = "reading", .verbs = kPredict, .group = kAnswer, .type = Type::kList, .value = "READING", .words = "of two-point, twice: BATCH:MEMORY or BATCH:auto", .fallback = "10:auto, 50:auto"},
  {.name = "objective", .verbs = kPredict, .group = kAnswer, .value = "WHAT", .words = "what sorts several GPUs: throughput, cost, epoch, energy", .fallback = "throughput", .values = "throughput cost epoch energy"},
  {.name = "json", .verbs = kBoth, .group = kAnswer, .type = Type::kSwitch, .words = "for machines: docs/reference/json.md", .first = kBoth},
};
// clang-format on

}  // namespace

std::span<const SettingRow> job_settings() { return kRows; }

}  // namespace stoker
