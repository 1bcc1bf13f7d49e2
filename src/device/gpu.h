#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "device/device_facts.h"

namespace stoker {

enum class Vendor : std::uint8_t { kNvidia, kAmd };

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

/// What the GPUs of a computer talk over, where the user says it.
enum class GpuLink : std::uint8_t { kPcie, kNvlink };

/// One GPU: one die, one device index.
struct Gpu : DeviceFacts {
  Vendor vendor = Vendor::kNvidia;
  Architecture architecture = Architecture::kOther;
  std::string chip;
  int compute_capability = 0;  ///< 70 for 7.0; 0 when the vendor has none
  int sm_count = 0;
  int fp32_cores_per_sm = 0;
  double boost_mhz = 0;
  Bytes l2;                     ///< 0 = unknown
  double pcie_bandwidth = 0;    ///< bytes/s, one direction, x16 nominal
  std::string link;             ///< "NVLink 2", "" = PCIe only
  double link_bandwidth = 0;    ///< bytes/s, per GPU, both directions together as data sheets say
  bool link_stated = false;     ///< the user's word, so that nothing of it is assumed
  bool pcie_stated = false;     ///< pcie_bandwidth is the user's word, no data sheet's
  bool figure_stated = false;   ///< link_bandwidth is the user's word, no data sheet's
  std::string bridge;           ///< "NVLink bridge", sold apart and not assumed; "": none exists
  double bridge_bandwidth = 0;  ///< as link_bandwidth
};

/// Lets the GPUs talk over what the user says. Fails where the GPU knows no such link.
[[nodiscard]] Status choose_link(Gpu& gpu, GpuLink link);

}  // namespace stoker
