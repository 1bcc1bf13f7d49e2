#include "machine/calibration_data.h"

#include "machine/machine_calibration.h"
#include "machine/ranges.h"

namespace stoker {
namespace {

/// Times from a nanosecond to an hour, as for all bounds: what a slip of the unit would exceed.
constexpr Range kMicroseconds{1e-3, 3.6e9, "us"};
constexpr Range kFloorUs{0.01, 1e4, "us", true};
constexpr Range kSpread{0, 10, "times the mean", true};

MeasuredOperator read_operator(TomlTable& table) {
  MeasuredOperator measured;
  table.text("kind", measured.kind);
  table.text("precision", measured.precision);
  table.text("pass", measured.pass);
  table.number("time_us", kMicroseconds, 1, measured.time_us);
  table.number("spread", kSpread, 1, measured.spread);
  table.boolean("warm", measured.warm);
  measured.sizes = table.other_integers();
  measured.where = table.location();
  for (const char* needed : {"kind", "time_us"}) {
    if (!table.has(needed)) table.reject("", std::string("lacks ") + needed + "; add it");
  }
  return measured;
}

}  // namespace

Result<Calibration> read_calibration(TomlTable& table) {
  Calibration calibration;
  table.number("launch_floor_us", kFloorUs, 1, calibration.launch_floor_us);
  table.number("host_dispatch_us", kFloorUs, 1, calibration.host_dispatch_us);
  table.number("pinned_gbs", range::kLinkGbs, 1, calibration.pinned_gbs);
  table.number("pageable_gbs", range::kLinkGbs, 1, calibration.pageable_gbs);
  for (TomlTable& entry : table.tables("operator")) {
    calibration.operators.push_back(read_operator(entry));
    if (auto error = entry.finish()) return tl::unexpected(std::move(*error));
  }
  if (auto error = table.finish()) return tl::unexpected(std::move(*error));
  return calibration;
}

std::string label_of(const MeasuredOperator& measured) {
  std::string text = measured.kind;
  for (const auto& [name, size] : measured.sizes) text += " " + name + "=" + std::to_string(size);
  return text + " " + measured.precision + " " + measured.pass;
}

std::string calibration_toml(const Calibration& calibration) {
  std::string out = "[calibration]\n";
  const auto number = [&](const char* key, double value) {
    if (value > 0) out += std::string(key) + " = " + shortest(value) + "\n";
  };
  const auto text = [&](const char* key, const std::string& value) {
    out += std::string(key) + " = \"" + value + "\"\n";
  };
  number("launch_floor_us", calibration.launch_floor_us);
  number("host_dispatch_us", calibration.host_dispatch_us);
  number("pinned_gbs", calibration.pinned_gbs);
  number("pageable_gbs", calibration.pageable_gbs);
  for (const MeasuredOperator& measured : calibration.operators) {
    out += "\n[[calibration.operator]]\n";
    text("kind", measured.kind);
    for (const auto& [name, size] : measured.sizes)
      out += name + " = " + std::to_string(size) + "\n";
    text("precision", measured.precision);
    text("pass", measured.pass);
    number("time_us", measured.time_us);
    number("spread", measured.spread);
    out += std::string("warm = ") + (measured.warm ? "true" : "false") + "\n";
  }
  return out;
}

}  // namespace stoker
