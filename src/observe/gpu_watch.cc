#include "observe/gpu_watch.h"

#include <algorithm>

namespace stoker {
namespace {

GpuSample sample_of(std::size_t index, const GpuReading& r,
                    const std::set<std::int64_t>& job_pids) {
  GpuSample s;
  s.index = static_cast<std::int64_t>(index);
  s.busy_percent = r.busy_percent;
  s.memory_percent = r.memory_percent;
  s.memory_used = r.memory_used;
  s.memory_total = r.memory_total;
  s.power_mw = r.power_mw;
  s.power_limit_mw = r.power_limit_mw;
  s.clock_mhz = r.clock_mhz;
  s.clock_most_mhz = r.clock_most_mhz;
  s.temperature = r.temperature;
  s.throttle_reasons = r.throttle_reasons;
  s.receive_kb_s = r.receive_kb_s;
  s.send_kb_s = r.send_kb_s;
  s.sm_permille = r.sm_permille;
  s.tensor_permille = r.tensor_permille;
  s.dram_permille = r.dram_permille;
  for (const GpuProcess& process : r.processes) {
    const bool own = job_pids.contains(process.pid);
    ++(own ? s.job_processes : s.foreign_processes);
    if (!own) s.foreign_memory += std::max<std::int64_t>(0, process.bytes);
  }
  return s;
}

}  // namespace

std::vector<GpuSample> GpuWatch::sample(const std::set<std::int64_t>& job_pids, Nvml::Depth depth) {
  std::vector<GpuSample> all;
  if (!nvml_) return all;
  for (std::size_t i = 0; i < nvml_->size(); ++i)
    all.push_back(sample_of(i, nvml_->read(i, depth), job_pids));
  const auto own = [](const GpuSample& s) { return s.job_processes > 0; };
  if (std::ranges::any_of(all, own))
    std::erase_if(all, [&](const GpuSample& s) { return !own(s); });
  return all;
}

std::vector<std::string> GpuWatch::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; nvml_ && i < nvml_->size(); ++i) names.push_back(nvml_->name(i));
  return names;
}

}  // namespace stoker
