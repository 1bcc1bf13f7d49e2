#include "cli/run_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "cli/data_source.h"
#include "cli/version.h"
#include "machine/gpu_catalogue.h"
#include "machine/host_facts.h"
#include "machine/resolve.h"
#include "memory/allocator_config.h"

namespace stoker::cli {
namespace {

Status fill_optimizer(const RunOptions& o, const Step& step, OptimizerSettings& settings) {
  settings = captured_optimizer(step);
  if (!o.optimizer.empty()) {
    const auto kind = parse_optimizer(o.optimizer);
    if (!kind) return tl::unexpected(kind.error());
    if (*kind != settings.kind) settings = OptimizerSettings{};
    settings.kind = *kind;
    if (*kind != OptimizerKind::kSgd && *kind != OptimizerKind::kRmsprop) settings.momentum = 0;
    if (*kind == OptimizerKind::kRmsprop) settings.momentum = 0;
  }
  if (!o.optimizer_loop.empty()) {
    const auto loop = parse_optimizer_loop(o.optimizer_loop);
    if (!loop) return tl::unexpected(loop.error());
    settings.loop = *loop;
  }
  const auto in_range = [](const char* flag, std::optional<double> value) -> Status {
    if (value && !(*value >= 0 && *value <= 1))
      return fail(ErrorCode::kBadInput, "must lie between 0 and 1", flag);
    return {};
  };
  if (auto s = in_range("--momentum", o.momentum); !s) return s;
  if (auto s = in_range("--weight-decay", o.weight_decay); !s) return s;
  if (o.momentum) settings.momentum = *o.momentum;
  if (o.weight_decay) settings.weight_decay = *o.weight_decay;
  settings.nesterov = settings.nesterov || o.nesterov;
  return {};
}

Status fill_dimensions(const RunOptions& o, Job& job) {
  if (o.seq_len) job.dimensions["seq_len"] = *o.seq_len;
  for (const std::string& text : o.dimensions) {
    const auto at = text.find('=');
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    if (at == std::string::npos || at == 0 ||
        std::from_chars(text.data() + at + 1, end, value).ptr != end || at + 1 == text.size()) {
      return fail(ErrorCode::kUsage, "\"" + text + "\" is not NAME=NUMBER", "--dim");
    }
    job.dimensions[text.substr(0, at)] = value;
  }
  return {};
}

/// Whole numbers from the command line: in range for what they count.
Status check_counts(const RunOptions& o) {
  struct Check {
    const char* flag;
    std::optional<std::int64_t> value;
    std::int64_t low, high;
  };
  const std::vector<Check> checks{
      {"--batch", o.batch, 1, 1LL << 32},      {"--samples", o.samples, 1, 1LL << 50},
      {"--accumulate", o.accumulate, 1, 4096}, {"--workers", o.workers, 0, 1024},
      {"--prefetch", o.prefetch, 1, 1024},     {"--nodes", o.nodes, 1, 1024},
      {"--image-size", o.image_size, 1, 8192}};
  for (const Check& c : checks) {
    if (c.value && (*c.value < c.low || *c.value > c.high)) {
      return fail(ErrorCode::kBadInput,
                  "must be between " + with_commas(c.low) + " and " + with_commas(c.high) +
                      ", not " + std::to_string(*c.value),
                  c.flag);
    }
  }
  return {};
}

/// The price of the GPU at `position` of --gpu: one price for all, or one each.
Result<double> price_of(const RunOptions& o, std::size_t position, double of_machine_file) {
  if (o.price.empty()) return of_machine_file;
  const auto prices = split(o.price, ',');
  const std::size_t gpus = split(o.gpu, ',').size();
  if (prices.size() != 1 && prices.size() != gpus) {
    return fail(ErrorCode::kUsage,
                std::to_string(prices.size()) + " prices for " + std::to_string(gpus) +
                    " GPUs; give one, or one for each",
                "--price");
  }
  const std::string& text = prices[prices.size() == 1 ? 0 : position];
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  constexpr double kDearest = 1e6;
  if (error != std::errc() || end != text.data() + text.size() ||
      !(price > 0 && price < kDearest)) {
    return fail(ErrorCode::kBadInput, "must be a positive price per GPU and hour, not " + text,
                "--price");
  }
  return price;
}

/// A step was captured at one picture size; another needs another capture.
Status check_image_size(const RunOptions& o, const Step& step) {
  const std::int64_t side = picture_side(step);
  if (!o.image_size || side == 0 || *o.image_size == side) return {};
  return fail(ErrorCode::kBadInput,
              step.name + " was captured at " + std::to_string(side) + " px; capture it at " +
                  std::to_string(*o.image_size) + " with `stoker capture SPEC --image-size " +
                  std::to_string(*o.image_size) + "` and give the step file",
              "--image-size");
}

Result<AllocatorConfig> allocator_of(const RunOptions& o) {
  std::string text = o.alloc_conf;
  std::string where = "--alloc-conf";
  if (text.empty()) {
    for (const std::string_view variable : kAllocatorEnvironment) {
      if (const char* value = std::getenv(std::string(variable).c_str());
          value != nullptr && *value != '\0') {
        text = value;
        where = variable;
        break;
      }
    }
  }
  auto config = parse_allocator_config(text);
  if (!config) return fail(config.error().code, config.error().text(), where);
  return config;
}

Status fill_job(const RunOptions& o, const Step& step, Job& job) {
  if (!o.parallel.empty() && o.parallel != "ddp") {
    return fail(ErrorCode::kUnsupported, "\"" + o.parallel + "\" is not modelled yet; ddp is",
                "--parallel");
  }
  if (auto s = fill_optimizer(o, step, job.optimizer); !s) return s;
  if (auto s = fill_dimensions(o, job); !s) return s;
  job.accumulate = static_cast<int>(o.accumulate.value_or(1));
  job.nodes = static_cast<int>(o.nodes.value_or(1));
  job.channels_last = o.channels_last;
  job.cudnn = o.cudnn_benchmark ? CudnnProfile::kBenchmark : CudnnProfile::kDefault;
  job.gradient_as_bucket_view = o.bucket_view;
  job.zero_grad_before_forward = !o.zero_grad_after;
  return {};
}

void fill_context(const RunOptions& o, Resolved& r) {
  ReportContext& c = r.context;
  const Step& step = *r.base.step;
  c.tool_version = kVersion;
  c.model = o.model;
  c.step_hash = step.provenance.event_hash;
  c.sample_word = picture_side(step) > 0           ? "img"
                  : step.sample_what == "video"    ? "clip"
                  : step.sample_what == "sequence" ? "seq"
                                                   : step.sample_what;
  c.host_name = r.base.machine.host.name;
  c.host_cores = r.base.machine.host.cores;
  c.dataset_samples = r.base.dataset_samples;
  c.step = r.base.step;
  const Machine& m = r.base.machine;
  if (m.gpu.calibrated) c.rests_on.push_back("measurements of this GPU (machine file)");
  if (r.probe)
    c.rests_on.push_back("a probe of " + r.probe->dataset.name + " on " +
                         r.probe->provenance.cpu_model);
  if (m.gpu.peak.tf32_tensor > 0) {
    c.assumed.push_back("fp32 runs convolutions in TF32 (PyTorch's default)");
  }
  if (!m.gpu.assumption.empty()) c.assumed.push_back(m.gpu.assumption);
  char cores[32];
  std::snprintf(cores, sizeof cores, "%g", m.host.cores);
  c.assumed.push_back("host = " + m.host.name + ", " + cores + " cores" +
                      (m.host.is_this_machine ? " (--host)" : ""));
  if (!m.host.assumption.empty()) c.assumed.push_back(m.host.assumption);
  if (r.probe) {
    c.assumed.push_back("random crop, flip, normalise");
    c.data.merge(r.probe->diagnostics);
    if (const std::string warning = foreign_load_warning(r.probe->foreign); !warning.empty()) {
      c.data.add("disturbed_probe", Severity::kWarning, warning);
    }
  }
  if (!r.base.sample.known) c.assumed.push_back("input is fast enough (--data, --sample-cost)");
  c.excluded.push_back("validation pass");
  if (r.base.price_per_gpu_hour <= 0) c.excluded.push_back("cost (--price)");
}

}  // namespace

std::vector<Flag> run_flags(RunOptions& o) {
  return {
      {"model", "zoo name, step file, torchvision:NAME, timm:NAME or FILE.py:FUNCTION", &o.model,
       true},
      {"--gpu", "GPU (see `stoker gpus`) or machine file", &o.gpu, true},
      {"--host", "cores=16,ram=64G,shm=8G or a machine file; default: this machine", &o.host},
      {"--nodes", "computers that the GPUs are spread over; default 1", &o.nodes},
      {"--data", "folder of pictures, or a probe file of `stoker probe`", &o.data},
      {"--reprobe", "measure the folder again even if a probe is remembered", &o.reprobe},
      {"--samples", "samples in an epoch; default: the pictures in --data", &o.samples},
      {"--sample-cost", "CPU time of one sample instead of --data, such as 2.5ms", &o.sample_cost},
      {"--image-size", "side that pictures are cropped to; default: what the model takes",
       &o.image_size},
      {"--precision", "fp32, tf32, amp-fp16, amp-bf16, bf16, fp16", &o.precision},
      {"--optimizer",
       "sgd, adam, adamw, rmsprop, adagrad, adafactor, lion, none; default: the captured one, else "
       "sgd",
       &o.optimizer},
      {"--optimizer-loop", "foreach (default), fused, for-loop", &o.optimizer_loop},
      {"--momentum", "of SGD and RMSprop; default 0.9 for SGD", &o.momentum},
      {"--weight-decay", "default 0", &o.weight_decay},
      {"--nesterov", "Nesterov momentum", &o.nesterov},
      {"--accumulate", "batches per optimizer step; default 1", &o.accumulate},
      {"--seq-len", "sequence length of models that have one", &o.seq_len},
      {"--dim", "NAME=NUMBER, another dimension of the model; may repeat", &o.dimensions},
      {"--channels-last", "channels-last memory format", &o.channels_last},
      {"--cudnn-benchmark", "torch.backends.cudnn.benchmark = True", &o.cudnn_benchmark},
      {"--bucket-view", "DDP with gradient_as_bucket_view=True", &o.bucket_view},
      {"--zero-grad-after", "zero_grad after the optimizer step rather than before the forward",
       &o.zero_grad_after},
      {"--alloc-conf", "as PYTORCH_ALLOC_CONF, which is read too", &o.alloc_conf},
      {"--parallel", "ddp", &o.parallel},
      {"--price", "money per GPU and hour; for several GPUs one each: 1.3,2.5", &o.price},
      {"--no-pin", "pageable memory: DataLoader(pin_memory=False)", &o.no_pin},
      {"--json", "for machines: docs/json.md", &o.json}};
}

std::vector<Precision> default_precisions(const Gpu& gpu) {
  std::vector<Precision> list{Precision::kFp32};
  if (gpu.peak.tf32_tensor > 0) list.push_back(Precision::kTf32);
  if (gpu.peak.bf16_tensor > 0) list.push_back(Precision::kAmpBf16);
  if (gpu.peak.fp16_tensor > 0) list.push_back(Precision::kAmpFp16);
  return list;
}

Result<std::vector<int>> parse_counts(const std::string& text) {
  constexpr int kMost = 1024;
  const auto refuse = [&] {
    return fail(ErrorCode::kUsage, "\"" + text + "\" is no number of GPUs; write 4, 1,2,4 or 1..8",
                "--gpus");
  };
  const auto number = [](std::string_view word) {
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() && value >= 1 && value <= kMost
               ? value
               : 0;
  };
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const auto dots = part.find("..");
    const int first = number(std::string_view(part).substr(0, dots));
    const int last =
        dots == std::string::npos ? first : number(std::string_view(part).substr(dots + 2));
    if (first == 0 || last == 0 || last < first) return refuse();
    // From 16 on every count in between says nothing new.
    for (int n = first; n <= last; n += n < 16 ? 1 : 8) counts.push_back(n);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Result<Resolved> resolve(const RunOptions& o, const std::string& gpu,
                         const std::vector<Precision>& precisions, std::size_t position) {
  if (auto s = check_counts(o); !s) return tl::unexpected(s.error());
  auto knowledge = load_knowledge();
  if (!knowledge) return tl::unexpected(knowledge.error());
  auto machine = resolve_machine(gpu, o.host, this_host());
  if (!machine) return tl::unexpected(machine.error());
  auto allocator = allocator_of(o);
  if (!allocator) return tl::unexpected(allocator.error());
  auto model =
      load_model(o.model, precisions.empty() ? default_precisions(machine->gpu) : precisions);
  if (!model) return tl::unexpected(model.error());
  Resolved r{std::move(*model), {}, {}, std::move(*knowledge), {}};
  Scenario& base = r.base;
  base.step = r.model.variants.front().step.get();
  base.machine = std::move(*machine);
  base.allocator = *allocator;
  const auto price = price_of(o, position, base.machine.gpu.price_per_hour);
  if (!price) return tl::unexpected(price.error());
  base.price_per_gpu_hour = *price;
  if (auto s = check_image_size(o, *base.step); !s) return tl::unexpected(s.error());
  if (auto s = fill_job(o, *base.step, base.job); !s) return tl::unexpected(s.error());
  auto data = load_data({o.data, o.sample_cost, o.samples, o.image_size, o.reprobe}, *base.step,
                        base.job.dimensions, r.knowledge.loader);
  if (!data) return tl::unexpected(data.error());
  base.sample = std::move(data->sample);
  base.dataset_samples = data->samples;
  r.probe = std::move(data->probe);
  fill_context(o, r);
  return r;
}

std::string model_line(const Resolved& resolved, const Job& job) {
  const Step& step = *resolved.base.step;
  std::string optimizer(name_of(job.optimizer.kind));
  if (job.optimizer.kind == OptimizerKind::kSgd)
    optimizer = job.optimizer.momentum > 0 ? "SGD momentum" : "SGD";
  std::string line = resolved.model.name + " | " + step.mode;
  if (step.mode == "train") line += ", " + optimizer;
  const std::int64_t side = picture_side(step);
  if (side > 0) line += ", " + std::to_string(side) + " px";
  for (const Dimension& d : step.dimensions) {
    if (d.name == "batch") continue;
    const auto it = job.dimensions.find(d.name);
    line += ", " + d.name + " " +
            std::to_string(it == job.dimensions.end() ? d.default_value : it->second);
  }
  return line + " | " + resolved.base.machine.gpu.name + " | " + (job.gpus > 1 ? "DDP, " : "") +
         "eager, " + std::string(name_of(job.precision));
}

}  // namespace stoker::cli
