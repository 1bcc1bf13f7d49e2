#include "scenario/settings_table.h"

namespace stoker {
namespace {

using Type = SettingType;

constexpr std::string_view kProbe = "probe", kCalibrate = "calibrate", kValidate = "validate",
                           kFit = "fit", kExplain = "explain", kModels = "models", kGpus = "gpus",
                           kMachine = "machine", kObservation = "observation", kCapture = "capture",
                           kSettings = "settings", kCompletion = "completion";
constexpr std::string_view kAny = "";
constexpr std::string_view kTraining = "Training steps", kInput = "Input pipeline";

// clang-format off
const SettingRow kRows[] = {
  {.name = "what", .verbs = kProbe, .group = kAny, .value = "WHAT", .words = "folder or file of JPEG or PNG images, tar shards, CIFAR or idx records, or text; FILE.py:FUNCTION that returns a Dataset or a DataLoader; or a probe file to show", .positional = true, .required = true},
  {.name = "output", .verbs = kProbe, .group = kAny, .value = "FILE", .words = "write a probe file that --data takes", .first = kProbe, .letter = 'o'},
  {.name = "budget", .verbs = kProbe, .group = kAny, .value = "TIME", .words = "time to spend", .fallback = "10s, of FILE.py:FUNCTION 20s", .first = kProbe},
  {.name = "max-read", .verbs = kProbe, .group = kAny, .value = "SIZE", .words = "bytes to read at most", .fallback = "2G", .first = kProbe},
  {.name = "image-size", .verbs = kProbe, .group = kAny, .type = Type::kWhole, .value = "N", .words = "side that images are cropped to", .fallback = "224", .aliases = "img-size", .range = SettingRange{1, 8192}, .first = kProbe},
  {.name = "sample", .verbs = kProbe, .group = kAny, .type = Type::kWhole, .value = "N", .words = "samples to measure at most", .fallback = "256", .range = SettingRange{1}, .first = kProbe},
  {.name = "kind", .verbs = kProbe, .group = kAny, .value = "KIND", .words = "pictures, tar-shards, records or text", .fallback = "what fills most bytes", .first = kProbe},
  {.name = "dram", .verbs = kProbe, .group = kAny, .value = "SIZES", .words = "memories to set the data beside, as 20G,128G", .first = kProbe},
  {.name = "json", .verbs = kProbe, .group = kAny, .type = Type::kSwitch, .words = "the probe as JSON on stdout", .first = kProbe},

  {.name = "rows-file", .verbs = kCalibrate, .group = kAny, .value = "ROWS.json", .words = "rows file of an earlier run: nothing is measured", .positional = true},
  {.name = "output", .verbs = kCalibrate, .group = kAny, .value = "MACHINE.toml", .words = "machine file; one of this machine is brought up to date", .first = kCalibrate, .letter = 'o'},
  {.name = "device", .verbs = kCalibrate, .group = kAny, .value = "DEVICE", .words = "cpu, cuda or cuda:N", .fallback = "cpu", .first = kCalibrate, .measuring = true},
  {.name = "budget", .verbs = kCalibrate, .group = kAny, .value = "TIME", .words = "time for everything", .fallback = "60s", .first = kCalibrate, .measuring = true},
  {.name = "for", .verbs = kCalibrate, .group = kAny, .value = "MODELS", .words = "models whose operators come first: resnet18,train.py:model", .first = kCalibrate, .measuring = true},
  {.name = "threads", .verbs = kCalibrate, .group = kAny, .value = "N", .words = "of a CPU: 1,2", .fallback = "1 and all cores", .aliases = "num-threads", .first = kCalibrate, .measuring = true},
  {.name = "rows", .verbs = kCalibrate, .group = kAny, .value = "FILE", .words = "keep what was measured in this file, and go on where it stops", .first = kCalibrate, .measuring = true},
  {.name = "json", .verbs = kCalibrate, .group = kAny, .type = Type::kSwitch, .words = "the result as JSON on stdout: docs/reference/json.md", .first = kCalibrate},

  {.name = "what", .verbs = kValidate, .group = kAny, .value = "WHAT", .words = "MODEL to train for some steps, a rows file or an observation (nothing is measured); with --input FILE.py:FUNCTION or a rows file", .positional = true},
  {.name = "input", .verbs = kValidate, .group = kAny, .type = Type::kSwitch, .words = "the input pipeline, by real DataLoaders", .first = kValidate},
  {.name = "budget", .verbs = kValidate, .group = kAny, .value = "TIME", .words = "time to spend", .fallback = "2m; of --input 20m, 3m for your own, 2m with --quick", .first = kValidate, .measuring = true},
  {.name = "output", .verbs = kValidate, .group = kAny, .value = "ROWS.json", .words = "rows file to write, continued when it exists", .first = kValidate, .letter = 'o', .measuring = true},
  {.name = "log", .verbs = kValidate, .group = kAny, .type = Type::kSwitch, .words = "show what was forecast and measured on this machine before", .first = kValidate},
  {.name = "json", .verbs = kValidate, .group = kAny, .type = Type::kSwitch, .words = "the comparison as JSON on stdout: docs/reference/json.md", .first = kValidate},
  {.name = "machine", .verbs = kValidate, .group = kTraining, .value = "MACHINE", .words = "machine file or GPU that is forecast", .fallback = "the measured device's facts", .first = kValidate},
  {.name = "device", .verbs = kValidate, .group = kTraining, .value = "DEVICE", .words = "cpu, cuda or cuda:N", .fallback = "the machine's, else a GPU that is there", .measuring = true},
  {.name = "batches", .verbs = kValidate, .group = kTraining, .value = "N", .words = "auto, or 4,8,16", .fallback = "auto: the model's own, half and twice", .first = kValidate, .measuring = true},
  {.name = "threads", .verbs = kValidate, .group = kTraining, .value = "N", .words = "of a CPU: 1,2", .fallback = "PyTorch's own number", .aliases = "num-threads", .measuring = true},
  {.name = "precision", .verbs = kValidate, .group = kTraining, .value = "P", .words = "one or several of fp32, amp-fp16, amp-bf16, bf16, fp16", .fallback = "fp32", .measuring = true},
  {.name = "optimizer", .verbs = kValidate, .group = kTraining, .value = "NAME", .words = "sgd, adam, adamw, rmsprop or adagrad", .fallback = "the captured, else sgd", .measuring = true},
  {.name = "data", .verbs = kValidate, .group = kTraining, .value = "SPEC", .words = "FILE.py:FUNCTION that returns your DataLoader", .fallback = "made-up samples", .measuring = true},
  {.name = "model", .verbs = kValidate, .group = kTraining, .value = "MODEL", .words = "of an observation: what `stoker predict` calls the model"},
  {.name = "learn", .verbs = kValidate, .group = kTraining, .type = Type::kSwitch, .words = "correct the machine file by these runs, if that helps held-out ones", .first = kValidate},
  {.name = "quick", .verbs = kValidate, .group = kInput, .type = Type::kSwitch, .words = "few points, one short repetition each", .measuring = true},

  {.name = "rows", .verbs = kFit, .group = kAny, .value = "ROWS.csv", .words = "CSV of operators, layers or whole steps: docs/guide/fit.md", .positional = true, .required = true},
  {.name = "output", .verbs = kFit, .group = kAny, .value = "FILE", .words = "write the coefficients that --coefficients takes", .first = kFit, .letter = 'o'},
  {.name = "gpu", .verbs = kFit, .group = kAny, .value = "GPU", .words = "of rows that name none: GPU or machine file", .first = kFit},
  {.name = "json", .verbs = kFit, .group = kAny, .type = Type::kSwitch, .words = "the coefficient file on stdout instead of the table", .first = kFit},

  {.name = "files", .verbs = kObservation, .group = kAny, .type = Type::kList, .value = "FILE", .words = "what stoker.Observer or stoker.observe_step wrote; several: those of the ranks of one run", .positional = true, .required = true},
  {.name = "json", .verbs = kObservation, .group = kAny, .type = Type::kSwitch, .words = "as JSON on standard output", .first = kObservation},

  {.name = "file", .verbs = kExplain, .group = kAny, .value = "FILE", .words = "snapshot (.pickle) or torch.profiler trace (.json); .gz is unpacked", .positional = true, .required = true},
  {.name = "at", .verbs = kExplain, .group = kAny, .value = "MOMENT", .words = "moment of a snapshot: peak, oom or end", .fallback = "oom, else peak", .first = kExplain},
  {.name = "device", .verbs = kExplain, .group = kAny, .type = Type::kWhole, .value = "N", .words = "number of the GPU", .fallback = "the one that holds most", .range = SettingRange{0}, .first = kExplain},
  {.name = "gpu", .verbs = kExplain, .group = kAny, .value = "GPU", .words = "model of the GPU: its memory, for comparing expandable segments", .first = kExplain},
  {.name = "json", .verbs = kExplain, .group = kAny, .type = Type::kSwitch, .words = "for machines", .first = kExplain},

  {.name = "spec", .verbs = kCapture, .group = kAny, .value = "SPEC", .words = "torchvision:NAME, timm:NAME or FILE.py:FUNCTION (returns module and example inputs)", .positional = true, .required = true},
  {.name = "output", .verbs = kCapture, .group = kAny, .value = "FILE", .words = "the step file", .fallback = "NAME.step.gz", .first = kCapture, .letter = 'o'},
  {.name = "precision", .verbs = kCapture, .group = kAny, .value = "P", .words = "fp32, tf32, amp-fp16, amp-bf16, bf16, fp16", .fallback = "fp32", .values = "fp32 tf32 amp-fp16 amp-bf16 bf16 fp16", .first = kCapture},
  {.name = "mode", .verbs = kCapture, .group = kAny, .value = "M", .words = "train or inference", .fallback = "train", .values = "train inference", .first = kCapture},
  {.name = "device", .verbs = kCapture, .group = kAny, .value = "D", .words = "what the step is for: cuda (any GPU) or cpu", .fallback = "cuda", .values = "cuda cpu", .first = kCapture},
  {.name = "batch", .verbs = kCapture, .group = kAny, .type = Type::kWhole, .value = "N", .words = "the default batch that the file records", .first = kCapture},
  {.name = "image-size", .verbs = kCapture, .group = kAny, .type = Type::kWhole, .value = "N", .words = "side of the images (torchvision, timm)", .first = kCapture},
  {.name = "name", .verbs = kCapture, .group = kAny, .value = "NAME", .words = "what the model is called in reports"},
  {.name = "set", .verbs = kCapture, .group = kAny, .type = Type::kList, .value = "NAME=VALUE", .words = "an argument of the capture function or the model's constructor; may repeat", .first = kCapture},
  {.name = "fixed", .verbs = kCapture, .group = kAny, .type = Type::kList, .value = "NAME=N", .words = "hold a dimension at one size; may repeat", .first = kCapture},
  {.name = "json-progress", .verbs = kCapture, .group = kAny, .type = Type::kSwitch, .words = "progress as JSON lines on stderr"},
  {.name = "quiet", .verbs = kCapture, .group = kAny, .type = Type::kSwitch, .words = "say nothing but errors", .first = kCapture},
  {.name = "json", .verbs = kCapture, .group = kAny, .type = Type::kSwitch, .words = "what was written, as JSON on standard output", .first = kCapture},

  {.name = "model", .verbs = kModels, .group = kAny, .value = "MODEL", .words = "one model, as in `stoker predict`", .positional = true},
  {.name = "batch", .verbs = kModels, .group = kAny, .type = Type::kWhole, .value = "N", .words = "samples of the step", .fallback = "the model's own", .aliases = "batch-size", .first = kModels},
  {.name = "dim", .verbs = kModels, .group = kAny, .type = Type::kList, .value = "NAME=N", .words = "another dimension of the model; may repeat", .first = kModels},
  {.name = "precision", .verbs = kModels, .group = kAny, .value = "P", .words = "as captured", .fallback = "fp32", .first = kModels},
  {.name = "json", .verbs = kModels, .group = kAny, .type = Type::kSwitch, .words = "for machines", .first = kModels},
  {.name = "json", .verbs = kGpus, .group = kAny, .type = Type::kSwitch, .words = "for machines, with sources", .first = kGpus},
  {.name = "seconds", .verbs = kMachine, .group = kAny, .type = Type::kNumber, .value = "X", .words = "to watch what others use of the cores; 0: do not", .fallback = "0.2", .range = SettingRange{0, 3600}, .first = kMachine},
  {.name = "json", .verbs = kMachine, .group = kAny, .type = Type::kSwitch, .words = "for machines", .first = kMachine},

  {.name = "markdown", .verbs = kSettings, .group = kAny, .type = Type::kSwitch, .words = "as the page docs/reference/settings.md", .first = kSettings},
  {.name = "shell", .verbs = kCompletion, .group = kAny, .value = "SHELL", .words = "bash, zsh or fish", .noun = "shell", .values = "bash zsh fish", .positional = true, .required = true},
};
// clang-format on

}  // namespace

std::span<const SettingRow> measuring_settings() { return kRows; }

}  // namespace stoker
