
#include "json/value.h"
#include "plan/comparison.h"
#include "report/json/json_parts.h"
#include "report/model/report.h"

namespace stoker {
namespace {

void add_standing(Objective objective, const Standing& s, const Forecast& f, Json& one) {
  one["objective"] = figure_object(objective_figure(objective, f));
  one["place"] = s.first == 0 ? Json() : Json{{"first", s.first}, {"last", s.last}};
}

}  // namespace

std::string contenders_json(const std::vector<Contender>& contenders, Objective objective,
                            const ReportContext& context) {
  std::vector<const Forecast*> forecasts;
  for (const Contender& c : contenders) forecasts.push_back(&c.forecast);
  Json json = envelope(context);
  json["objective"] = name_of(objective);
  Json list = Json::array();
  for (const Standing& s : rank(objective, forecasts)) {
    const Contender& c = contenders[s.index];
    Json one = forecast_object(c.forecast, c.limits);
    add_standing(objective, s, c.forecast, one);
    one["rows"] = c.rows;
    list.push_back(std::move(one));
  }
  json["gpus"] = std::move(list);
  return answer_text(json);
}

std::string comparison_json(const std::vector<std::pair<std::string, Plan>>& plans,
                            Objective objective, const ReportContext& context) {
  std::vector<const Forecast*> forecasts;
  for (const auto& [name, plan] : plans) forecasts.push_back(&plan.best.forecast);
  Json json = envelope(context);
  json["objective"] = name_of(objective);
  Json list = Json::array();
  for (const Standing& s : rank(objective, forecasts)) {
    const Plan& plan = plans[s.index].second;
    Json one = forecast_object(plan.best.forecast, plan.best.batch_limits);
    add_standing(objective, s, plan.best.forecast, one);
    one["plan"] = plan_object(plan);
    list.push_back(std::move(one));
  }
  json["gpus"] = std::move(list);
  return answer_text(json);
}

}  // namespace stoker
