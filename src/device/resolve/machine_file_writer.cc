#include <utility>

#include "base/files.h"
#include "base/ranges.h"
#include "base/toml_text.h"
#include "device/resolve/machine_file.h"
#include "device/scales.h"

namespace stoker {
namespace {

/// Lines of "key = value"; what is zero or empty is unknown, and left out.
class Lines {
 public:
  void table(const char* name) { text_ += "\n[" + std::string(name) + "]\n"; }
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) line(key, toml_string(value));
  }
  void number(const char* key, double value) {
    if (value != 0) line(key, shortest(value));
  }
  void integer(const char* key, int value) {
    if (value != 0) line(key, std::to_string(value));
  }
  void size(const char* key, Bytes value) { line(key, toml_size(value)); }
  void line(std::string_view key, const std::string& value) {
    text_ += std::string(key) + " = " + value + "\n";
  }
  void raw(std::string_view text) { text_ += text; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_gpu(Lines& out, const Gpu& gpu, int count) {
  out.table("gpu");
  out.text("name", gpu.name);
  out.line("count", std::to_string(count));
  out.text("vendor", name_of(gpu.vendor));
  out.text("architecture", name_of(gpu.architecture));
  out.text("chip", gpu.chip);
  if (gpu.compute_capability > 0) {
    out.text("compute_capability", std::to_string(gpu.compute_capability / 10) + "." +
                                       std::to_string(gpu.compute_capability % 10));
  }
  out.integer("sm_count", gpu.sm_count);
  out.integer("fp32_cores_per_sm", gpu.fp32_cores_per_sm);
  out.number("boost_mhz", gpu.boost_mhz);
  out.number("fp32_tflops", gpu.peak.fp32 / kTera);
  out.number("fp16_tflops", gpu.peak.fp16 / kTera);
  out.number("tf32_tensor_tflops", gpu.peak.tf32_tensor / kTera);
  out.number("fp16_tensor_tflops", gpu.peak.fp16_tensor / kTera);
  out.number("bf16_tensor_tflops", gpu.peak.bf16_tensor / kTera);
  out.size("memory", gpu.memory);
  out.size("usable_memory", gpu.usable_memory);
  if (gpu.context_memory) out.size("context_memory", *gpu.context_memory);
  out.number("bandwidth_gbs", gpu.bandwidth / kGiga);
  if (gpu.l2.count() > 0) out.size("l2", gpu.l2);
  out.number("tdp_watts", gpu.tdp_watts);
  out.number("price_per_hour", gpu.price_per_hour);
  out.text("source", gpu.source);
  out.text("notes", gpu.notes);
}

void write_cpu(Lines& out, const Cpu& cpu) {
  out.table("cpu");
  out.text("name", cpu.name);
  out.integer("cores", cpu.cores);
  out.integer("simd_bits", cpu.simd_bits);
  out.number("clock_mhz", cpu.clock_mhz);
  out.number("fp32_tflops", cpu.peak.fp32 / kTera);
  out.number("bandwidth_gbs", cpu.bandwidth / kGiga);
  for (const auto& [key, size] : {std::pair("l1", cpu.l1), {"l2", cpu.l2}, {"l3", cpu.l3}}) {
    if (size.count() > 0) out.size(key, size);
  }
  out.size("memory", cpu.memory);
  if (cpu.context_memory) out.size("context_memory", *cpu.context_memory);
  out.number("tdp_watts", cpu.tdp_watts);
  out.number("price_per_hour", cpu.price_per_hour);
  out.text("source", cpu.source);
  out.text("notes", cpu.notes);
}

void write_host(Lines& out, const Host& host) {
  out.table("host");
  out.text("name", host.name);
  out.number("cores", host.cores);
  out.size("memory", host.memory);
  out.size("shm", host.shared_memory);
  out.number("core_speed", host.relative_core_speed);
  if (!host.cpu.empty()) out.text("cpu", host.cpu);
  if (host.disk_bandwidth == 0 && host.disk_iops == 0) return;
  out.table("disk");
  out.number("bandwidth_mbs", host.disk_bandwidth / 1e6);
  out.number("iops", host.disk_iops);
}

}  // namespace

std::string machine_file_text(const MachineFile& file) {
  Lines out;
  out.raw("# A machine, as docs/reference/machine-file.md describes it.\n");
  out.line("format_version", std::to_string(kMachineFormatVersion));
  out.text("name", file.name);
  out.line("nodes", std::to_string(file.nodes));
  const Gpu* gpu = file.device ? file.device->gpu() : nullptr;
  const Cpu* cpu = file.device ? file.device->cpu() : nullptr;
  if (gpu != nullptr) write_gpu(out, *gpu, file.gpu_count);
  if (cpu != nullptr) write_cpu(out, *cpu);
  if (file.host) write_host(out, *file.host);
  if (gpu != nullptr || file.network_bandwidth > 0) {
    out.table("link");
    if (gpu != nullptr) {
      out.number("pcie_gbs", gpu->pcie_bandwidth / kGiga);
      out.text("name", gpu->link);
      out.number("gbs", gpu->link_bandwidth / kGiga);
    }
    out.number("network_gbs", file.network_bandwidth / kGiga);
  }
  if (!file.provenance.empty()) out.table("provenance");
  for (const auto& [key, value] : file.provenance) out.line(toml_string(key), toml_string(value));
  if (!file.calibration.empty()) out.raw("\n" + file.calibration + "\n");
  return out.take();
}

Status write_machine_file(const std::filesystem::path& path, const MachineFile& file) {
  return write_file(path, machine_file_text(file));
}

}  // namespace stoker
