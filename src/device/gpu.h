#pragma once

#include <cstdint>
#include <string>

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

/// One GPU: one die, one device index.
struct Gpu : DeviceFacts {
  Vendor vendor = Vendor::kNvidia;
  Architecture architecture = Architecture::kOther;
  std::string chip;
  int compute_capability = 0;  ///< 70 for 7.0; 0 when the vendor has none
  int sm_count = 0;
  int fp32_cores_per_sm = 0;
  double boost_mhz = 0;
  Bytes l2;                   ///< 0 = unknown
  double pcie_bandwidth = 0;  ///< bytes/s, one direction, x16 nominal
  std::string link;           ///< "NVLink 2", "" = PCIe only
  double link_bandwidth = 0;  ///< bytes/s, per GPU, both directions together as data sheets say
};

}  // namespace stoker
