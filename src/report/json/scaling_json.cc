
#include "json/value.h"
#include "report/json/json_parts.h"
#include "report/model/scaling_report.h"

namespace stoker {
namespace {

Json point_object(const ScalingPoint& p) {
  Json json{{"gpus", p.gpus},
            {"nodes", p.nodes},
            {"batch", p.batch},
            {"accumulate", p.accumulate},
            {"possible", p.impossible.empty()}};
  if (!p.impossible.empty()) {
    json["impossible"] = p.impossible;
    return json;
  }
  json["verdict"] = name_of(p.verdict);
  json["fits"] = p.fits;
  json["step_ms"] = figure_object(p.step_ms);
  json["throughput_samples_per_s"] = figure_object(p.samples_per_s);
  json["efficiency"] = p.efficiency;
  json["marginal"] = p.marginal;
  json["communication_ms"] = p.communication_ms;
  json["exposed_communication_ms"] = p.exposed_communication_ms;
  json["largest_loss"] = p.loss;
  return json;
}

}  // namespace

std::string scaling_json(const Scaling& s, const ReportContext& context) {
  Json json = envelope(context);
  Json points = Json::array();
  for (const ScalingPoint& p : s.points) points.push_back(point_object(p));
  Json alternatives = Json::array();
  for (const ScalingAlternative& a : s.alternatives)
    alternatives.push_back({{"parallel", name_of(a.parallel)},
                            {"step_ms", figure_object(a.step_ms)},
                            {"fits", a.fits}});
  json["scaling"] = {{"mode", s.strong ? "strong" : "weak"},
                     {"samples_per_gpu_step", s.global_batch},
                     {"pays_up_to", s.pays_up_to},
                     {"stops_at", s.stops_at > 0 ? Json(s.stops_at) : Json(nullptr)},
                     {"why", s.why},
                     {"least_marginal", kLeastMarginal},
                     {"measured_over_forecast_step", s.pace},
                     {"one_gpu",
                      {{"step_ms", figure_object(s.one_gpu_step_ms)},
                       {"throughput_samples_per_s", figure_object(s.one_gpu_samples_per_s)}}},
                     {"points", std::move(points)},
                     {"alternatives", std::move(alternatives)}};
  return answer_text(json);
}

}  // namespace stoker
