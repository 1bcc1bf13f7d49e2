#pragma once

#include <string>

#include "base/units.h"
#include "device/device.h"

namespace stoker {

/// The computer around the devices.
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
  /// The processor by name, where somebody said it, and how fast a thread of it issues work to a
  /// GPU (device/host_speed.h); 0: nobody did, and the GPU's usual host stands in.
  std::string cpu;
  double dispatch_speed = 0;
  double dispatch_spread = 0;  ///< 90 % relative half-width of that figure
  std::string dispatch_basis;
  /// Which figures were filled in rather than given or read; empty when none were.
  std::string assumption;
};

/// A host and what trains in it: GPUs of one kind, or its CPU.
struct Machine {
  Device device;
  int gpu_count = 1;  ///< 1 where a CPU trains
  Host host;
  int nodes = 1;
  double network_bandwidth = 0;  ///< bytes/s per node, 0 = one node only
};

}  // namespace stoker
