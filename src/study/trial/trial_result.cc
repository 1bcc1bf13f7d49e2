#include "study/trial/trial_result.h"

#include "json/fields.h"
#include "json/text.h"

namespace stoker::study {
namespace {

using json::Value;

constexpr json::Format kFormat{"stoker-trial-result", 1, "trial result format"};
constexpr json::DocumentKind kKind{"a trial's result", "the trial counts as lost", 16};
constexpr double kMostSeconds = 1e13;
constexpr double kLargest = 1e308;

Value points_json(const std::vector<MetricPoint>& points) {
  Value list = Value::array();
  for (const MetricPoint& p : points) {
    list.push_back({{"metric", p.metric},
                    {"step", json::or_null(p.step)},
                    {"seconds", p.seconds},
                    {"value", p.value}});
  }
  return list;
}

std::map<std::string, double> numbers(json::Fields& fields, const Value& root, const char* key) {
  std::map<std::string, double> all;
  for (const auto& [name, value] : fields.maybe_object(root, key, "").items())
    all[name] = fields.checked(value, std::string(key) + "." + name, -kLargest, kLargest);
  return all;
}

std::optional<std::int64_t> maybe_whole(json::Fields& fields, const Value& root, const char* key) {
  const auto value = fields.maybe(root, key, "", -1e9, 1e9);
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

}  // namespace

std::string result_text(const TrialResult& r) {
  const Value root{{"format", kFormat.name},
                   {"schema_version", Value::array({1, 0})},
                   {"state", name_of(r.state)},
                   {"cause", r.cause},
                   {"reason", r.reason},
                   {"exit_code", json::or_null(r.exit_code)},
                   {"signal", json::or_null(r.signal)},
                   {"started", r.started},
                   {"ended", r.ended},
                   {"wall_s", r.wall_s},
                   {"host", r.host},
                   {"metrics", r.metrics},
                   {"resources", r.resources},
                   {"points", points_json(r.points)},
                   {"tail", r.tail}};
  return root.dump() + "\n";
}

Result<TrialResult> parse_result(std::string_view text, const std::string& where) {
  const Value root = TRY(json::parse_document(text, where, kKind));
  json::Fields fields(where, std::string(kKind.cure));
  TRY(fields.check_format(root, kFormat));
  TrialResult r;
  const std::string state = fields.text(root, "state", "");
  const auto found = state_named(state);
  if (!found || !is_final(*found)) fields.refuse("state", "is no state in which a trial ends");
  r.state = found.value_or(TrialState::kFailed);
  r.cause = fields.maybe_text(root, "cause", "");
  r.reason = fields.maybe_text(root, "reason", "");
  r.exit_code = maybe_whole(fields, root, "exit_code");
  r.signal = maybe_whole(fields, root, "signal");
  r.started = fields.number(root, "started", "", 0, kMostSeconds);
  r.ended = fields.number(root, "ended", "", 0, kMostSeconds);
  r.wall_s = fields.number(root, "wall_s", "", 0, kMostSeconds);
  r.host = fields.maybe_text(root, "host", "");
  r.metrics = numbers(fields, root, "metrics");
  r.resources = numbers(fields, root, "resources");
  for (const Value& p : fields.maybe_list(root, "points", "", 1'000'000)) {
    r.points.push_back({fields.text(p, "metric", "points."),
                        fields.maybe(p, "step", "points.", -kLargest, kLargest),
                        fields.number(p, "seconds", "points.", 0, kMostSeconds),
                        fields.number(p, "value", "points.", -kLargest, kLargest)});
  }
  r.tail = fields.maybe_text(root, "tail", "");
  TRY(fields.status());
  return r;
}

}  // namespace stoker::study
