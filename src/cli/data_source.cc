#include "cli/data_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "device/this_host.h"
#include "input/probe/probe_io.h"
#include "step/sizes.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

/// A plan must not make anyone wait for long: a shorter probe than `stoker probe`'s own.
constexpr Nanos kPlanProbeBudget{6e9};
/// Side for data without pictures.
constexpr std::int64_t kAnySide = 224;
/// A line of text in a batch where no model says it: 512 tokens of 64 bits.
constexpr Bytes kTextInBatch{512 * 8};
/// Probes remembered by programs that measured less are not taken: since 1.1, PNG and storage.
constexpr const char* kMeasuredSince = "1.1";
/// Probe files of a hundred thousand samples stay below this.
constexpr Bytes kProbeFileLimit = 64 * kMiB;

/// What the loader hands over for one sample.
Result<OutputShape> output_of(const Step& step,
                              const std::map<std::string, std::int64_t>& dimensions) {
  const auto sizes = TRY(Sizes::at(step, dimensions));
  OutputShape shape;
  Bytes bytes;
  for (const NamedTensor& input : step.inputs) bytes += sizes.storage(input.storage);
  const auto named = dimensions.find("batch");
  const std::int64_t batch =
      named == dimensions.end() ? step.dimensions[0].default_value : named->second;
  shape.bytes_per_sample = Bytes(bytes.count() / std::max<std::int64_t>(1, batch));
  shape.tensors = std::max(1, static_cast<int>(step.inputs.size()));
  return shape;
}

/// Remembered under the folder's identity, its time of change, the picture size and the cores that
/// this process may use.
fs::path remembered_probe(const fs::path& folder, std::int64_t side) {
  struct stat facts {};
  std::error_code error;
  const std::string absolute = fs::canonical(folder, error).string();
  if (error || ::stat(absolute.c_str(), &facts) != 0) return {};
  const std::string identity = absolute + "|" + std::to_string(facts.st_mtim.tv_sec) + "|" +
                               std::to_string(facts.st_ino) + "|" + std::to_string(side) + "|" +
                               std::to_string(std::max(1, static_cast<int>(this_host().cores))) +
                               "|" + kMeasuredSince;
  return cache_folder() / "probes" / (std::to_string(fnv1a(identity)) + ".json");
}

Result<Probe> folder_probe(const DataRequest& request, std::int64_t side) {
  const fs::path remembered = remembered_probe(request.data, side);
  std::error_code error;
  if (!request.reprobe && !remembered.empty() && fs::exists(remembered, error)) {
    if (auto probe = read_probe(remembered)) return probe;  // a damaged memory is measured anew
  }
  ProbeOptions options;
  options.budget = kPlanProbeBudget;
  options.image_size = static_cast<int>(side);
  auto probe = probe_with_progress(request.data, options);
  if (!probe || remembered.empty()) return probe;
  fs::create_directories(remembered.parent_path(), error);
  if (!error)
    (void)write_probe(remembered, *probe);  // memory is a convenience; failing to keep it is none
  return probe;
}

/// The probe file of either kind.
Status read_probe_file(const std::string& path, LoadedData& out) {
  const auto text = TRY(read_file(path, kProbeFileLimit));
  if (is_pipeline_probe(text)) {
    auto pipeline = TRY(parse_pipeline_probe(text, path));
    out.pipeline = std::move(pipeline);
    return {};
  }
  auto probe = TRY(parse_probe(text, path));
  out.probe = std::move(probe);
  return {};
}

}  // namespace

bool is_data_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  // A probe file may have any name but those of data.
  return file_kind(fs::path(path).filename().string()) != FileKind::kOther;
}

