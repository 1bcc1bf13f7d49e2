#include "tune/curve/energy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stoker::tune {
namespace {

struct Unit {
  double joules;
  const char* name;
};
constexpr Unit kUnits[] = {{1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}};

Unit unit_of(double joules) {
  const auto* const found =
      std::ranges::find_if(kUnits, [&](const Unit& u) { return std::fabs(joules) >= u.joules; });
  return found == std::end(kUnits) ? kUnits[std::size(kUnits) - 1] : *found;
}

}  // namespace

std::string joules_text(double joules) {
  const Unit unit = unit_of(joules);
  return fmt::format("{:.3g} {}", joules / unit.joules, unit.name);
}

std::string Power::text() const {
  const std::string of = limit > 0 ? fmt::format(" of {:.4g} W", limit) : "";
  return measured
             ? fmt::format("{:.3g} W{}, measured", watts, of)
             : fmt::format("about {:.3g} W [{:.3g}-{:.3g}]{}, estimated", watts, low, high, of);
}

std::optional<Power> measured_power(const std::map<std::string, double>& resources) {
  // The mean of the steady part: while Python starts and data is read a board draws little.
  for (const char* name : {"gpu_watts_steady", "gpu_watts"}) {
    const auto found = resources.find(name);
    if (found == resources.end() || !(found->second > 0)) continue;
    const auto limit = resources.find("gpu_power_limit_w");
    return Power{found->second, found->second, found->second,
                 limit == resources.end() ? 0 : limit->second, true};
  }
  return std::nullopt;
}

std::string Joules::text() const {
  const Unit unit = unit_of(value);
  if (low == high) return joules_text(value);
  return fmt::format("{:.3g} {} [{:.3g}-{:.3g}]", value / unit.joules, unit.name, low / unit.joules,
                     high / unit.joules);
}

Joules energy_of(const Power& power, double seconds) {
  return {power.watts * seconds, power.low * seconds, power.high * seconds};
}

Joules cost_of(const Power& power, double seconds, double weight) {
  const Joules energy = energy_of(power, seconds);
  if (power.limit <= 0) return energy;
  const double time = (1 - weight) * power.limit * seconds;
  return {weight * energy.value + time, weight * energy.low + time, weight * energy.high + time};
}

}  // namespace stoker::tune
