#include "input/probe/loader_profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/files.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

constexpr Bytes kFileLimit = 1 * kMiB;
/// Cores in use today differ by less; more is a mistake of the measurement.
constexpr double kMaxSlowness = 5;

/// A coefficient that must be there and be neither negative nor absurd; sets `bad` otherwise.
double coefficient(const Json& parent, const char* key, std::string& bad) {
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_number()) {
    bad = std::string("\"") + key + "\" is missing or not a number";
    return 0;
  }
  const auto value = found->get<double>();
  if (!(value >= 0 && value < 1e6)) bad = std::string("\"") + key + "\" is negative or absurd";
  return value;
}

void read_stages(const Json& root, LoaderProfile& profile, std::string& bad) {
  const Json stages = root.value("stages", Json::object());
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const std::string name(stage_name(static_cast<Stage>(s)));
    const Json stage = stages.is_object() ? stages.value(name, Json::object()) : Json::object();
    profile.stage[s].constant_ms = coefficient(stage, "constant_ms", bad);
    profile.stage[s].ratio = coefficient(stage, "ratio", bad);
    profile.stage[s].per_megapixel_ms = coefficient(stage, "ms_per_megapixel", bad);
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

void read_transport(const Json& root, TransportCoefficients& out, std::string& bad) {
  const Json json = root.value("transport", Json::object());
  for (const TransportKey& known : kTransportKeys) {
    const std::string key(known.key);
    if (!known.required && !json.contains(key)) continue;
    (void)set_transport(out, key, coefficient(json, key.c_str(), bad));
  }
}

/// Pillow's Image.fromarray of 32 x 32 pixels: 11.4 us (Pillow 13.0, Python 3.11, best of five);
/// CIFAR's and MNIST's Dataset classes make each record a picture so.
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
  const Json root = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::kBadInput,
                why + "; restore it or fit it anew with scripts/measure-loader", path.string());
  };
  if (!root.is_object() || !root.contains("format") || root["format"] != "stoker-loader-profile") {
    return refuse("is not a loader profile");
  }
  LoaderProfile profile;
  std::string bad;
  read_stages(root, profile, bad);
  read_transport(root, profile.transport, bad);
  profile.native_ns_per_pixel = coefficient(root, "native_ns_per_output_pixel", bad);
  profile.held_out_mape = coefficient(root, "held_out_mape_percent", bad);
  const auto basis = root.find("basis");
  if (basis == root.end() || !basis->is_string()) bad = "\"basis\" is missing";
  if (!bad.empty()) return refuse(bad);
  profile.basis = basis->get<std::string>();
  return profile;
}

Result<LoaderProfile> shipped_loader_profile() {
  const Result<std::filesystem::path> folder = data_folder();
  if (!folder) return tl::unexpected(folder.error());
  return read_loader_profile(*folder / "coefficients" / "input.json");
}

}  // namespace stoker
