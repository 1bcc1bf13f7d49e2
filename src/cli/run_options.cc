#include "cli/run_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "cli/cpu_machine.h"
#include "cli/data_source.h"
#include "cli/report_context.h"
#include "device/gpu_catalogue.h"
#include "device/resolve.h"
#include "device/this_host.h"

namespace stoker::cli {
namespace {

/// Whole numbers from the command line: in range for what they count.
Status check_counts(const RunOptions& o) {
  constexpr std::int64_t kMostBatch = 1LL << 24;  // beyond it bytes no longer fit into 64 bits
  struct Check {
    const char* flag;
    std::optional<std::int64_t> value;
    std::int64_t low, high;
  };
  const std::vector<Check> checks{{"--batch", o.batch, 1, kMostBatch},
                                  {"--samples", o.samples, 1, 1LL << 50},
                                  {"--workers", o.workers, 0, 1024},
                                  {"--prefetch", o.prefetch, 1, 1024},
                                  {"--image-size", o.image_size, 1, 8192},
                                  {"--accumulate", o.job.accumulate, 1, 4096},
                                  {"--nodes", o.job.nodes, 1, 1024},
                                  {"--validation", o.job.validation, 1, kMostBatch},
                                  {"--validation-samples", o.job.validation_samples, 1, 1LL << 50},
                                  {"--epochs", o.job.epochs, 1, 1LL << 20}};
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

}  // namespace

std::vector<Flag> run_flags(RunOptions& o) {
  std::vector<Flag> flags{{"model",
                           "zoo name, step file, torchvision:NAME, timm:NAME or FILE.py:FUNCTION",
                           &o.model, true}};
  const auto append = [&](std::vector<Flag> more) {
    for (Flag& flag : more) flags.push_back(std::move(flag));
  };
  append(grouped(
      "Machine",
      {{"--gpu", "GPU (see `stoker gpus`) or machine file", &o.gpu, true},
       {"--gpus", "number of GPUs; default 1", &o.gpus},
       {"--host", "cores=16,ram=64G,shm=8G or a machine file; default: this machine", &o.host},
       {"--coefficients", "time coefficients of `stoker fit`, over those that ship",
        &o.coefficients},
       {"--price", "money per GPU and hour; for several GPUs one each: 1.3,2.5", &o.price}}));
  append(grouped(
      "Data",
      {{"--data", "folder of pictures, or a probe file of `stoker probe`", &o.data},
       {"--reprobe", "measure the folder again even if a probe is remembered", &o.reprobe},
       {"--samples", "samples in an epoch; default: the pictures in --data", &o.samples},
       {"--sample-cost", "CPU time of one sample instead of --data: 2.5ms", &o.sample_cost},
       {"--image-size", "side that pictures are cropped to; default: the model's", &o.image_size},
       {"--workers", "DataLoader workers per GPU; default: cores / GPUs", &o.workers},
       {"--prefetch", "batches ahead per worker; default 2", &o.prefetch},
       {"--no-pin", "pageable memory: DataLoader(pin_memory=False)", &o.no_pin}}));
  append(grouped("Step",
                 {{"--batch", "per GPU; default: the captured one", &o.batch},
                  {"--precision", "fp32, tf32, amp-fp16, amp-bf16, bf16, fp16", &o.precision}}));
  append(job_flags(o.job));
  append(allocator_flags(o.allocator));
  append(grouped("Answer", {{"--json", "for machines: docs/reference/json.md", &o.json}}));
  return flags;
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
  TRY(check_counts(o));
  auto knowledge = TRY(load_knowledge());
  if (!o.coefficients.empty()) {
    TRY(knowledge.timing.lay_over(o.coefficients));
  }
  auto machine = TRY(resolve_machine(gpu, o.host, this_host()));
  TRY(check_device_flags(o, machine.gpu));
  const bool cpu = machine.gpu.is_cpu();
  auto allocator =
      TRY(cpu ? Result<AllocatorConfig>(AllocatorConfig{}) : allocator_of(o.allocator));
  auto model =
      load_model(o.model, precisions.empty() ? default_precisions(machine.gpu) : precisions,
                 cpu ? ModelDevice::kCpu : ModelDevice::kGpu);
  if (!model) return tl::unexpected(model.error());
  Resolved r{std::move(*model), {}, {}, {}, std::move(knowledge), {}};
  Scenario& base = r.base;
  base.step = r.model.variants.front().step.get();
  base.machine = std::move(machine);
  base.allocator = allocator;
  const auto price = TRY(price_of(o, position, base.machine.gpu.price_per_hour));
  base.price_per_gpu_hour = price;
  TRY(check_capture(*base.step, base.machine.gpu, o.model));
  TRY(check_image_size(o, *base.step));
  TRY(fill_dimensions(o.job, base.job));
  auto data = TRY(load_data({o.data, o.sample_cost, o.samples, o.image_size, o.reprobe}, *base.step,
                            base.job.dimensions, r.knowledge.loader));
  base.sample = std::move(data.sample);
  base.dataset_samples = data.samples;
  r.probe = std::move(data.probe);
  r.pipeline = std::move(data.pipeline);
  TRY(fill_job(o.job, *base.step, base));
  TRY(fill_threads(o.job, base.machine.gpu, base.job));
  if (o.no_pin && base.copy != CopyWay::kBlocking && !o.job.copy.empty()) {
    return fail(ErrorCode::kUsage,
                "copies from pageable memory (--no-pin) hold the host; leave one of the two out",
                "--copy");
  }
  TRY(cpu ? Status{} : fill_workspaces(o.allocator, base.job));
  fill_context(o, r);
  return r;
}

}  // namespace stoker::cli
