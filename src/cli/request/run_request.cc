#include "cli/request/run_request.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include "base/setting.h"
#include "base/text.h"
#include "cli/arguments/written_values.h"
#include "device/catalogue/gpu_catalogue.h"
#include "diagnosis/next_run/recorded_timeline.h"
#include "forecast/node_share.h"

namespace stoker::cli {
namespace {

/// The number that is all of `text`; nullopt: there is none.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

bool names_same_gpu(const std::string& a, const std::string& b) {
  if (a == b) return true;  // two files' names differ by any letter
  const auto first = find_gpu(a), second = find_gpu(b);
  return first && second && first->name == second->name;
}

bool is_price_file(const std::string& price) { return price.ends_with(".csv"); }

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// "t4x2", "a100 x 8", "a100-80gbx8": the number behind the name. The x of a brand ("gtx970")
/// stands behind another letter.
std::optional<NamedGpu> counted_behind(const std::string& name, std::size_t position) {
  std::error_code ignored;
  const auto cross = name.rfind('x');
  if (cross == std::string::npos || cross == 0 || name.find(':') != std::string::npos ||
      std::filesystem::exists(name, ignored))
    return std::nullopt;
  const std::string_view whole(name), own = without_spaces(whole.substr(0, cross));
  const auto count = whole_number<int>(without_spaces(whole.substr(cross + 1)));
  if (!count || *count < 1 || *count > kMostGpus || own.empty()) return std::nullopt;
  const char before = whole[cross - 1];
  const bool ends = before == ' ' || (before >= '0' && before <= '9') || own.ends_with("gb") ||
                    own.ends_with("GB");
  // "4x4090" has its number before the name.
  if (!ends || whole_number<int>(own)) return std::nullopt;
  return NamedGpu{std::string(own), position, *count};
}

/// "4xa100-80gb", "4 x a100-80gb" -> 4 of a100-80gb. A file may be called so, and an instance has
/// its own number.
NamedGpu counted(std::string name, std::size_t position) {
  std::error_code ignored;
  if (auto behind = counted_behind(name, position)) return *behind;
  const auto cross = name.find('x');
  if (cross == std::string::npos || name.find(':') != std::string::npos ||
      std::filesystem::exists(name, ignored))
    return {std::move(name), position};
  const std::string_view rest = without_spaces(std::string_view(name).substr(cross + 1));
  const auto count = whole_number<int>(without_spaces(std::string_view(name).substr(0, cross)));
  if (!count || *count < 1 || *count > kMostGpus || rest.empty())
    return {std::move(name), position};
  return {std::string(rest), position, *count};
}

/// The price of one GPU of --gpu: one price for all, or one each.
Result<std::optional<double>> price_of(const RunOptions& o, const NamedGpu& gpu) {
  if (o.price.empty() || is_price_file(o.price)) return std::nullopt;
  const auto prices = split(o.price, ',');
  const std::size_t gpus = split(o.gpu, ',').size();
  if (prices.size() != 1 && prices.size() != gpus) {
    // "0,35" is how half of the world writes 0.35.
    const std::string point = prices.size() == 2 && gpus == 1
                                  ? "; a decimal point is written " + prices[0] + "." + prices[1]
                                  : std::string();
    return fail(ErrorCode::kUsage,
                std::to_string(prices.size()) + " prices for " + std::to_string(gpus) +
                    (gpus == 1 ? " GPU; give one" : " GPUs; give one, or one for each") + point,
                "--price");
  }
  return std::optional(TRY(parse_price(prices[prices.size() == 1 ? 0 : gpu.position])));
}

Result<DataRequest> data_request(const RunOptions& o) {
  DataRequest data{.path = o.data};
  if (!o.sample_cost.empty()) data.sample_cost = TRY(parse_time(o.sample_cost, "--sample-cost"));
  if (!o.from.empty()) {
    TRY(check_from(o));
    data.observed = TRY(observed_in(o)).sample;
  }
  data.samples = o.samples;
  data.image_size = o.image_size;
  data.reprobe = o.reprobe;
  data.storage = o.storage;
  return data;
}

Result<LastBatchRequest> parse_last_batch(const std::string& text) {
  if (text == "auto") return RestOfDataSet{};
  const auto samples = whole_number<std::int64_t>(text);
  if (samples && *samples >= 1) return *samples;
  return fail(ErrorCode::kUsage,
              "\"" + text + "\" is neither auto nor a number of samples from 1 up", "--last-batch");
}

Result<CopyWay> parse_copy(const std::string& text) {
  for (const CopyWay way : {CopyWay::kOverlapped, CopyWay::kNonBlocking, CopyWay::kBlocking}) {
    if (simplified(text) == simplified(name_of(way))) return way;
  }
  return fail(ErrorCode::kUsage, "\"" + text + "\" is none of overlapped, non-blocking, blocking",
              "--copy");
}

Result<StartMethod> parse_start_method(const std::string& text) {
  if (const auto method = start_method_named(simplified(text))) return *method;
  return fail(ErrorCode::kUsage, "\"" + text + "\" is none of fork, forkserver, spawn",
              "--start-method");
}

Result<GpuLink> parse_link(const std::string& text) {
  const std::string word = simplified(text);
  if (word == "pcie") return GpuLink::kPcie;
  if (word == "nvlink") return GpuLink::kNvlink;
  return fail(ErrorCode::kUsage, "\"" + text + "\" is neither pcie nor nvlink", "--link");
}

Result<OptimizerRequest> optimizer_request(const JobOptions& o) {
  OptimizerRequest optimizer;
  if (!o.optimizer.empty()) optimizer.kind = TRY(parse_optimizer(o.optimizer));
  optimizer.state_bits = state_bits_named(o.optimizer);
  if (!o.optimizer_loop.empty()) optimizer.loop = TRY(parse_optimizer_loop(o.optimizer_loop));
  optimizer.momentum = o.momentum;
  optimizer.weight_decay = o.weight_decay;
  optimizer.nesterov = o.nesterov;
  return optimizer;
}

}  // namespace

Result<ObservedRun> observed_in(const RunOptions& o) {
  const RecordedTimeline recorded = TRY(read_timeline(o.from));
  return observed_run(recorded.timeline, o.batch, o.from);
}

std::vector<NamedGpu> named_gpus(const RunOptions& o) {
  std::vector<NamedGpu> gpus;
  for (std::string& name : split(o.gpu, ',')) gpus.push_back(counted(std::move(name), gpus.size()));
  return gpus;
}

Status check_different(const std::vector<NamedGpu>& gpus) {
  for (auto one = gpus.begin(); one != gpus.end(); ++one) {
    const auto twin = std::find_if(gpus.begin(), one, [&](const NamedGpu& other) {
      return std::max(1, other.count) == std::max(1, one->count) &&
             names_same_gpu(other.name, one->name);
    });
    if (twin == one) continue;
    return fail(ErrorCode::kUsage,
                (twin->name == one->name ? "names " + one->name + " twice"
                                         : twin->name + " and " + one->name + " are one GPU") +
                    "; give it once. Two in one machine are --gpus 2, or --gpu 2x" + one->name,
                "--gpu");
  }
  return {};
}

Status check_from(const RunOptions& o) {
  if (o.from.empty() || (o.data.empty() && o.sample_cost.empty())) return {};
  return fail(ErrorCode::kUsage,
              std::string("tells what samples cost already; leave out ") +
                  (o.data.empty() ? "--sample-cost" : "--data"),
              "--from");
}

CaptureWishes capture_wishes(const RunOptions& o) {
  return {.mode = o.mode,
          .assumptions = o.assumptions,
          .again = o.recapture,
          .compile = o.script_run.compile.value_or(false),
          .adapters = {o.lora, o.qlora}};
}

Result<RunRequest> run_request(const RunOptions& o, const NamedGpu& gpu) {
  if (o.script_run.compile == false && o.model.find(".py:") != std::string::npos)
    return fail(ErrorCode::kUsage,
                "is for a training script (FILE.py); what a capture function compiles is its own "
                "to say",
                "--no-compile");
  RunRequest request;
  request.model = o.model;
  request.capture = capture_wishes(o);
  request.machine = gpu.name;
  request.host = o.host;
  request.coefficients = o.coefficients;
  request.price_per_gpu_hour = TRY(price_of(o, gpu));
  if (is_price_file(o.price)) request.price_file = o.price;
  if (o.batch) request.batch = *o.batch;
  request.workers = o.workers;
  request.prefetch = o.prefetch;
  request.pin = o.pins();
  request.pin_given = o.pin.has_value();
  request.persistent_workers = o.persistent_workers;
  if (!o.start_method.empty()) request.start_method = TRY(parse_start_method(o.start_method));
  request.script = {o.script_arguments, o.batch_argument};
  if (!o.link.empty()) request.link = TRY(parse_link(o.link));
  request.data = TRY(data_request(o));
  request.job = TRY(job_request(o.job));
  request.job.compile = request.capture.compile;
  request.allocator = allocator_request(o.allocator);
  return request;
}

Result<RunRequest> exact_request(const RunOptions& o, const NamedGpu& gpu) {
  RunRequest request = TRY(run_request(o, gpu));
  if (!o.precision.empty()) request.precisions = {TRY(parse_precision(o.precision))};
  request.gpus = TRY(gpus_of(o, gpu));
  return request;
}

Result<JobRequest> job_request(const JobOptions& o) {
  JobRequest job;
  job.optimizer = TRY(optimizer_request(o));
  job.clip = o.clip;
  job.ema = o.ema;
  job.grad_scaler = o.grad_scaler;
  job.clip_checks = o.clip_checks;
  job.zero_grad_after = o.zero_grad_after;
  job.zero_grad_between = o.zero_grad_between;
  job.zero_grad_fills = o.zero_grad_fills;
  job.accumulate = o.accumulate;
  job.threads = o.threads;
  job.epochs = o.epochs;
  if (!o.checkpoint.empty()) job.checkpoint = split(o.checkpoint, ',');
  job.dimensions = TRY(parse_dimensions(o.seq_len, o.dimensions));
  job.channels_last = o.channels_last;
  job.drop_output = o.drop_output;
  job.cudnn_benchmark = o.cudnn_benchmark;
  job.cuda_graphs = o.cuda_graphs;
  job.prefetching_loader = o.prefetching_loader;
  if (!o.copy.empty()) job.copy = TRY(parse_copy(o.copy));
  job.validation_batch = o.validation;
  job.validation_samples = o.validation_samples;
  job.validation_with_grad = o.validation_with_grad;
  if (!o.last_batch.empty()) job.last_batch = TRY(parse_last_batch(o.last_batch));
  job.nodes = o.nodes;
  if (!o.parallel.empty()) {
    const auto parallel = parse_parallel(o.parallel);
    if (!parallel) return fail(parallel.error().code, parallel.error().message, "--parallel");
    job.parallel = *parallel;
  }
  if (!o.fsdp_precision.empty()) job.fsdp_precision = TRY(parse_fsdp_precision(o.fsdp_precision));
  if (!o.loss.empty()) job.loss = TRY(parse_loss_kernel(o.loss));
  job.fsdp_group = o.fsdp_group;
  job.fsdp_offload = o.fsdp_offload;
  job.bucket_view = o.bucket_view;
  return job;
}

Result<std::map<std::string, std::int64_t>> parse_dimensions(
    const std::string& seq_len, const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t> dimensions;
  if (!seq_len.empty()) {
    const auto length = whole_number<std::int64_t>(seq_len);
    if (!length) {
      const bool several = seq_len.find(',') != std::string::npos;
      const std::string likely = several ? std::string() : likely_number(seq_len);
      return fail(ErrorCode::kUsage,
                  "\"" + seq_len + "\" is no length; write " +
                      (likely.empty() ? "one number" : likely) +
                      (several ? " here (`stoker predict` of one GPU takes several)" : ""),
                  "--seq-len");
    }
    dimensions["seq_len"] = *length;
  }
  for (const std::string& text : texts) {
    const auto malformed = [&] {
      return fail(ErrorCode::kUsage, "\"" + text + "\" is not NAME=NUMBER", "--dim");
    };
    const auto at = text.find('=');
    if (at == std::string::npos || at == 0) return malformed();
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + at + 1, end, value);
    if (error == std::errc::result_out_of_range)
      return fail(ErrorCode::kUsage, "the number of \"" + text + "\" is too large", "--dim");
    if (error != std::errc() || stop != end) return malformed();
    const std::string name = text.substr(0, at);
    if (name == "batch")
      return fail(ErrorCode::kUsage, "the batch is --batch " + std::to_string(value), "--dim");
    if (const auto said = dimensions.find(name); said != dimensions.end() && said->second != value)
      return fail(ErrorCode::kUsage,
                  name + " is said to be " + std::to_string(said->second) + " and " +
                      std::to_string(value) + "; say it once",
                  "--dim");
    dimensions[name] = value;
  }
  return dimensions;
}

