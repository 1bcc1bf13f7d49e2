#include "report/json/json_parts.h"
#include "report/model/machine_report.h"

namespace stoker {
namespace {

constexpr const char* kMachineSchema = "stoker-machine-1";

/// What was not found out is null.
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json positive_or_null(double value) { return value > 0 ? Json(value) : Json(); }
Json positive_or_null(int value) { return value > 0 ? Json(value) : Json(); }
Json size_or_null(Bytes bytes) { return bytes.count() > 0 ? Json(bytes.count()) : Json(); }

Json gpus_of(const GpuDevices& gpus) {
  Json list = Json::array();
  for (const GpuDevice& gpu : gpus.devices) {
    list.push_back({{"name", text_or_null(gpu.name)},
                    {"vendor", gpu.vendor},
                    {"bus_id", gpu.bus_id},
                    {"uuid", text_or_null(gpu.uuid)},
                    {"memory_bytes", nullptr}});
  }
  return list;
}

Json load_of(const MachineLoad& load) {
  const bool looked = load.seconds > 0;
  return {{"seconds", load.seconds},
          {"others_share", looked ? Json(load.others_share) : Json()},
          {"steal_share", looked ? Json(load.steal_share) : Json()},
          {"load_average", load.load_average}};
}

}  // namespace

std::string machine_json(const MachineReport& report) {
  const MachineFacts& f = report.facts;
  const Processor& p = f.processor;
  const HostLimits& l = f.limits;
  const std::string folder = f.cpu_cgroup.folders.empty() ? "" : f.cpu_cgroup.folders.front();
  return answer_text(
      {{"schema", kMachineSchema},
       {"stoker", report.tool_version},
       {"kernel", text_or_null(f.kernel)},
       {"cpu_name", text_or_null(p.name)},
       {"cpu_vendor", text_or_null(p.vendor)},
       {"clock_mhz", positive_or_null(p.clock_mhz)},
       {"simd_bits", positive_or_null(p.simd_bits)},
       {"simd", p.simd},
       {"l1_bytes", size_or_null(p.caches.l1)},
       {"l2_bytes", size_or_null(p.caches.l2)},
       {"l3_bytes", size_or_null(p.caches.l3)},
       {"l3_shared_by", positive_or_null(p.caches.l3_sharing)},
       {"cores", positive_or_null(l.usable_cores())},
       {"logical_cores", positive_or_null(p.logical_cores)},
       {"physical_cores", positive_or_null(p.physical_cores)},
       {"affinity_cores", positive_or_null(l.affinity)},
       {"quota_cores", l.quota ? Json(*l.quota) : Json()},
       {"throttled_periods", l.throttled},
       {"periods", l.periods},
       {"memory_bytes", size_or_null(f.memory.usable())},
       {"memory_total_bytes", size_or_null(f.memory.total)},
       {"memory_limit_bytes", f.memory.limit ? Json(f.memory.limit->limit.count()) : Json()},
       {"memory_available_bytes", size_or_null(f.memory.available_here())},
       {"shared_memory_bytes", size_or_null(l.shared_memory)},
       {"shared_memory_free_bytes",
        l.shared_memory.count() > 0 ? Json(l.shared_memory_free.count()) : Json()},
       {"open_files", l.open_files > 0 ? Json(l.open_files) : Json()},
       {"cgroup_version", positive_or_null(f.cpu_cgroup.version)},
       {"cgroup_folder", text_or_null(folder)},
       {"load", load_of(report.load)},
       {"nvidia_driver", text_or_null(f.gpus.nvidia_driver)},
       {"gpus", gpus_of(f.gpus)}});
}

}  // namespace stoker
