#include "system/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker {
namespace {

// What follows is the binary interface of NVML as its API reference describes it, in names of our
// own.
using Return = int;
constexpr Return kSuccess = 0, kInsufficientSize = 7;
using Device = void*;
using GpmSample = void*;

struct Utilization {
  unsigned gpu, memory;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
struct GpmSupport {
  unsigned version, supported;
};
struct GpmMetric {
  unsigned id;
  Return result;
  double value;
  struct {
    char *short_name, *long_name, *unit;
  } info;
};
/// The library looks at so many metrics as the number says; the array is of the size of its first
/// version or larger.
constexpr std::size_t kMostMetrics = 333;
struct GpmMetrics {
  unsigned version, count;
  GpmSample first, second;
  std::array<GpmMetric, kMostMetrics> metrics;
};

constexpr unsigned kSmClock = 1, kGpuTemperature = 0, kSend = 0, kReceive = 1;
constexpr unsigned kGpmSm = 2, kGpmTensor = 5, kGpmDram = 10;
constexpr unsigned kGpmVersion = 1;
constexpr std::size_t kNameSize = 96;
constexpr unsigned kMostProcesses = 256;

template <class Function>
void load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

/// Functions of the library; those that an older one lacks are null.
struct Library {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, Device*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*memory)(Device, MemoryInfo*) = nullptr;
  Return (*power)(Device, unsigned*) = nullptr;
  Return (*power_limit)(Device, unsigned*) = nullptr;
  Return (*clock)(Device, unsigned, unsigned*) = nullptr;
  Return (*clock_most)(Device, unsigned, unsigned*) = nullptr;
  Return (*temperature)(Device, unsigned, unsigned*) = nullptr;
  Return (*throttle)(Device, unsigned long long*) = nullptr;
  Return (*pcie)(Device, unsigned, unsigned*) = nullptr;
  Return (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Return (*mig)(Device, unsigned*, unsigned*) = nullptr;
  Return (*gpm_support)(Device, GpmSupport*) = nullptr;
  Return (*gpm_alloc)(GpmSample*) = nullptr;
  Return (*gpm_free)(GpmSample) = nullptr;
  Return (*gpm_sample)(Device, GpmSample) = nullptr;
  Return (*gpm_metrics)(GpmMetrics*) = nullptr;

  explicit Library(void* l) {
    load(l, "nvmlInit_v2", init);
    load(l, "nvmlShutdown", shutdown);
    load(l, "nvmlDeviceGetCount_v2", count);
    load(l, "nvmlDeviceGetHandleByIndex_v2", handle);
    load(l, "nvmlDeviceGetName", name);
    load(l, "nvmlDeviceGetUtilizationRates", utilization);
    load(l, "nvmlDeviceGetMemoryInfo", memory);
    load(l, "nvmlDeviceGetPowerUsage", power);
    load(l, "nvmlDeviceGetEnforcedPowerLimit", power_limit);
    load(l, "nvmlDeviceGetClockInfo", clock);
    load(l, "nvmlDeviceGetMaxClockInfo", clock_most);
    load(l, "nvmlDeviceGetTemperature", temperature);
    load(l, "nvmlDeviceGetCurrentClocksThrottleReasons", throttle);
    load(l, "nvmlDeviceGetPcieThroughput", pcie);
    load(l, "nvmlDeviceGetComputeRunningProcesses_v3", processes);
    if (processes == nullptr) load(l, "nvmlDeviceGetComputeRunningProcesses_v2", processes);
    load(l, "nvmlDeviceGetMigMode", mig);
    load(l, "nvmlGpmQueryDeviceSupport", gpm_support);
    load(l, "nvmlGpmSampleAlloc", gpm_alloc);
    load(l, "nvmlGpmSampleFree", gpm_free);
    load(l, "nvmlGpmSampleGet", gpm_sample);
    load(l, "nvmlGpmMetricsGet", gpm_metrics);
  }
};

/// Calls a function that is perhaps not there; false unless it succeeds.
template <class Function, class... Arguments>
bool ask(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == kSuccess;
}

struct Gpu {
  Device device = nullptr;
  std::string name;
  bool divided = false;
  GpmSample before = nullptr, now = nullptr;  ///< null: no performance counters
  bool sampled = false;
};

}  // namespace

struct Nvml::Parts {
  explicit Parts(void* handle) : library(handle), functions(handle) {}
  void* library;
  Library functions;
  std::vector<Gpu> gpus;
  bool initialised = false;

