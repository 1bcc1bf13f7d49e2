#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/gpu.h"

namespace stoker {

/// How fast one thread of a processor issues work to a GPU, relative to the core on which the
/// host's times were measured (data/measured/host): 2 halves them.
struct HostSpeed {
  double speed = 1;
  double spread = 0;  ///< 90 % relative half-width
  std::string cpu;    ///< "EPYC 7742", "a server of Hopper's time"
  std::string basis;  ///< where the figure comes from
  /// Share of `speed` that published rows put on top of what core and clock say; 1: no row does.
  double measured = 1;
};

/// 90 % half-width of the speed of a processor that is listed and that no row tells of: what the
/// two with rows differ by from their cores and clocks (+25 and -16 %).
inline constexpr double kListedSpread = 0.33;

/// What `stoker calibrate --device cpu` measures as forward_us on the core of data/measured/host:
/// a module's call around one element-wise operator that records its graph, microseconds.
inline constexpr double kReferenceForwardUs = 2.09;

/// Speed by a processor's name as /proc/cpuinfo or a data sheet writes it ("AMD EPYC 7742 64-Core
/// Processor", "Xeon E5-2698 v4"). A model that is not listed by itself is taken by its generation.
/// An unknown name is refused with what to do.
[[nodiscard]] Result<HostSpeed> host_speed(std::string_view cpu);

/// The host that a GPU of this kind usually sits in, for when nobody says: a server or workstation
/// of the same years.
[[nodiscard]] HostSpeed usual_host(const Gpu& gpu);

}  // namespace stoker
