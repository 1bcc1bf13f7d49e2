#include "scenario/sources/data_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/setting.h"
#include "base/text.h"
#include "device/host/storage_kind.h"
#include "device/host/this_host.h"
#include "input/probe/known_data.h"
#include "input/probe/probe_io.h"
#include "scenario/request/sample_facts.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

/// A plan must not make anyone wait for long: a shorter probe than `stoker probe`'s own.
constexpr Nanos kPlanProbeBudget{6e9};
/// Side for data without images.
constexpr std::int64_t kAnySide = 224;
/// A line of text in a batch where no model says it: 512 tokens of 64 bits.
constexpr Bytes kTextInBatch{512 * 8};
/// Probes remembered by programs that measured less are not taken: since 1.1, PNG and storage.
constexpr const char* kMeasuredSince = "1.1";
/// Probe files of a hundred thousand samples stay below this.
constexpr Bytes kProbeFileLimit = 64 * kMiB;

/// Remembered under the folder's identity, its time of change, the size of images and the cores
/// that this process may use.
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

Result<Probe> folder_probe(const DataRequest& request, std::int64_t side,
                           const ScenarioTools& tools) {
  const fs::path remembered = remembered_probe(request.path, side);
  std::error_code error;
  if (!request.reprobe && !remembered.empty() && fs::exists(remembered, error)) {
    if (auto probe = read_probe(remembered)) return probe;  // a damaged memory is measured anew
  }
  ProbeOptions options;
  options.budget = kPlanProbeBudget;
  options.image_size = static_cast<int>(side);
  auto probe = tools.probe_folder(request.path, options);
  if (!probe || remembered.empty()) return probe;
  fs::create_directories(remembered.parent_path(), error);
  if (!error)
    (void)write_probe(remembered, *probe);  // memory is a convenience; failing to keep it is none
  return probe;
}

/// An epoch of another size than the data set that was probed: a sample of it, probed, stands for
/// all. Its bytes, and its shards, grow with the samples.
void scale_to_epoch(std::int64_t samples, SampleCost& sample) {
  const double factor = sample.dataset_samples > 0 ? static_cast<double>(samples) /
                                                         static_cast<double>(sample.dataset_samples)
                                                   : 0;
  if (factor > 0 && sample.work_units > 0)
    sample.work_units = std::max<std::int64_t>(
        sample.work_units, std::llround(factor * static_cast<double>(sample.work_units)));
  sample.dataset_samples = samples;
  if (sample.read_bytes <= 0) return;
  sample.dataset_bytes = Bytes(std::llround(sample.read_bytes * static_cast<double>(samples)));
  if (factor != 1)
    sample.basis += "; taken for " + with_commas(samples) + " samples of that mean size, " +
                    human_bytes(sample.dataset_bytes);
}

bool is_picture(KnownKind kind) {
  return kind == KnownKind::kPictures || kind == KnownKind::kPixels;
}

std::string_view samples_of(KnownKind kind) {
  if (is_picture(kind)) return "pictures";
  return kind == KnownKind::kTokens ? "text" : "recordings";
}

/// A well-known data set, where nothing of that name lies on the disk; nullptr: it is none.
Result<const KnownData*> known_data_of(const std::string& path, const SampleTaker& taker) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return nullptr;
  const KnownData* known = known_data(path);
  if (known == nullptr) {
    if (path.find('/') != std::string::npos) return nullptr;  // told as a path that leads nowhere
    std::string names;
    for (const std::string& name : known_data_names()) names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorCode::kNotFound,
                "is neither a folder nor a file here, nor a well-known data set" +
                    suggestion(path, known_data_words()) + " (known by name: " + names + ")",
                path);
  }
  const bool takes_text = taker.who.ends_with("takes sequence");
  const bool fits = is_picture(known->kind)             ? taker.side > 0
                    : known->kind == KnownKind::kTokens ? taker.side <= 0
                                                        : taker.side <= 0 && !takes_text;
  if (!taker.who.empty() && !fits) {
    return fail(ErrorCode::kBadInput,
                "holds " + std::string(samples_of(known->kind)) + ", but " + taker.who +
                    "; name other data, or give the cost of a sample with " +
                    mark(Setting::kSampleCost) + " and their number with " +
                    mark(Setting::kSamples),
                path);
  }
  return known;
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

