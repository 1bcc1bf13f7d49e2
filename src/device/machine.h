#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace stoker {

struct Calibration;

enum class Vendor : std::uint8_t { kNvidia, kAmd, kCpu };

/// Architectures in order of age, so that `>=` reads as "at least as new as" within a vendor.
enum class Architecture : std::uint8_t {
  kKepler,
  kMaxwell,
  kPascal,
  kVolta,
  kTuring,
  kAmpere,
  kAda,
  kHopper,
  kBlackwell,
  kCdna,
  kOther
};

/// Dense peak rates without sparsity, in FLOP/s; 0 = the GPU has no such unit.
struct PeakRates {
  double fp32 = 0, fp16 = 0, tf32_tensor = 0, fp16_tensor = 0, bf16_tensor = 0;
};

/// What of a CPU that trains decides its speed, besides the figures that it shares with a GPU
/// (Gpu::sm_count: its cores; Gpu::memory: the machine's).
struct CpuFacts {
  int simd_bits = 0;  ///< of the widest vector unit: 128, 256, 512
  Bytes l1, l2;       ///< of one core; 0 = unknown
  Bytes l3;           ///< of all cores together
};

/// One device (one die, one device index) by its data sheet, or as a machine file corrects it: a GPU,
/// or (`vendor` kCpu) the processor itself.
struct Gpu {
  std::string name;  ///< catalogue key, "V100-SXM2-16GB"
  Vendor vendor = Vendor::kNvidia;
  Architecture architecture = Architecture::kOther;
  std::string chip;
  int compute_capability = 0;  ///< 70 for 7.0; 0 when the vendor has none
  int sm_count = 0;
  int fp32_cores_per_sm = 0;
  double boost_mhz = 0;
  PeakRates peak;
  Bytes memory;               ///< nameplate
  Bytes usable_memory;        ///< what cudaMemGetInfo calls total; below the nameplate
  double bandwidth = 0;       ///< bytes/s
  Bytes l2;                   ///< 0 = unknown
  double pcie_bandwidth = 0;  ///< bytes/s, one direction, x16 nominal
  std::string link;           ///< "NVLink 2", "" = PCIe only
  double link_bandwidth = 0;  ///< bytes/s, per GPU, both directions together as data sheets say
  double tdp_watts = 0;
  CpuFacts cpu;        ///< of Vendor::kCpu
  std::string source;  ///< of the figures
  std::string notes;
  bool calibrated = false;  ///< a machine file carries measurements of this very GPU
  /// Those measurements (machine/calibration_data.h); null: none.
  std::shared_ptr<const Calibration> calibration;
  /// Bytes on the device outside PyTorch's allocator (context, kernels, libraries); nullopt:
  /// default.
  std::optional<Bytes> context_memory;
  double price_per_hour = 0;  ///< 0 = unknown

  [[nodiscard]] bool is_cpu() const { return vendor == Vendor::kCpu; }
  /// What the name that was typed left open and how it was settled ("v100 taken as ..."), for the
  /// report's "Assumed" line; empty when nothing was.
  std::string assumption;
};

/// The computer around the GPUs.
struct Host {
  std::string name;     ///< "this machine", or the file's
  double cores = 1;     ///< usable: min(affinity, cgroup quota); fractional quotas stay fractional
  Bytes memory;         ///< usable DRAM: min(physical, cgroup limit)
  Bytes shared_memory;  ///< size of /dev/shm
  double disk_bandwidth = 0;  ///< bytes/s sequential, 0 = unknown
  double disk_iops = 0;       ///< random reads/s, 0 = unknown
  bool is_this_machine = false;
  /// CPU speed relative to the machine that a probe ran on (1 = the same).
  double relative_core_speed = 1;
  /// Which figures were filled in rather than given or read; empty when none were.
  std::string assumption;
};

/// A host and its GPUs, all of one kind.
struct Machine {
  Gpu gpu;
  int gpu_count = 1;
  Host host;
  int nodes = 1;
  double network_bandwidth = 0;  ///< bytes/s per node, 0 = one node only
};

}  // namespace stoker
