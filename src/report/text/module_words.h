#pragma once

#include <string>
#include <vector>

#include "memory/replay/replay.h"
#include "step/step.h"

/// Internal to src/report: how modules of a step are called.
namespace stoker {

/// "layer1.0.conv1"; "(other)" for what no module holds.
[[nodiscard]] std::string module_name(const Step& step, ModuleId id);

/// The first parts of a module's name: "layer1.0.conv1" -> "layer1.0", the parts that a person
/// thinks in.
[[nodiscard]] std::string shortened(const Step& step, ModuleId id, int parts);

/// How many parts of a name to show: one more while a single group holds most of the bytes.
[[nodiscard]] int telling_parts(const Step& step, const std::vector<ModuleBytes>& modules);

}  // namespace stoker