Result<std::optional<BatchRequest>> parse_batch(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "max") return BatchRequest(LargestSafeBatch{});
  if (const auto samples = whole_number<std::int64_t>(text)) return BatchRequest(*samples);
  return fail(ErrorCode::kUsage,
              "\"" + text + "\" is no batch; write a number of samples per GPU, or max for the " +
                  "largest that is safe" + likely_words(text),
              "--batch");
}

Result<int> gpus_of(const RunOptions& o, const NamedGpu& gpu) {
  if (gpu.count > 0 && !o.gpus.empty())
    return fail(ErrorCode::kUsage,
                "--gpu " + std::to_string(gpu.count) + "x" + gpu.name +
                    " says how many already; leave out --gpus",
                "--gpus");
  if (gpu.count > 0) return gpu.count;
  const auto counts = TRY(parse_counts(o.gpus.empty() ? "1" : o.gpus));
  if (counts.size() == 1) return counts.front();
  return fail(ErrorCode::kUsage,
              "takes one number of GPUs here; a range goes with one --gpu and a MODEL, or with "
              "`stoker plan`",
              "--gpus");
}

Result<std::vector<int>> parse_counts(const std::string& text) {
  const auto number = [](std::string_view word) {
    const auto value = whole_number<int>(word);
    return value && *value >= 1 && *value <= kMostGpus ? *value : 0;
  };
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const auto dots = part.find("..");
    const int first = number(std::string_view(part).substr(0, dots));
    const int last =
        dots == std::string::npos ? first : number(std::string_view(part).substr(dots + 2));
    if (first == 0 || last == 0 || last < first) {
      return fail(ErrorCode::kUsage,
                  "\"" + text + "\" is no number of GPUs from 1 to " + with_commas(kMostGpus) +
                      "; write 4, 1,2,4 or 1..8",
                  "--gpus");
    }
    // From 16 on every count in between says nothing new.
    for (int n = first; n <= last; n += n < 16 ? 1 : 8) counts.push_back(n);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Result<double> parse_price(const std::string& text) {
  if (const auto price = whole_number<double>(plain_money(text))) return *price;
  return fail(ErrorCode::kBadInput,
              "must be a positive price per GPU and hour, a number as 0.35, not " + text,
              "--price");
}

Result<Nanos> parse_time(const std::string& text, const std::string& flag) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit =
      simplified(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  const double factor = unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  constexpr double kLongest = 1e13;  // nanoseconds: nobody waits three hours for one sample
  if (error != std::errc() || factor == 0 || !(value > 0) || value * factor > kLongest) {
    return fail(ErrorCode::kUsage, "\"" + text + "\" is no time; write 2.5ms, 300us or 0.1s", flag);
  }
  return Nanos(value * factor);
}

}  // namespace stoker::cli
