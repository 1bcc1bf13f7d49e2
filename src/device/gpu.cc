#include "device/gpu.h"

#include "base/setting.h"

namespace stoker {

Status choose_link(Gpu& gpu, GpuLink link) {
  gpu.link_stated = true;
  if (link == GpuLink::kPcie) {
    gpu.link.clear();
    gpu.link_bandwidth = 0;
    return {};
  }
  if (!gpu.link.empty()) return {};
  if (gpu.bridge.empty()) {
    return fail(ErrorCode::kBadInput,
                "no NVLink is known of the " + gpu.name +
                    "; leave it out, or give name and gbs under [link] of a machine file",
                mark(Setting::kLink));
  }
  gpu.link = gpu.bridge;
  gpu.link_bandwidth = gpu.bridge_bandwidth;
  return {};
}

}  // namespace stoker
