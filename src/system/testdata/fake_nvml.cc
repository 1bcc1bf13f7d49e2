// A stand-in for libnvidia-ml.so that plays a script: the file that $FAKE_NVML names. Each line is
//
//     FRAME GPU KEY VALUE
//
// and holds from that frame on. A frame passes with each reading of GPU 0's utilisation. VALUE is a
// number, a name, or NA: the driver then says that it is not supported. KEY is one of name, busy,
// memory_percent, used, total, power, power_limit, clock, clock_most, temperature, throttle,
// receive, send, pid, foreign_pid, mig, sm, tensor, dram. Without the file there is no GPU;
// "0 0 init fail" breaks the start.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace {

constexpr int kSuccess = 0, kUnknown = 999, kNotSupported = 3;

struct Entry {
  int frame;
  std::string value;
};
std::map<std::pair<int, std::string>, std::map<int, std::string>> script;
int frame = 0, gpus = 0;

void read_script() {
  script.clear();
  frame = gpus = 0;
  const char* const path = std::getenv("FAKE_NVML");
  std::ifstream file(path != nullptr ? path : "");
  int at = 0, gpu = 0;
  std::string key, value;
  while (file >> at >> gpu >> key >> value) {
    script[{gpu, key}][at] = value;
    gpus = std::max(gpus, gpu + 1);
  }
}

const std::string* value_of(void* device, const std::string& key) {
  const int gpu = static_cast<int>(reinterpret_cast<std::size_t>(device)) - 1;
  const auto found = script.find({gpu, key});
  if (found == script.end()) return nullptr;
  auto at = found->second.upper_bound(frame);
  if (at == found->second.begin()) return nullptr;
  --at;
  return at->second == "NA" ? nullptr : &at->second;
}

template <class Number>
int tell(void* device, const char* key, Number* out) {
  const std::string* value = value_of(device, key);
  if (value == nullptr) return kNotSupported;
  *out = static_cast<Number>(std::strtod(value->c_str(), nullptr));
  return kSuccess;
}

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
  int result;
  double value;
  char *a, *b, *c;
};
struct GpmMetrics {
  unsigned version, count;
  void *first, *second;
  GpmMetric metrics[1];
};

}  // namespace

extern "C" {
int nvmlInit_v2() {
  read_script();
  const auto found = script.find({0, "init"});
  return found == script.end() ? kSuccess : kUnknown;
}
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus);
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  const std::string* value = value_of(device, "name");
  if (value == nullptr) return kNotSupported;
  std::strncpy(name, value->c_str(), size);
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* out) {
  const int result = tell(device, "busy", &out->gpu);
  out->memory = 0;
  tell(device, "memory_percent", &out->memory);
  if (device == reinterpret_cast<void*>(std::size_t{1})) ++frame;
  return result;
}
int nvmlDeviceGetMemoryInfo(void* device, MemoryInfo* out) {
  *out = {};
  return tell(device, "used", &out->used) | tell(device, "total", &out->total);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* out) { return tell(device, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* out) {
  return tell(device, "power_limit", out);
}
int nvmlDeviceGetClockInfo(void* device, unsigned, unsigned* out) {
  return tell(device, "clock", out);
}
int nvmlDeviceGetMaxClockInfo(void* device, unsigned, unsigned* out) {
  return tell(device, "clock_most", out);
}
int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* out) {
  return tell(device, "temperature", out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* out) {
  return tell(device, "throttle", out);
}
int nvmlDeviceGetPcieThroughput(void* device, unsigned counter, unsigned* out) {
  return tell(device, counter == 1 ? "receive" : "send", out);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
  unsigned found = 0;
  for (const char* key : {"pid", "foreign_pid"}) {
    unsigned pid = 0;
    if (tell(device, key, &pid) == kSuccess && found < *count)
      infos[found++] = {pid, 1ULL << 30, 0, 0};
  }
  *count = found;
  return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return tell(device, "mig", current);
}
int nvmlGpmQueryDeviceSupport(void* device, GpmSupport* support) {
  support->supported = value_of(device, "sm") != nullptr ? 1 : 0;
  return kSuccess;
}
int nvmlGpmSampleAlloc(void** sample) {
  *sample = new void*(nullptr);
  return kSuccess;
}
int nvmlGpmSampleFree(void* sample) {
  delete static_cast<void**>(sample);
  return kSuccess;
}
int nvmlGpmSampleGet(void* device, void* sample) {
  *static_cast<void**>(sample) = device;
  return kSuccess;
}
int nvmlGpmMetricsGet(GpmMetrics* m) {
  for (unsigned i = 0; i < m->count; ++i) {
    GpmMetric& metric = m->metrics[i];
    const char* const key = metric.id == 2 ? "sm" : metric.id == 5 ? "tensor" : "dram";
    metric.result = tell(*static_cast<void**>(m->second), key, &metric.value);
  }
  return kSuccess;
}
}
