#include "json/value.h"
#include "report/json/json_parts.h"
#include "report/model/settings_table.h"

namespace stoker {

std::string settings_table_json(const std::vector<SettingsAnswer>& answers,
                                const ReportContext& context) {
  Json json = envelope(context);
  Json list = Json::array();
  for (const SettingsAnswer& a : answers) {
    Json one = Json::object();
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) one[name] = value;
    };
    add("batch", a.batch);
    add("seq_len", a.seq_len);
    add("precision", a.precision);
    one["forecast"] = a.forecast ? forecast_object(*a.forecast, a.limits) : Json();
    add("refused", a.refused);
    list.push_back(std::move(one));
  }
  json["table"] = std::move(list);
  return answer_text(json);
}

}  // namespace stoker