  void meet(unsigned index);
  void read_gpm(Gpu& gpu, GpuReading& reading) const;
  void read_processes(const Gpu& gpu, GpuReading& reading) const;
};

void Nvml::Parts::meet(unsigned index) {
  Gpu gpu;
  if (!ask(functions.handle, index, &gpu.device)) return;
  std::array<char, kNameSize> text{};
  if (ask(functions.name, gpu.device, text.data(), static_cast<unsigned>(text.size() - 1)))
    gpu.name = text.data();
  unsigned current = 0, pending = 0;
  gpu.divided = ask(functions.mig, gpu.device, &current, &pending) && current != 0;
  GpmSupport support{kGpmVersion, 0};
  const bool counters = ask(functions.gpm_support, gpu.device, &support) &&
                        support.supported != 0 && ask(functions.gpm_alloc, &gpu.before) &&
                        ask(functions.gpm_alloc, &gpu.now);
  if (!counters) gpu.before = gpu.now = nullptr;
  gpus.push_back(gpu);
}

void Nvml::Parts::read_gpm(Gpu& gpu, GpuReading& reading) const {
  if (gpu.now == nullptr || !ask(functions.gpm_sample, gpu.device, gpu.now)) return;
  if (gpu.sampled) {
    auto metrics = std::make_unique<GpmMetrics>();
    *metrics = {};
    metrics->version = kGpmVersion;
    metrics->first = gpu.before;
    metrics->second = gpu.now;
    const std::array<std::pair<unsigned, std::int64_t*>, 3> wanted{
        {{kGpmSm, &reading.sm_permille},
         {kGpmTensor, &reading.tensor_permille},
         {kGpmDram, &reading.dram_permille}}};
    metrics->count = wanted.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) metrics->metrics[i].id = wanted[i].first;
    if (ask(functions.gpm_metrics, metrics.get())) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const GpmMetric& metric = metrics->metrics[i];
        constexpr double kPermilleAPercent = 10;
        if (metric.result == kSuccess && std::isfinite(metric.value) && metric.value >= 0)
          *wanted[i].second = std::llround(std::min(metric.value, 100.0) * kPermilleAPercent);
      }
    }
  }
  std::swap(gpu.before, gpu.now);
  gpu.sampled = true;
}

void Nvml::Parts::read_processes(const Gpu& gpu, GpuReading& reading) const {
  std::array<ProcessInfo, kMostProcesses> infos{};
  unsigned count = kMostProcesses;
  if (functions.processes == nullptr) return;
  const Return result = functions.processes(gpu.device, &count, infos.data());
  if (result != kSuccess && result != kInsufficientSize) return;
  reading.processes_known = true;
  for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i) {
    constexpr auto kNotTold = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
    reading.processes.push_back({infos[i].pid, infos[i].bytes == kNotTold
                                                   ? -1
                                                   : static_cast<std::int64_t>(infos[i].bytes)});
  }
}

std::unique_ptr<Nvml> Nvml::open(std::string* why, const std::string& library) {
  const auto refuse = [&](std::string words) {
    if (why != nullptr) *why = std::move(words);
    return nullptr;
  };
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return refuse("no NVIDIA driver library (" + library + ")");
  auto parts = std::make_unique<Parts>(handle);
  if (!ask(parts->functions.init)) {
    ::dlclose(handle);
    return refuse("NVIDIA's driver library does not start; see nvidia-smi");
  }
  parts->initialised = true;
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(parts)));
  unsigned count = 0;
  if (!ask(nvml->parts_->functions.count, &count)) count = 0;
  constexpr unsigned kMostGpus = 256;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) nvml->parts_->meet(i);
  if (nvml->size() == 0) return refuse("NVIDIA's driver library shows no GPU to this process");
  return nvml;
}

Nvml::Nvml(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Nvml::~Nvml() {
  for (const Gpu& gpu : parts_->gpus) {
    if (gpu.before == nullptr) continue;
    ask(parts_->functions.gpm_free, gpu.before);
    ask(parts_->functions.gpm_free, gpu.now);
  }
  if (parts_->initialised) ask(parts_->functions.shutdown);
  ::dlclose(parts_->library);
}

std::size_t Nvml::size() const { return parts_->gpus.size(); }
const std::string& Nvml::name(std::size_t gpu) const { return parts_->gpus[gpu].name; }
bool Nvml::divided(std::size_t gpu) const { return parts_->gpus[gpu].divided; }

GpuReading Nvml::read(std::size_t index, Depth depth) {
  Gpu& gpu = parts_->gpus[index];
  const Library& f = parts_->functions;
  GpuReading r;
  Utilization busy{};
  if (ask(f.utilization, gpu.device, &busy)) {
    r.busy_percent = busy.gpu;
    r.memory_percent = busy.memory;
  }
  unsigned number = 0;
  if (ask(f.power, gpu.device, &number)) r.power_mw = number;
  if (ask(f.clock, gpu.device, kSmClock, &number)) r.clock_mhz = number;
  unsigned long long reasons = 0;
  if (ask(f.throttle, gpu.device, &reasons))
    r.throttle_reasons = static_cast<std::int64_t>(reasons);
  MemoryInfo memory{};
  if (ask(f.memory, gpu.device, &memory)) {
    r.memory_used = static_cast<std::int64_t>(memory.used);
    r.memory_total = static_cast<std::int64_t>(memory.total);
  }
  if (ask(f.power_limit, gpu.device, &number)) r.power_limit_mw = number;
  if (ask(f.clock_most, gpu.device, kSmClock, &number)) r.clock_most_mhz = number;
  if (ask(f.temperature, gpu.device, kGpuTemperature, &number)) r.temperature = number;
  parts_->read_gpm(gpu, r);
  parts_->read_processes(gpu, r);
  if (depth == Depth::kRare) {
    if (ask(f.pcie, gpu.device, kReceive, &number)) r.receive_kb_s = number;
    if (ask(f.pcie, gpu.device, kSend, &number)) r.send_kb_s = number;
  }
  return r;
}

}  // namespace stoker
