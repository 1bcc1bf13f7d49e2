#include "forecast/start_up.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "forecast/forecast.h"

namespace stoker {
namespace {

/// `import torch` takes 2 s on a warm page cache (PyTorch 2.13, measured); libraries of the
/// training script come on top, a cold disk multiplies it.
constexpr Figure kImports{3, 1.5, 15, ""};
/// First epoch less the median of the others, 118 runs of small convolutional networks on one P100
/// in TensorFlow: 0.96 s, 5 to 95 % within 0.56-3.25 s; and 0.4 s for a CUDA context (prior).
constexpr Figure kFirstKernels{1.4, 0.6, 3.7, ""};
/// Rendezvous and NCCL's communicator. Priors.
constexpr Figure kProcessGroup{2, 0.5, 10, ""};
constexpr double kProcessGroupRank = 0.1;
/// Seconds of a number drawn by torch.nn.init.normal_ on one core, and of making one module;
/// measured, PyTorch 2.13.
constexpr double kDrawnNumber = 4.2e-9, kModule = 90e-6;
/// Pageable memory over the nominal PCIe rate, as pcie.pageable of the time coefficients.
constexpr double kPageable = 0.35;
constexpr Band kModelBand{0.7, 2}, kTrialsBand{0.7, 2}, kMallocBand{0.7, 2};
/// One cudaMalloc. A prior.
constexpr double kMalloc = 0.3e-3;
/// torch.backends.cudnn.benchmark_limit, and the runs of each plan: one to warm up, one timed
/// (ATen/native/cudnn/Conv_v8.cpp; cudnn_frontend_find_plan.h).
constexpr int kPlans = 10, kRunsOfAPlan = 2;
/// Priors: how much slower than the best a plan is on average, and what building one costs the
/// host.
constexpr double kPlanSlowdown = 3, kPlanBuild = 5e-3;
/// Eager steps before a capture that PyTorch asks for: without and with DDP ("CUDA semantics").
constexpr int kWarmUps = 3, kWarmUpsDdp = 11;

Figure sum_scaled(Figure f, double add, std::string basis) {
  return {f.value + add, f.low + add, f.high + add, std::move(basis)};
}

bool same_shape(const ConvolutionShape& a, const ConvolutionShape& b) {
  return a.pass == b.pass && a.batch == b.batch && a.in_channels == b.in_channels &&
         a.out_channels == b.out_channels && a.groups == b.groups && a.in == b.in &&
         a.out == b.out && a.kernel == b.kernel && a.stride == b.stride && a.dilation == b.dilation;
}

/// Every convolution of a new shape, in an iteration or a pass, is tried once.
Figure trials(const Program& program, const StepTime& time) {
  std::vector<const ConvolutionShape*> tried;
  double seconds_once = 0;
  for (std::size_t k = 0; k < program.kernels.size() && k < time.kernel_times.size(); ++k) {
    const auto* shape = std::get_if<ConvolutionShape>(&program.kernels[k].shape);
    if (shape == nullptr) continue;
    const bool known = std::any_of(tried.begin(), tried.end(), [&](const ConvolutionShape* other) {
      return same_shape(*shape, *other);
    });
    if (known) continue;
    tried.push_back(shape);
    seconds_once += seconds(time.kernel_times[k]);
  }
  const double plans = kPlans * static_cast<double>(tried.size());
  return with_band(
      plans * kPlanBuild + kPlans * kRunsOfAPlan * kPlanSlowdown * seconds_once, kTrialsBand,
      std::to_string(tried.size()) + " convolutions, 10 plans each, run twice; priors");
}

/// Drawing the parameters on the host and sending them to the device.
Figure model_on_device(const Scenario& s, const Program& program) {
  double bytes = 0;
  for (const Buffer& b : program.buffers) {
    if (b.role == BufferRole::kParameter) bytes += static_cast<double>(b.bytes.count());
  }
  constexpr double kBytesOfANumber = 4;
  const double speed = std::max(0.05, s.machine.host.relative_core_speed);
  const double made = (bytes / kBytesOfANumber * kDrawnNumber +
                       static_cast<double>(s.step->module_names.size()) * kModule) /
                      speed;
  const Gpu* gpu = s.machine.device.gpu();
  const double copied =
      gpu == nullptr ? 0 : bytes / (kPageable * std::max(1e9, gpu->pcie_bandwidth));
  return with_band(made + copied, kModelBand, "drawing the weights on one core, measured");
}

/// An epoch that reads every file from the disk, less one that finds some in memory.
std::optional<Figure> cold_files(const Scenario& s, const Forecast& f) {
  if (!s.sample.known || s.sample.read_bytes <= 0 || f.epoch_s.value <= 0) return std::nullopt;
  HostShare cold = host_share(s);
  cold.memory = Bytes(1);
  LoaderSettings loader = s.loader;
  loader.batch = s.job.batch;
  loader.dataset_samples = s.dataset_samples;
  const Nanos step(f.time.total.count() / s.job.accumulate);
  const Consumer consumer{
      .step = step, .host_cpu = std::min(step, Nanos(f.time.host.count() / s.job.accumulate))};
  const double rate = simulate_loader(loader, s.sample, cold, consumer).samples_per_s * s.job.gpus;
  if (!(rate > 0)) return std::nullopt;
  const double more = static_cast<double>(s.dataset_samples) / rate -
                      static_cast<double>(s.dataset_samples) / f.samples_per_s.value;
  if (more <= 0) return std::nullopt;
  return Figure{more, 0, more * (1 + s.sample.band.above), "simulation with no file in memory"};
}

}  // namespace

std::vector<RunPart> start_up_parts(const Scenario& s, const Program& program, const Forecast& f) {
  std::vector<RunPart> parts;
  const auto add = [&](std::string name, Figure seconds) {
    if (seconds.value > 0) parts.push_back({std::move(name), std::move(seconds)});
  };
  add("Python and imports", sum_scaled(kImports, 0, "measured, and a prior for the script's own"));
  if (s.job.gpus > 1) {
    add("process group", sum_scaled(kProcessGroup, kProcessGroupRank * s.job.gpus, "prior"));
  }
  const bool cpu = s.machine.device.cpu() != nullptr;
  add(cpu ? "making the model" : "model onto the GPU", model_on_device(s, program));
  if (!cpu) {
    add("CUDA context, libraries, first kernels",
        sum_scaled(kFirstKernels, 0, "118 first epochs of TensorFlow on a P100, and a prior"));
    add("allocator's segments",
        with_band(kMalloc * static_cast<double>(f.memory.outcome.device_mallocs), kMallocBand,
                  "simulated cudaMalloc calls, 0.3 ms each (prior)"));
  }
  if (!cpu && s.job.cudnn == CudnnProfile::kBenchmark)
    add("cuDNN's algorithm trials", trials(program, f.time));
  if (program.cuda_graphs) {
    const int steps = 1 + (s.job.gpus > 1 ? kWarmUpsDdp : kWarmUps);
    add("warm-up and capture of CUDA graphs",
        with_band(steps * seconds(f.time.total + f.time.host), kTrialsBand, "prior"));
  }
  if (f.input.known) {
    const LoaderForecast& l = f.input.loader;
    add("loader's workers", with_band(seconds(std::max(Nanos(0), l.first_batch - l.epoch_start)),
                                      s.sample.band, s.sample.basis));
  }
  if (auto cold = cold_files(s, f)) add("files not in memory yet", std::move(*cold));
  return parts;
}

}  // namespace stoker
