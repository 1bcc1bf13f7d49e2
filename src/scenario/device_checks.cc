#include "scenario/device_checks.h"

#include <algorithm>
#include <array>

#include "base/setting.h"
#include "scenario/sample_facts.h"

namespace stoker {
namespace {

/// A setting that only a GPU has, and whether it was given.
struct Given {
  std::string where;
  bool given;
};

std::array<Given, 12> settings_of_gpus(const RunRequest& r) {
  const JobRequest& j = r.job;
  const auto typed = [](const GivenText& text, Setting setting) {
    return Given{mark(setting), !text.text.empty() && text.where == mark(setting)};
  };
  return {{{mark(Setting::kGpus), r.gpus.value_or(1) > 1},
           {mark(Setting::kNodes), j.nodes.value_or(1) > 1},
           {mark(Setting::kParallel), j.parallel.has_value()},
           {mark(Setting::kBucketView), j.bucket_view},
           {mark(Setting::kCudaGraphs), j.cuda_graphs},
           {mark(Setting::kCudnnBenchmark), j.cudnn_benchmark},
           {mark(Setting::kCopy), j.copy.has_value()},
           {mark_off(Setting::kPin), !r.pin},
           {mark(Setting::kPrefetchingLoader), j.prefetching_loader},
           typed(r.allocator.config, Setting::kAllocConf),
           {mark(Setting::kMemoryFraction), r.allocator.memory_fraction.has_value()},
           typed(r.allocator.cublas_workspace, Setting::kCublasWorkspace)}};
}

std::string names_of(const std::vector<Precision>& precisions) {
  std::string names;
  for (const Precision p : precisions)
    names += (names.empty() ? "" : ",") + std::string(name_of(p));
  return names;
}

}  // namespace

Status check_device_settings(const RunRequest& r, const Device& device) {
  if (device.cpu() == nullptr) {
    if (!r.job.threads) return {};
    return fail(ErrorCode::kUsage,
                "is of CPUs, and " + device->name +
                    " is a GPU; leave it out (cores around the GPU: " + mark(Setting::kHost) +
                    " cores=16)",
                mark(Setting::kThreads));
  }
  for (const Given& g : settings_of_gpus(r)) {
    if (g.given)
      return fail(ErrorCode::kUsage, "is of GPUs, and " + device->name + " is a CPU; leave it out",
                  g.where);
  }
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
  if (!r.image_size || side == 0 || *r.image_size == side) return {};
  const std::string asked = std::to_string(*r.image_size);
  return fail(ErrorCode::kBadInput,
              step.name + " was captured at " + std::to_string(side) + " px; capture it at " +
                  asked + " with `stoker capture SPEC " + mark(Setting::kImageSize) + " " + asked +
                  "` and give the step file",
              mark(Setting::kImageSize));
}

}  // namespace stoker
