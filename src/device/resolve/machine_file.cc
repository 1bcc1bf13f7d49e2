#include "device/resolve/machine_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "base/toml_table.h"
#include "device/host/cpu_table.h"
#include "device/host/host_speed.h"
#include "device/machine_calibration.h"
#include "device/scales.h"

namespace stoker {
namespace {

constexpr Bytes kLargestFile{8 * 1024 * 1024};
/// What the driver keeps of a device's memory: 257 MiB on V100, 251 on RTX 3060, 259 on RTX 4060
/// (their usable_mib in data/gpus/gpus.csv, read on such cards).
constexpr Bytes kDriverReserve = kMiB * 256;
constexpr double kMega = 1e6;

/// Starts from the catalogue's entry under `base`; one that lacks figures may serve, since the file
/// can give them.
Gpu base_gpu(TomlTable& table, const GpuCatalogue& catalogue) {
  std::string base;
  table.text("base", base);
  if (base.empty()) return {};
  for (const Gpu& gpu : catalogue.all()) {
    if (simplified(gpu.name) == simplified(base)) return gpu;
  }
  auto found = catalogue.find(base);
  if (found) return *found;
  table.reject("base", found.error().message);
  return {};
}

void read_words(TomlTable& table, Gpu& gpu) {
  if (const auto word = table.word("vendor")) {
    const auto vendor = parse_vendor(*word);
    if (simplified(*word) == "cpu")
      table.reject("vendor", "is no GPU's: describe a CPU by [cpu] in place of [gpu]");
    else if (vendor) gpu.vendor = *vendor;
    else table.reject("vendor", vendor.error().message);
  }
  if (const auto word = table.word("architecture")) {
    if (const auto architecture = parse_architecture(*word)) gpu.architecture = *architecture;
    else table.reject("architecture", architecture.error().message);
  }
  if (const auto word = table.word("compute_capability")) {
    if (const auto capability = parse_compute_capability(*word))
      gpu.compute_capability = *capability;
    else table.reject("compute_capability", capability.error().message);
  }
  table.text("name", gpu.name);
  gpu.name = printable(gpu.name);  // it stands in the middle of lines
  table.text("chip", gpu.chip);
  table.text("source", gpu.source);
  table.text("notes", gpu.notes);
}

void read_memory(TomlTable& table, Gpu& gpu) {
  const Bytes reserve = gpu.memory.count() > 0 ? gpu.memory - gpu.usable_memory : kDriverReserve;
  table.size("memory", range::kMemoryBytes, gpu.memory);
  if (table.has("memory")) gpu.usable_memory = std::max(gpu.memory - reserve, Bytes(0));
  table.size("usable_memory", range::kMemoryBytes, gpu.usable_memory);
  if (gpu.memory.count() > 0 && gpu.usable_memory > gpu.memory) {
    table.reject("usable_memory", human_bytes(gpu.usable_memory) + " exceeds the memory of " +
                                      human_bytes(gpu.memory) +
                                      "; give the smaller as usable_memory");
  }
  if (table.has("context_memory")) {
    Bytes context;
    table.size("context_memory", range::kPartBytes, context);
    gpu.context_memory = context;
    if (gpu.usable_memory.count() > 0 && context >= gpu.usable_memory) {
      table.reject("context_memory", human_bytes(context) + " leaves nothing of the usable " +
                                         human_bytes(gpu.usable_memory));
    }
  } else {
    Bytes unused;
    table.size("context_memory", range::kPartBytes, unused);  // makes the key known to suggestions
  }
}

Gpu read_gpu(TomlTable& table, const GpuCatalogue& catalogue) {
  Gpu gpu = base_gpu(table, catalogue);
  read_words(table, gpu);
  table.integer("sm_count", range::kMultiprocessors, gpu.sm_count);
  table.integer("fp32_cores_per_sm", range::kCoresPerMultiprocessor, gpu.fp32_cores_per_sm);
  table.number("boost_mhz", range::kClockMhz, 1, gpu.boost_mhz);
  table.number("fp32_tflops", range::kTeraflops, kTera, gpu.peak.fp32);
  table.number("fp16_tflops", range::kUnitTeraflops, kTera, gpu.peak.fp16);
  table.number("tf32_tensor_tflops", range::kUnitTeraflops, kTera, gpu.peak.tf32_tensor);
  table.number("fp16_tensor_tflops", range::kUnitTeraflops, kTera, gpu.peak.fp16_tensor);
  table.number("bf16_tensor_tflops", range::kUnitTeraflops, kTera, gpu.peak.bf16_tensor);
  table.number("bandwidth_gbs", range::kBandwidthGbs, kGiga, gpu.bandwidth);
  table.size("l2", range::kCacheBytes, gpu.l2);
  table.number("tdp_watts", range::kWatts, 1, gpu.tdp_watts);
  table.number("price_per_hour", range::kPrice, 1, gpu.price_per_hour);
  read_memory(table, gpu);
  if (gpu.name.empty() && !table.has("base")) {
    table.reject("", "has no name; add name = \"...\", or base = a name of the catalogue");
  }
  // FP32 peak = 2 x cores x clock, by which data sheets quote it.
  if (gpu.boost_mhz == 0 && gpu.sm_count > 0 && gpu.fp32_cores_per_sm > 0) {
    gpu.boost_mhz = gpu.peak.fp32 / (2e6 * gpu.sm_count * gpu.fp32_cores_per_sm);
  }
  if (const auto complete = check_complete(gpu); !complete && !gpu.name.empty()) {
    table.reject("", complete.error().message);
  }
  return gpu;
}

Host read_host(TomlTable& table) {
  Host host;
  host.name = "the machine file's host";
  table.text("name", host.name);
  table.number("cores", range::kHostCores, 1, host.cores);
  table.size("memory", range::kMemoryBytes, host.memory);
  table.number("core_speed", range::kCoreSpeed, 1, host.relative_core_speed);
  table.text("cpu", host.cpu);
  if (table.has("cpu")) {
    if (const auto known = host_speed(host.cpu)) {
      host.dispatch_speed = known->speed, host.dispatch_spread = known->spread;
      host.dispatch_basis = known->basis;
    } else {
      table.reject("cpu", known.error().message);
    }
  }
  host.shared_memory = host.memory / 2;  // tmpfs(5): size defaults to half of the physical memory
  if (!table.has("shm")) host.assumption = "/dev/shm is half of the memory";
  table.size("shm", range::kPartBytes, host.shared_memory);
  for (const char* needed : {"cores", "memory"}) {
    if (!table.has(needed)) table.reject("", std::string("lacks ") + needed + "; add it");
  }
  if (table.has("memory") && host.shared_memory > host.memory) {
    table.reject("shm", human_bytes(host.shared_memory) + " exceeds the memory of " +
                            human_bytes(host.memory) + "; /dev/shm lies in memory");
  }
  return host;
}

/// The link that the file names takes the place of the base's, and so does its figure; a figure
/// alone is of the link that the GPU has, or could have.
void read_gpu_link(TomlTable& table, Gpu& gpu) {
  std::string name = gpu.link;
  double stated = 0;
  table.text("name", name);
  table.number("gbs", range::kLinkGbs, kGiga, stated);
  const bool figure = table.has("gbs");
  if (!table.has("name") && !figure) return;
  gpu.link_stated = true;
  if (table.has("name")) {
    const std::string word = simplified(name);
    if (word == "pcie" || word == "none" || word == "no") name.clear();
    if (figure && stated > 0 && name.empty()) {
      table.reject("gbs", "is of a link between GPUs, but name says PCIe; give pcie_gbs instead");
    }
    // Where a GPU's only NVLink is a bridge, NVLink of whatever number is that bridge; one with a
    // figure is the user's own.
    const bool nvlink = word.starts_with("nvlink") && !figure && !gpu.bridge.empty();
    if (word == "bridge" || nvlink || word == simplified(gpu.bridge)) name = gpu.bridge;
    if (simplified(name) != simplified(gpu.link))
      gpu.link_bandwidth = !name.empty() && name == gpu.bridge ? gpu.bridge_bandwidth : 0;
    gpu.link = name;
  } else if (gpu.link.empty()) {
    gpu.link = gpu.bridge.empty() ? "GPU link" : gpu.bridge;
  }
  gpu.figure_stated = figure;
  if (figure) gpu.link_bandwidth = stated;
}

void read_link(TomlTable& table, MachineFile& file) {
  Gpu unused;
  Gpu* const described = file.device ? file.device->gpu() : nullptr;
  Gpu& gpu = described != nullptr ? *described : unused;
  table.number("pcie_gbs", range::kLinkGbs, kGiga, gpu.pcie_bandwidth);
  gpu.pcie_stated = table.has("pcie_gbs");
  read_gpu_link(table, gpu);
  table.number("network_gbs", range::kLinkGbs, kGiga, file.network_bandwidth);
  for (const char* key : {"pcie_gbs", "name", "gbs"}) {
    if (table.has(key) && described == nullptr)
      table.reject(key, "belongs to a GPU, but the file has no [gpu]; add it");
  }
}

/// A newer format is told before anything else: a newer file may mean all else differently.
std::optional<Error> version_error(TomlTable& top, const std::string& name) {
  int version = kMachineFormatVersion;
  top.integer("format_version", Range{1, 1e6, "format"}, version);
  if (version <= kMachineFormatVersion) return std::nullopt;
  return Error{ErrorCode::kTooNew,
               "is of format " + std::to_string(version) + ", newer than this stoker reads (" +
                   std::to_string(kMachineFormatVersion) + "); update stoker",
               name};
}

void read_host_part(TomlTable& host, TomlTable& disk, MachineFile& file) {
  if (host.present()) file.host = read_host(host);
  Host unused;
  Host& described = file.host ? *file.host : unused;
  disk.number("bandwidth_mbs", range::kDiskMbs, kMega, described.disk_bandwidth);
  disk.number("iops", range::kDiskIops, 1, described.disk_iops);
  if (disk.present() && !file.host)
    disk.reject("", "belongs to a host, but the file has no [host]; add it");
}

/// The device that the file describes, if any: a GPU, or the processor itself.
Status read_device(TomlTable& top, TomlTable& gpu, TomlTable& cpu, TomlTable& calibration,
                   const GpuCatalogue& catalogue, MachineFile& file) {
  if (gpu.present() && cpu.present()) {
    const bool cpu_later = cpu.stands_after(gpu);
    top.reject(cpu_later ? "cpu" : "gpu",
               std::string("stands beside ") + (cpu_later ? "[gpu]" : "[cpu]") +
                   "; a file describes one device: leave one of them out, or write two files");
  }
  if (gpu.present()) {
    gpu.integer("count", range::kCount, file.gpu_count);
    file.device = read_gpu(gpu, catalogue);
  } else if (cpu.present()) {
    file.device = read_cpu(cpu);
    if (file.nodes > 1)
      top.reject("nodes", "goes with [gpu]: training on CPUs of several computers is not modelled");
  } else if (calibration.present()) {
    top.reject("calibration", "belongs to a device, but the file has no [gpu] or [cpu]; add it");
  }
  if (!file.device || calibration.empty()) return {};
  auto measured = TRY(read_calibration(calibration));
  file.device->facts().calibrated = true;
  file.device->facts().calibration = std::make_shared<const Calibration>(std::move(measured));
  return {};
}

Result<MachineFile> read_tables(const TomlDocument& document, const std::string& name,
                                const GpuCatalogue& catalogue) {
  MachineFile file;
  TomlTable top = document.root();
  if (auto error = version_error(top, name)) return tl::unexpected(std::move(*error));
  top.text("name", file.name);
  top.integer("nodes", range::kNodes, file.nodes);
  TomlTable gpu = top.table("gpu");
  TomlTable cpu = top.table("cpu");
  TomlTable host = top.table("host");
  TomlTable disk = top.table("disk");
  TomlTable link = top.table("link");
  TomlTable provenance = top.table("provenance");
  TomlTable calibration = top.table("calibration");

  TRY(read_device(top, gpu, cpu, calibration, catalogue, file));
  file.calibration = calibration.as_toml();
  read_host_part(host, disk, file);
  read_link(link, file);
  file.provenance = provenance.texts();
  for (TomlTable* table : {&top, &gpu, &cpu, &host, &disk, &link, &provenance}) {
    if (auto error = table->finish()) return tl::unexpected(std::move(*error));
  }
  if (!file.device && !file.host) {
    return fail(ErrorCode::kBadInput,
                "describes neither a device ([gpu] or [cpu]) nor a [host]; see "
                "docs/reference/machine-file.md",
                name);
  }
  return file;
}

}  // namespace

Result<MachineFile> parse_machine_file(std::string_view text, const std::string& name,
                                       const GpuCatalogue& catalogue) {
  const auto document = TRY(TomlDocument::parse(text, name));
  return read_tables(document, name, catalogue);
}

Result<MachineFile> read_machine_file(const std::filesystem::path& path) {
  auto text = TRY(read_file(path, kLargestFile));
  auto catalogue = TRY(GpuCatalogue::load());
  return parse_machine_file(text, path.string(), catalogue);
}

}  // namespace stoker
