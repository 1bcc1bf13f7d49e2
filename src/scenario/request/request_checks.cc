#include "scenario/request/request_checks.h"

#include <algorithm>
#include <cstdio>

#include "base/setting.h"
#include "base/text.h"
#include "scenario/request/given_settings.h"
#include "scenario/request/sample_facts.h"

namespace stoker {
namespace {

/// Money per GPU and hour: beyond it somebody mistyped.
constexpr double kDearestGpu = 1e6;

Status check_price(double price) {
  if (price > 0 && price < kDearestGpu) return {};
  char number[32];
  std::snprintf(number, sizeof number, "%g", price);
  return fail(ErrorCode::kBadInput,
              price > 0
                  ? "must be a price per GPU and hour below " +
                        with_commas(static_cast<std::int64_t>(kDearestGpu)) + ", not " + number
                  : std::string("must be a positive price per GPU and hour, not ") + number,
              mark(Setting::kPrice));
}

/// One GPU and one node are what a CPU has, too.
bool says_one(const GivenSetting& given) {
  const auto* number = std::get_if<std::int64_t>(&given.number);
  const bool counts = given.setting == Setting::kGpus || given.setting == Setting::kNodes;
  return counts && number != nullptr && *number <= 1;
}

std::string names_of(const std::vector<Precision>& precisions) {
  std::string names;
  for (const Precision p : precisions)
    names += (names.empty() ? "" : ",") + std::string(name_of(p));
  return names;
}

}  // namespace

Status check_ranges(const RunRequest& r) {
  for (const GivenSetting& given : given_settings(r)) {
    if (const auto* whole = std::get_if<std::int64_t>(&given.number))
      TRY(check_range(given.row(), *whole, given.where()));
    if (const auto* number = std::get_if<double>(&given.number))
      TRY(check_range(given.row(), *number, given.where()));
  }
  return r.price_per_gpu_hour ? check_price(*r.price_per_gpu_hour) : Status{};
}

Status check_training_settings(const RunRequest& r, const Step& step) {
  if (step.mode == "train") return {};
  for (const GivenSetting& given : given_settings(r)) {
    if (!given.row().training) continue;
    return fail(ErrorCode::kUsage,
                step.name + " was captured for " + step.mode +
                    ", which has no backward; leave the flag out, or capture it for training",
                given.where());
  }
  return {};
}

Status check_device_settings(const RunRequest& r, const Device& device) {
  const bool cpu = device.cpu() != nullptr;
  for (const GivenSetting& given : given_settings(r)) {
    const SettingDevices devices = given.row().devices;
    if (cpu && devices == SettingDevices::kGpu && !says_one(given)) {
      return fail(ErrorCode::kUsage, "is of GPUs, and " + device->name + " is a CPU; leave it out",
                  given.where());
    }
    if (!cpu && devices == SettingDevices::kCpu) {
      return fail(ErrorCode::kUsage,
                  "is of CPUs, and " + device->name +
                      " is a GPU; leave it out (cores around the GPU: " + mark(Setting::kHost) +
                      " cores=16)",
                  given.where());
    }
  }
  if (!cpu) return {};
  const auto& wanted = r.precisions;
  if (std::all_of(wanted.begin(), wanted.end(),
                  [](Precision p) { return p == Precision::kFp32; })) {
    return {};
  }
  return fail(ErrorCode::kUnsupported,
              "only fp32 is modelled on a CPU yet, not " + names_of(wanted) + "; leave it out",
              mark(Setting::kPrecision));
}

Result<int> threads_of(const JobRequest& r, const Device& device) {
  const Cpu* cpu = device.cpu();
  if (cpu == nullptr) return 0;
  if (r.threads && (*r.threads < 1 || *r.threads > cpu->cores)) {
    return fail(ErrorCode::kBadInput,
                "must be between 1 and the " + std::to_string(cpu->cores) + " cores of " +
                    device->name + ", not " + std::to_string(*r.threads),
                mark(Setting::kThreads));
  }
  return static_cast<int>(r.threads.value_or(cpu->cores));
}

Status check_capture(const Step& step, const Device& device, const std::string& model) {
  const bool of_cpu = step.provenance.capture == CaptureKind::kFakeCpu;
  if (device.cpu() == nullptr || of_cpu) return {};
  return fail(ErrorCode::kBadInput,
              step.name +
                  " was captured for a GPU, and PyTorch runs other operators on a CPU; capture it "
                  "with `stoker capture SPEC " +
                  mark(Setting::kDevice) + " cpu`",
              model);
}

Status check_image_size(const DataRequest& r, const Step& step) {
  const std::int64_t side = image_side(step);
  const bool sequences =
      std::any_of(step.dimensions.begin(), step.dimensions.end(),
                  [](const Dimension& dimension) { return dimension.name == "seq_len"; });
  if (r.image_size && side == 0 && sequences)
    return fail(ErrorCode::kBadInput,
                step.name + " takes sequences, and no images; leave it out (their length is " +
                    mark(Setting::kSeqLen) + ")",
                mark(Setting::kImageSize));
  if (!r.image_size || side == 0 || *r.image_size == side) return {};
  const std::string asked = std::to_string(*r.image_size);
  return fail(ErrorCode::kBadInput,
              step.name + " was captured at " + std::to_string(side) + " px; capture it at " +
                  asked + " with `stoker capture SPEC " + mark(Setting::kImageSize) + " " + asked +
                  "` and give the step file",
              mark(Setting::kImageSize));
}

}  // namespace stoker
