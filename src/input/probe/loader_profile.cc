#include "input/probe/loader_profile.h"

#include <algorithm>
#include <string_view>

#include "base/files.h"
#include "json/fields.h"
#include "json/text.h"

namespace stoker {
namespace {

using Json = json::Value;

constexpr Bytes kFileLimit = 1 * kMiB;
constexpr const char* kCure = "restore it or fit it anew with scripts/measure-loader";
constexpr json::Format kFormat{
    "stoker-loader-profile", 1, "loader profile format", kCure,
    "is not a loader profile; restore it or fit it anew with scripts/measure-loader"};
constexpr double kMaxCoefficient = 1e6;
/// Cores in use today differ by less; more is a mistake of the measurement.
constexpr double kMaxSlowness = 5;

/// A coefficient that must be there and be neither negative nor absurd.
double coefficient(json::Fields& fields, const Json& parent, const char* key,
                   const std::string& path) {
  return fields.number(parent, key, path, 0, kMaxCoefficient);
}

void read_stages(json::Fields& fields, const Json& root, LoaderProfile& profile) {
  const Json& stages = fields.object(root, "stages", "");
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const std::string name(stage_name(static_cast<Stage>(s)));
    const Json& stage = fields.object(stages, name.c_str(), "stages.");
    const std::string path = "stages." + name + ".";
    profile.stage[s].constant_ms = coefficient(fields, stage, "constant_ms", path);
    profile.stage[s].ratio = coefficient(fields, stage, "ratio", path);
    profile.stage[s].per_megapixel_ms = coefficient(fields, stage, "ms_per_megapixel", path);
  }
}

/// Where a key of "transport" belongs: a time in milliseconds, a plain number, or megabytes.
struct TransportKey {
  std::string_view key;
  Nanos TransportCoefficients::*ms = nullptr;
  double TransportCoefficients::*plain = nullptr;
  Bytes TransportCoefficients::*megabytes = nullptr;
  bool required = true;
};
using T = TransportCoefficients;
constexpr TransportKey kTransportKeys[] = {
    {.key = "per_batch_main_ms", .ms = &T::per_batch_main},
    {.key = "per_tensor_main_ms", .ms = &T::per_tensor_main},
    {.key = "per_byte_main_ns", .plain = &T::per_byte_main_ns},
    {.key = "per_batch_worker_ms", .ms = &T::per_batch_worker},
    {.key = "per_tensor_worker_ms", .ms = &T::per_tensor_worker},
    {.key = "collate_shared_ns_per_byte", .plain = &T::collate_shared_ns},
    {.key = "collate_private_ns_per_byte", .plain = &T::collate_private_ns},
    {.key = "sample_fault_ns_per_byte", .plain = &T::sample_fault_ns},
    {.key = "oversubscription", .plain = &T::oversubscription},
    {.key = "collate_per_sample_ms", .ms = &T::collate_per_sample},
    {.key = "fork_per_worker_ms", .ms = &T::fork_per_worker},
    {.key = "worker_startup_ms", .ms = &T::worker_startup},
    {.key = "shutdown_per_worker_ms", .ms = &T::shutdown_per_worker},
    {.key = "epoch_reset_ms", .ms = &T::epoch_reset},
    {.key = "worker_private_mb", .megabytes = &T::worker_private},
    {.key = "pickle_worker_ns_per_byte", .plain = &T::pickle_worker_ns, .required = false},
    {.key = "pickle_main_ns_per_byte", .plain = &T::pickle_main_ns, .required = false},
};

void read_transport(json::Fields& fields, const Json& root, TransportCoefficients& out) {
  const Json& json = fields.object(root, "transport", "");
  for (const TransportKey& known : kTransportKeys) {
    const std::string key(known.key);
    if (!known.required && !json.contains(key)) continue;
    (void)set_transport(out, key, coefficient(fields, json, key.c_str(), "transport."));
  }
}

/// Pillow's Image.fromarray of 32 x 32 pixels: 11.4 us (Pillow 13.0, Python 3.11, best of five);
/// CIFAR's and MNIST's Dataset classes make each record an image so.
constexpr Nanos kPictureFromArray = 11.4 * kMicrosecond;

}  // namespace

double core_slowness(const LoaderProfile& profile, const Probe& probe) {
  const auto mean = [&](Stage stage) {
    return probe.stage_ms[static_cast<std::size_t>(stage)].mean;
  };
  const double pixels = static_cast<double>(probe.image_size) * probe.image_size;
  const double here = 1e6 * (mean(Stage::kToTensor) + mean(Stage::kNormalize)) / pixels;
  if (profile.native_ns_per_pixel <= 0 || here <= 0) return 1;
  return std::clamp(here / profile.native_ns_per_pixel, 1 / kMaxSlowness, kMaxSlowness);
}

Nanos loader_cost(const LoaderProfile& profile, const SampleRecord& record, double slowness) {
  Nanos sum;
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const StageCoefficients& k = profile.stage[s];
    const auto stage = static_cast<Stage>(s);
    if (record.raw && (stage == Stage::kRead || stage == Stage::kDecode)) {
      if (stage == Stage::kDecode) sum += kPictureFromArray * slowness;
      continue;
    }
    sum += k.ratio * record.stage[s] +
           kMillisecond * (slowness * (k.constant_ms + k.per_megapixel_ms * record.megapixels()));
  }
  return sum;
}

bool set_transport(TransportCoefficients& transport, std::string_view key, double value) {
  for (const TransportKey& known : kTransportKeys) {
    if (known.key != key) continue;
    if (known.ms != nullptr) transport.*known.ms = kMillisecond * value;
    if (known.plain != nullptr) transport.*known.plain = value;
    if (known.megabytes != nullptr)
      transport.*known.megabytes = Bytes(static_cast<std::int64_t>(value * 1e6));
    return true;
  }
  return false;
}

TransportCoefficients scaled(TransportCoefficients t, double factor) {
  for (Nanos* time : {&t.per_batch_main, &t.per_tensor_main, &t.per_batch_worker,
                      &t.per_tensor_worker, &t.collate_per_sample, &t.fork_per_worker,
                      &t.worker_startup, &t.shutdown_per_worker, &t.epoch_reset}) {
    *time = *time * factor;
  }
  for (double* rate : {&t.per_byte_main_ns, &t.collate_shared_ns, &t.collate_private_ns,
                       &t.sample_fault_ns, &t.pickle_worker_ns, &t.pickle_main_ns})
    *rate *= factor;
  return t;
}

Result<LoaderProfile> read_loader_profile(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path, kFileLimit);
  if (!text) return tl::unexpected(text.error());
  const Json root = json::parse(*text).value_or(Json());
  json::Fields fields(path.string(), kCure);
  TRY(fields.check_format(root, kFormat));
  LoaderProfile profile;
  read_stages(fields, root, profile);
  read_transport(fields, root, profile.transport);
  profile.native_ns_per_pixel = coefficient(fields, root, "native_ns_per_output_pixel", "");
  profile.held_out_mape = coefficient(fields, root, "held_out_mape_percent", "");
  profile.basis = fields.text(root, "basis", "");
  TRY(fields.status());
  return profile;
}

Result<LoaderProfile> shipped_loader_profile() {
  const Result<std::filesystem::path> folder = data_folder();
  if (!folder) return tl::unexpected(folder.error());
  return read_loader_profile(*folder / "coefficients" / "input.json");
}

}  // namespace stoker
