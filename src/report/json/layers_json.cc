
#include "json/value.h"
#include "report/json/json_parts.h"
#include "report/model/layers_report.h"

namespace stoker {
namespace {

Json group_object(const LayerGroup& group, const Step& step) {
  Json modules = Json::array();
  for (const ModuleId module : group.modules) modules.push_back(step.module_names[index(module)]);
  return {{"name", name_of(group, step)},
          {"modules", std::move(modules)},
          {"forward_ms", milliseconds(group.forward)},
          {"loss_ms", milliseconds(group.loss)},
          {"backward_ms", milliseconds(group.backward)},
          {"update_ms", milliseconds(group.update)},
          {"overhead_ms", milliseconds(group.overhead)},
          {"alone_ms", milliseconds(group.alone)}};
}

}  // namespace

std::string layers_json(const LayerSum& layers, const ReportContext& context) {
  Json groups = Json::array();
  for (const LayerGroup& group : layers.groups)
    groups.push_back(group_object(group, *context.step));
  Json terms;
  for (std::size_t i = 0; i < kLayerTerms; ++i)
    terms[std::string(name_of(static_cast<LayerTerm>(i))) + "_ms"] = milliseconds(layers.terms[i]);
  Json json = envelope(context);
  json["by_layer"] = {{"layers", layers.layers},
                      {"groups", std::move(groups)},
                      {"sum_ms", milliseconds(layers.sum)},
                      {"terms", std::move(terms)},
                      {"step_ms", figure_object(with_band(milliseconds(layers.step.total),
                                                          layers.step.band, layers.step.basis))},
                      {"factor", layers.factor()}};
  return answer_text(json);
}

}  // namespace stoker
