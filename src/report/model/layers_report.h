#pragma once

#include <string>

#include "forecast/time/layers.h"
#include "report/model/report.h"

namespace stoker {

/// A network's layers, each as a network of its own, their sum, the step, and what lies between.
/// Layers that cost the same share a line; of long models the dearest lines are shown.
[[nodiscard]] std::string layers_text(const LayerSum& layers, const ReportContext& context);
/// `by_layer` of docs/reference/json.md, all layers.
[[nodiscard]] std::string layers_json(const LayerSum& layers, const ReportContext& context);

}  // namespace stoker
