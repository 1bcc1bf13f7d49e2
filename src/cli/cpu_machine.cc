#include "cli/cpu_machine.h"

#include <string>
#include <vector>

namespace stoker::cli {
namespace {

struct Given {
  const char* flag;
  bool given;
};

/// What is said of a GPU alone.
std::vector<Given> of_gpus(const RunOptions& o) {
  const JobOptions& j = o.job;
  return {{"--gpus", !o.gpus.empty() && o.gpus != "1"},
          {"--nodes", j.nodes.value_or(1) > 1},
          {"--parallel", !j.parallel.empty()},
          {"--bucket-view", j.bucket_view},
          {"--cuda-graphs", j.cuda_graphs},
          {"--cudnn-benchmark", j.cudnn_benchmark},
          {"--copy", !j.copy.empty()},
          {"--no-pin", o.no_pin},
          {"--prefetching-loader", j.prefetching_loader},
          {"--alloc-conf", !o.allocator.alloc_conf.empty()},
          {"--memory-fraction", o.allocator.memory_fraction.has_value()},
          {"--cublas-workspace", !o.allocator.cublas_workspace.empty()}};
}

}  // namespace

Status check_device_flags(const RunOptions& o, const Gpu& device) {
  if (!device.is_cpu()) {
    if (!o.job.threads) return {};
    return fail(ErrorCode::kUsage,
                "is of CPUs, and " + device.name +
                    " is a GPU; leave it out (cores around the GPU: --host cores=16)",
                "--threads");
  }
  for (const Given& g : of_gpus(o)) {
    if (g.given)
      return fail(ErrorCode::kUsage, "is of GPUs, and " + device.name + " is a CPU; leave it out",
                  g.flag);
  }
  if (o.precision.empty() || o.precision == "fp32") return {};
  return fail(ErrorCode::kUnsupported,
              "only fp32 is modelled on a CPU yet, not " + o.precision + "; leave it out",
              "--precision");
}

Status fill_threads(const JobOptions& o, const Gpu& device, Job& job) {
  if (!device.is_cpu()) return {};
  if (o.threads && (*o.threads < 1 || *o.threads > device.sm_count)) {
    return fail(ErrorCode::kBadInput,
                "must be between 1 and the " + std::to_string(device.sm_count) + " cores of " +
                    device.name + ", not " + std::to_string(*o.threads),
                "--threads");
  }
  job.threads = static_cast<int>(o.threads.value_or(device.sm_count));
  return {};
}

Status check_capture(const Step& step, const Gpu& device, const std::string& model) {
  const bool of_cpu = step.provenance.capture == CaptureKind::kFakeCpu;
  if (!device.is_cpu() || of_cpu) return {};
  return fail(ErrorCode::kBadInput,
              step.name +
                  " was captured for a GPU, and PyTorch runs other operators on a CPU; capture it "
                  "with `stoker capture SPEC --device cpu`",
              model);
}

}  // namespace stoker::cli