std::int64_t picture_side(const Step& step) {
  if (step.inputs.empty()) return 0;
  const auto sizes = Sizes::at(step, {});
  if (!sizes) return 0;
  const TypeId type = step.inputs[0].type;
  const DType dtype = step.types[index(type)].dtype;
  const bool pixels =
      dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16 || dtype == DType::kU8;
  const auto shape = sizes->shape(type);
  constexpr std::array<std::int64_t, 3> kChannels{1, 3, 4};  // grey, colour, colour with alpha
  const bool picture = shape.size() == 4 &&
                       std::find(kChannels.begin(), kChannels.end(), shape[1]) != kChannels.end();
  return pixels && picture ? shape[3] : 0;
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

Result<Probe> probe_with_progress(const std::string& folder, const ProbeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  bool shown = false;
  std::string last_phase;
  const ProbeProgress progress = [&](std::string_view phase, double share) {
    const double waited =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (waited < 1.5 && !shown) return;
    if (terminal) {
      std::fprintf(stderr, "\rprobing %s: %-12.*s %3.0f %%", folder.c_str(),
                   static_cast<int>(phase.size()), phase.data(), 100 * share);
    } else if (phase != last_phase) {
      std::fprintf(stderr, "probing %s: %.*s\n", folder.c_str(), static_cast<int>(phase.size()),
                   phase.data());
      last_phase = phase;
    }
    shown = true;
  };
  ProbeOptions with_quota = options;
  if (options.threads == 0) with_quota.threads = std::max(1, static_cast<int>(this_host().cores));
  auto probe = probe_folder(folder, with_quota, progress);
  if (shown && terminal) std::fputs("\r\033[K", stderr);
  return probe;
}

Result<LoadedData> load_data(const DataRequest& request, const Step& step,
                             const std::map<std::string, std::int64_t>& dimensions,
                             const LoaderProfile& profile) {
  const auto shape = TRY(output_of(step, dimensions));
  return load_data_for(request, shape, request.image_size.value_or(picture_side(step)),
                       step.name + " takes " + step.sample_what, profile);
}

Result<LoadedData> load_data_for(const DataRequest& request, const OutputShape& shape,
                                 std::int64_t side, const std::string& taker,
                                 const LoaderProfile& profile) {
  LoadedData data;
  data.samples = request.samples.value_or(0);
  if (!request.sample_cost.empty()) {
    if (!request.data.empty())
      return fail(ErrorCode::kUsage, "give either --data or --sample-cost", "--sample-cost");
    const auto cost = TRY(parse_time(request.sample_cost, "--sample-cost"));
    data.sample = sample_cost_given(cost, shape, profile);
    return data;
  }
  if (request.data.empty()) {
    data.sample = sample_cost_unknown(shape);
    return data;
  }
  std::error_code ignored;
  const bool file = fs::is_regular_file(request.data, ignored) && !is_data_file(request.data);
  if (file) {
    if (const Status read = read_probe_file(request.data, data); !read)
      return tl::unexpected(read.error());
  }
  if (data.pipeline) {
    data.sample = sample_cost_from_pipeline(*data.pipeline, profile);
    if (data.samples == 0) data.samples = data.pipeline->samples;
    return data;
  }
  const auto kind =
      TRY(data.probe ? Result<DataKind>(data.probe->kind) : kind_of_data(request.data));
  const bool text = kind == DataKind::kText;
  if (!taker.empty() && text != (side <= 0)) {
    return fail(
        ErrorCode::kBadInput,
        "holds " + std::string(text ? "text" : "pictures") + ", but " + taker +
            "; give the cost of a sample with --sample-cost and their number with --samples",
        request.data);
  }
  if (!data.probe) {
    auto probe = TRY(folder_probe(request, text ? kAnySide : side));
    data.probe = std::move(probe);
  }
  const OutputShape of_text{kTextInBatch, 1};
  data.sample =
      sample_cost_from_probe(*data.probe, profile, text && taker.empty() ? of_text : shape);
  if (data.samples == 0) data.samples = data.probe->dataset.samples;
  return data;
}

}  // namespace stoker::cli
