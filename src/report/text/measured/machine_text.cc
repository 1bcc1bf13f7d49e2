#include <fmt/format.h>

#include <limits>
#include <string>
#include <vector>

#include "base/percent.h"
#include "base/text.h"
#include "report/model/machine_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string known(const std::string& text) { return text.empty() ? "not told" : text; }
std::string known(Bytes bytes) { return bytes.count() > 0 ? human_bytes(bytes) : "not told"; }
std::string known_count(int count) {
  return count > 0 ? std::to_string(count) : "an unknown number";
}

std::string cores_of(const MachineFacts& f) {
  const HostLimits& l = f.limits;
  std::string text = l.usable_cores() > 0 ? fmt::format("{:g} usable", l.usable_cores())
                                          : std::string("usable ones not told");
  text += fmt::format(" of {} online", known_count(f.processor.logical_cores));
  if (f.processor.physical_cores > 0)
    text += fmt::format(" ({} physical)", f.processor.physical_cores);
  if (l.affinity > 0 && l.affinity < f.processor.logical_cores)
    text += fmt::format("; affinity {}", l.affinity);
  text += l.quota ? fmt::format("; quota {:g}", *l.quota) : "; no quota";
  if (l.throttled > 0) text += fmt::format(", used up in {} of {} periods", l.throttled, l.periods);
  return text;
}

std::string caches_of(const Processor& p) {
  const ProcessorCaches& c = p.caches;
  std::string text = "L1 " + known(c.l1) + ", L2 " + known(c.l2) + " of a core; L3 " + known(c.l3);
  if (c.l3.count() > 0) text += fmt::format(" shared by {}", c.l3_sharing);
  return text;
}

std::string memory_of(const MemoryFacts& m) {
  std::string text = known(m.usable()) + " usable of " + known(m.total);
  text += m.limit ? "; limit " + human_bytes(m.limit->limit) : "; no limit";
  return text + "; " + known(m.available_here()) + " available";
}

std::string simd_of(const Processor& p) {
  if (p.simd.empty()) return "not told";
  std::string text = fmt::format("{} bits:", p.simd_bits);
  for (const std::string& name : p.simd) text += " " + name;
  return text;
}

std::string open_files_of(const HostLimits& l) {
  if (l.open_files <= 0) return "not told";
  if (l.open_files == std::numeric_limits<std::int64_t>::max()) return "no limit";
  return with_commas(l.open_files);
}

std::string load_of(const MachineLoad& load) {
  const std::string average = fmt::format("load average {:.2f}", load.load_average);
  if (load.seconds <= 0) return average;
  return fmt::format("others use {:.0f} % of the cores, the hypervisor {:.0f} % ({:.1f} s); {}",
                     kPerCent * load.others_share, kPerCent * load.steal_share, load.seconds,
                     average);
}

void add_gpus(const GpuDevices& gpus, Rows& rows) {
  if (gpus.devices.empty()) rows.push_back({"GPUs", "none"});
  for (const GpuDevice& gpu : gpus.devices) {
    const std::string name = gpu.name.empty() ? gpu.vendor + ", name not told" : gpu.name;
    rows.push_back({"GPU", name + " at " + gpu.bus_id + "; memory and load not told"});
  }
  if (!gpus.nvidia_driver.empty()) rows.push_back({"NVIDIA driver", gpus.nvidia_driver});
}

}  // namespace

std::string machine_text(const MachineReport& report) {
  const MachineFacts& f = report.facts;
  const Processor& p = f.processor;
  const HostLimits& l = f.limits;
  const std::string version =
      f.cpu_cgroup.version > 0
          ? fmt::format("version {}, {}", f.cpu_cgroup.version, f.cpu_cgroup.folders.front())
          : std::string("none found");
  Rows rows{
      {"CPU", known(p.name) + (p.vendor.empty() ? "" : " (" + p.vendor + ")")},
      {"cores", cores_of(f)},
      {"clock", p.clock_mhz > 0 ? fmt::format("{:.0f} MHz", p.clock_mhz) : "not told"},
      {"SIMD", simd_of(p)},
      {"caches", caches_of(p)},
      {"memory", memory_of(f.memory)},
      {"/dev/shm", known(l.shared_memory) + "; " + human_bytes(l.shared_memory_free) + " free"},
      {"open files", open_files_of(l)},
      {"cgroup", version},
      {"kernel", known(f.kernel)},
      {"load", load_of(report.load)}};
  add_gpus(f.gpus, rows);
  return layout::table(rows, {0, 1}, "");
}

}  // namespace stoker
