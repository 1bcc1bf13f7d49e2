#include "evidence/calibration/measured_device.h"

#include <cmath>

#include "json/fields.h"

namespace stoker {
namespace {

using Json = json::Value;

/// "8.0", 8.0 or [8, 0].
int capability_of(const json::Value& device) {
  const Json* found = device.find("compute_capability");
  if (found == nullptr) return 0;
  double value = 0;
  if (found->is_number()) value = found->as_double();
  if (found->is_string()) value = std::atof(found->as_string().c_str());
  if (found->is_array() && found->size() == 2 && (*found)[0].is_number() && (*found)[1].is_number())
    value = (*found)[0].as_double() + (*found)[1].as_double() / 10;
  return value >= 1 && value < 100 ? static_cast<int>(std::lround(value * 10)) : 0;
}

}  // namespace

MeasuredDevice read_measured_device(json::Fields& fields, const json::Value& root) {
  const std::string path = "device.";
  const auto& json = fields.object(root, "device", "");
  MeasuredDevice device;
  const std::string kind = fields.text(json, "kind", path);
  if (kind != "cpu" && kind != "cuda") fields.refuse("device.kind", "is neither cpu nor cuda");
  device.cpu = kind == "cpu";
  device.name = fields.text(json, "name", path);
  constexpr double kMostCores = 65536, kMostBits = 4096, kMostMhz = 1e5;
  const auto integer = [&](const char* key, double most) {
    return static_cast<int>(fields.otherwise(json, key, path, 0, most, 0));
  };
  device.cores = integer(device.cpu ? "cores" : "sm_count", kMostCores);
  device.simd_bits = integer("simd_bits", kMostBits);
  device.clock_mhz = fields.otherwise(json, "clock_mhz", path, 0, kMostMhz, 0);
  const auto size = [&](const char* key) {
    return fields.bytes(json, key, path).value_or(Bytes{});
  };
  device.l1 = size("l1_bytes");
  device.l2 = size("l2_bytes");
  device.l3 = size("l3_bytes");
  device.memory = size("memory_bytes");
  device.usable = size("usable_bytes");
  device.context = size("context_bytes");
  if (json.is_object()) {
    device.compute_capability = capability_of(json);
    const Json* mig = json.find("mig");
    device.mig = mig != nullptr && mig->is_bool() && mig->as_bool();
  }
  return device;
}

}  // namespace stoker