void take_processor(const LoadedData& data, const Host& host, SampleCost& sample) {
  if (!data.well_known || host.dispatch_speed <= 0) return;
  const double factor = 1 / host.dispatch_speed;
  sample = with_cpu_times(std::move(sample), factor);
  sample.transport = scaled(sample.transport, factor);
  sample.basis += ", scaled to " + host.cpu;
}

Status take_storage(const DataRequest& request, Host& host, SampleCost& sample) {
  if (request.storage.empty()) return {};
  const StorageFigures& kind = *TRY(storage_kind_named(request.storage));
  if (sample.known && sample.read_bytes <= 0) {
    return fail(ErrorCode::kUsage,
                request.sample_cost
                    ? "a storage delivers bytes, and " + mark(Setting::kSampleCost) +
                          " tells of none that a sample reads: give the files or their probe "
                          "as " +
                          mark(Setting::kData) + ", or leave it out"
                    : "the probe saw no sample read from a file, so that storage costs nothing: "
                      "leave it out",
                mark(Setting::kStorage));
  }
  fill_storage(kind, host);
  sample.cold_seek_ms = kind.open_ms;
  sample.cold_bandwidth = kind.one_reader;
  sample.cold_speedup = 0;  // bandwidth and reads of the host say how many readers pay
  return {};
}

bool is_data_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  // A probe file may have any name but those of data.
  return file_kind(fs::path(path).filename().string()) != FileKind::kOther;
}

Result<LoadedData> load_data(const DataRequest& request, const Step& step,
                             const std::map<std::string, std::int64_t>& dimensions,
                             const LoaderProfile& profile, const ScenarioTools& tools) {
  const OutputShape shape = TRY(loader_output(step, dimensions));
  return load_data_for(request,
                       {.shape = shape,
                        .side = request.image_size.value_or(image_side(step)),
                        .who = step.name + " takes " + step.sample_what},
                       profile, tools);
}

Result<LoadedData> load_data_for(const DataRequest& request, const SampleTaker& taker,
                                 const LoaderProfile& profile, const ScenarioTools& tools) {
  LoadedData data;
  data.samples = request.samples.value_or(0);
  if (request.sample_cost) {
    if (!request.path.empty()) {
      return fail(ErrorCode::kUsage,
                  "give either " + mark(Setting::kData) + " or " + mark(Setting::kSampleCost),
                  mark(Setting::kSampleCost));
    }
    data.sample = sample_cost_given(*request.sample_cost, taker.shape, profile);
    return data;
  }
  if (request.observed) {
    data.sample = *request.observed;
    data.sample.output = taker.shape.bytes_per_sample;
    return data;
  }
  if (request.path.empty()) {
    data.sample = sample_cost_unknown(taker.shape);
    return data;
  }
  if (const KnownData* known = TRY(known_data_of(request.path, taker)); known != nullptr) {
    data.well_known = true;
    data.sample = sample_cost_known(*known, taker.side, profile, taker.shape);
    if (data.samples == 0) data.samples = data.sample.dataset_samples;
    if (request.samples) scale_to_epoch(*request.samples, data.sample);
    return data;
  }
  std::error_code ignored;
  const bool file = fs::is_regular_file(request.path, ignored) && !is_data_file(request.path);
  if (file) TRY(read_probe_file(request.path, data));
  if (data.pipeline) {
    data.sample = sample_cost_from_pipeline(*data.pipeline, profile);
    if (data.samples == 0) data.samples = data.sample.dataset_samples;
    if (request.samples) scale_to_epoch(*request.samples, data.sample);
    return data;
  }
  const DataKind kind = data.probe ? data.probe->kind : TRY(kind_of_data(request.path));
  const bool text = kind == DataKind::kText;
  if (!taker.who.empty() && text != (taker.side <= 0)) {
    return fail(ErrorCode::kBadInput,
                "holds " + std::string(text ? "text" : "pictures") + ", but " + taker.who +
                    "; give the cost of a sample with " + mark(Setting::kSampleCost) +
                    " and their number with " + mark(Setting::kSamples),
                request.path);
  }
  if (!data.probe) data.probe = TRY(folder_probe(request, text ? kAnySide : taker.side, tools));
  const OutputShape of_text{kTextInBatch, 1};
  data.sample = sample_cost_from_probe(*data.probe, profile,
                                       text && taker.who.empty() ? of_text : taker.shape);
  if (data.samples == 0) data.samples = data.probe->dataset.samples;
  if (request.samples) scale_to_epoch(*request.samples, data.sample);
  return data;
}

}  // namespace stoker
