#include "base/setting.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

constexpr std::size_t kSettings = static_cast<std::size_t>(Setting::kCount);
constexpr std::string_view kOff = "no-";

/// In the order of Setting.
constexpr std::array<std::string_view, kSettings> kNames{"model",
                                                         "machine",
                                                         "gpu",
                                                         "gpus",
                                                         "host",
                                                         "coefficients",
                                                         "price",
                                                         "data",
                                                         "recapture",
                                                         "assume",
                                                         "lora",
                                                         "reprobe",
                                                         "samples",
                                                         "sample-cost",
                                                         "storage",
                                                         "image-size",
                                                         "workers",
                                                         "prefetch",
                                                         "pin",
                                                         "persistent-workers",
                                                         "start-method",
                                                         "batch",
                                                         "precision",
                                                         "optimizer",
                                                         "optimizer-loop",
                                                         "momentum",
                                                         "weight-decay",
                                                         "nesterov",
                                                         "clip",
                                                         "clip-checks",
                                                         "ema",
                                                         "grad-scaler",
                                                         "zero-grad-after",
                                                         "zero-grad-fills",
                                                         "zero-grad-between",
                                                         "accumulate",
                                                         "checkpoint",
                                                         "seq-len",
                                                         "dim",
                                                         "threads",
                                                         "drop-output",
                                                         "channels-last",
                                                         "cudnn-benchmark",
                                                         "cuda-graphs",
                                                         "compile",
                                                         "copy",
                                                         "prefetching-loader",
                                                         "validation",
                                                         "validation-samples",
                                                         "validation-with-grad",
                                                         "last-batch",
                                                         "epochs",
                                                         "nodes",
                                                         "gpus-per-node",
                                                         "network",
                                                         "link",
                                                         "strong",
                                                         "parallel",
                                                         "fsdp-mixed-precision",
                                                         "fsdp-group",
                                                         "fsdp-cpu-offload",
                                                         "loss",
                                                         "bucket-view",
                                                         "alloc-conf",
                                                         "memory-fraction",
                                                         "cublas-workspace",
                                                         "objective",
                                                         "max-global-batch",
                                                         "budget",
                                                         "run-budget",
                                                         "method",
                                                         "reading",
                                                         "step-ms",
                                                         "blocking",
                                                         "cores",
                                                         "explain",
                                                         "by-layer",
                                                         "device",
                                                         "mode",
                                                         "kind",
                                                         "max-read",
                                                         "dram",
                                                         "learn"};
static_assert(!kNames.back().empty(), "a setting lacks its name");

bool is_known(std::string_view name) {
  if (name.starts_with(kOff)) name.remove_prefix(kOff.size());
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

std::string_view name_of(Setting setting) { return kNames[static_cast<std::size_t>(setting)]; }

std::string mark(Setting setting) { return "{" + std::string(name_of(setting)) + "}"; }

std::string mark_off(Setting setting) {
  return "{" + std::string(kOff) + std::string(name_of(setting)) + "}";
}

std::string with_flags(std::string_view sentence) {
  std::string text;
  text.reserve(sentence.size());
  while (true) {
    const std::size_t open = sentence.find('{');
    text += sentence.substr(0, open);
    if (open == std::string_view::npos) return text;
    sentence.remove_prefix(open);
    const std::size_t close = sentence.find('}');
    if (sentence.starts_with("{{") &&
        sentence.substr(std::min(close, sentence.size())).starts_with("}}")) {
      text += sentence.substr(1, close);  // a command's own {name}, not a setting
      sentence.remove_prefix(close + 2);
      continue;
    }
    if (close != std::string_view::npos && is_known(sentence.substr(1, close - 1))) {
      text += "--";
      text += sentence.substr(1, close - 1);
      sentence.remove_prefix(close + 1);
    } else {
      text += '{';
      sentence.remove_prefix(1);
    }
  }
}

}  // namespace stoker
