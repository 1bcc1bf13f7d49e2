#include "study/definition/study_json.h"

#include <array>
#include <map>

#include "json/fields.h"
#include "study/definition/study_words.h"
#include "study/definition/template.h"

namespace stoker::study {
namespace {

using json::Value;

constexpr std::size_t kMostEntries = 1'000'000;

Value axis_json(const Axis& axis) {
  Value rows = Value::array();
  for (const auto& row : axis.rows) rows.push_back(Value(row));
  return {{"names", axis.names},
          {"rows", std::move(rows)},
          {"when", axis.when},
          {"otherwise", axis.otherwise}};
}

Value metric_json(const Metric& metric) {
  return {{"name", metric.name},
          {"pattern", metric.pattern},
          {"goal", name_of(metric.goal)},
          {"take", name_of(metric.take)},
          {"needed", metric.needed}};
}

template <class T, class Write>
Value list_of(const std::vector<T>& all, const Write& write) {
  Value list = Value::array();
  for (const T& one : all) list.push_back(write(one));
  return list;
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> all;
  for (const Value& one : list) all.push_back(one.as_string());
  return all;
}

Axis axis_from(const Value& value) {
  Axis axis;
  axis.names = texts(value["names"]);
  for (const Value& row : value["rows"]) axis.rows.push_back(texts(row));
  axis.when = value["when"].as_string();
  axis.otherwise = texts(value["otherwise"]);
  if (!axis.names.empty()) axis.place = "axis " + axis.names[0];
  return axis;
}

Metric metric_from(const Value& value) {
  Metric metric{value["name"].as_string(), value["pattern"].as_string()};
  metric.goal = goal_named(value["goal"].as_string()).value_or(Goal::kUnknown);
  metric.take = take_named(value["take"].as_string()).value_or(Take::kLast);
  metric.needed = value.value("needed", true);
  return metric;
}

/// Texts of the options by their keys in files.
template <class Options>
auto kubernetes_texts(Options& k) {
  return std::array{std::pair{"context", &k.context},
                    std::pair{"namespace", &k.name_space},
                    std::pair{"image", &k.image},
                    std::pair{"service_account", &k.service_account},
                    std::pair{"pull_secret", &k.pull_secret},
                    std::pair{"claim", &k.claim},
                    std::pair{"mount", &k.mount},
                    std::pair{"here", &k.here},
                    std::pair{"folder", &k.folder},
                    std::pair{"program", &k.program},
                    std::pair{"gpu_resource", &k.gpu_resource},
                    std::pair{"prologue", &k.prologue}};
}

Value kubernetes_json(const KubernetesOptions& k) {
  Value root = Value::object();
  for (const auto& [key, text] : kubernetes_texts(k)) root.append(key, *text);
  root.append("node_selector", k.node_selector);
  root.append("tolerate", k.tolerate);
  root.append("keep_seconds", k.keep_seconds);
  return root;
}

/// A store that was written before there was any has the defaults.
KubernetesOptions kubernetes_from(const Value& root) {
  KubernetesOptions k;
  if (!root.is_object()) return k;
  for (const auto& [key, text] : kubernetes_texts(k)) *text = root[key].as_string();
  for (const auto& [label, value] : root["node_selector"].items())
    k.node_selector[label] = value.as_string();
  k.tolerate = texts(root["tolerate"]);
  k.keep_seconds = root["keep_seconds"].as_double();
  return k;
}

std::string shortened(std::string text) {
  constexpr std::size_t kMost = 160;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

/// A value as people write it: lists with commas, values that vary together with colons.
std::string words_of(const Value& value, const char* between = ", ") {
  if (value.is_string()) return value.as_string();
  if (value.kind() != Value::Kind::kArray) return value.is_null() ? "" : value.dump();
  std::string text;
  for (const Value& one : value) text += (text.empty() ? "" : between) + words_of(one, ":");
  return text;
}

using Entries = std::map<std::string, std::string>;

Entries words_by_name(const Value& object) {
  Entries all;
  for (const auto& [name, value] : object.items()) all[name] = words_of(value);
  return all;
}

/// Axes or metrics by their names, each with all that is said of it.
Entries by_name(const Value& list) {
  Entries all;
  for (const Value& one : list) {
    std::string text;
    for (const auto& [key, value] : one.items()) {
      const std::string words = words_of(value);
      if (key == "name" || key == "names" || key == "needed" || words.empty()) continue;
      text += (text.empty() ? "" : "; ") + (key == "rows" ? "" : key + " ") + words;
    }
    all[words_of(one.contains("names") ? one["names"] : one["name"], ",")] = text;
  }
  return all;
}

/// A line for each entry that is not the same on both sides.
void compare(const std::string& what, const Entries& before, const Entries& after,
             std::vector<std::string>& lines) {
  Entries all = before;
  all.insert(after.begin(), after.end());
  const auto said = [](const Entries& side, const std::string& name) {
    const auto found = side.find(name);
    if (found == side.end() || found->second.empty()) return std::string("none");
    return shortened(found->second);
  };
  for (const auto& [name, words] : all) {
    const auto one = before.find(name), other = after.find(name);
    if (one != before.end() && other != after.end() && one->second == other->second) continue;
    lines.push_back(what + name + ": " + said(before, name) + " there, " + said(after, name) +
                    " asked for");
  }
}

}  // namespace

Value study_json(const Study& s) {
  const Resources& r = s.resources;
  const Budget& b = s.budget;
  return {{"name", s.name},
          {"command", s.command},
          {"shell", s.shell},
          {"environment", s.environment},
          {"folder", s.folder},
          {"axes", list_of(s.axes, axis_json)},
          {"conditions", s.conditions},
          {"exclude", s.exclude},
          {"repeat", s.repeat},
          {"seed", s.seed},
          {"metrics", list_of(s.metrics, metric_json)},
          {"resources",
           {{"cores", r.cores},
            {"gpus", r.gpus},
            {"memory", r.memory},
            {"time", r.time},
            {"grace", r.grace},
            {"constraint", r.constraint},
            {"image", r.image}}},
          {"order", name_of(s.order)},
          {"budget",
           {{"failures", b.failures},
            {"seconds", b.seconds},
            {"gpu_hours", b.gpu_hours},
            {"money", b.money},
            {"price_of_gpu_hour", b.price_of_gpu_hour}}},
          {"slurm",
           {{"partition", s.slurm.partition},
            {"account", s.slurm.account},
            {"constraint", s.slurm.constraint},
            {"qos", s.slurm.qos},
            {"options", s.slurm.options},
            {"prologue", s.slurm.prologue}}},
          {"kubernetes", kubernetes_json(s.kubernetes)},
          {"forecast", s.forecast},
          {"output_bytes", s.output_bytes}};
}

Result<Study> study_from_json(const Value& root, const std::string& where) {
  json::Fields fields(where, "the study's file is damaged");
  Study s;
  s.name = fields.maybe_text(root, "name", "");
  s.command = texts(fields.list(root, "command", "", kMostEntries));
  s.shell = fields.flag(root, "shell", "");
  for (const auto& [name, value] : fields.object(root, "environment", "").items())
    s.environment[name] = value.as_string();
  s.folder = fields.maybe_text(root, "folder", "");
  for (const Value& axis : fields.list(root, "axes", "", kMostEntries))
    s.axes.push_back(axis_from(axis));
  s.conditions = texts(fields.list(root, "conditions", "", kMostEntries));
  s.exclude = texts(fields.list(root, "exclude", "", kMostEntries));
  s.repeat = fields.whole(root, "repeat", "", 1, 1e9);
  s.seed = fields.whole(root, "seed", "", -9e15, 9e15);
  for (const Value& metric : fields.list(root, "metrics", "", kMostEntries))
    s.metrics.push_back(metric_from(metric));
  const Value& r = fields.object(root, "resources", "");
  s.resources = {r["cores"].as_string(), r["gpus"].as_string(),  r["memory"].as_string(),
                 r["time"].as_string(),  r["grace"].as_string(), r["constraint"].as_string(),
                 r["image"].as_string()};
  s.order = order_named(fields.text(root, "order", "")).value_or(Order::kAsWritten);
  const Value& b = fields.object(root, "budget", "");
  s.budget = {b["failures"].as_integer(), b["seconds"].as_double(), b["gpu_hours"].as_double(),
              b["money"].as_double(), b["price_of_gpu_hour"].as_double()};
  const Value& l = fields.object(root, "slurm", "");
  s.slurm = {l["partition"].as_string(), l["account"].as_string(), l["constraint"].as_string(),
             l["qos"].as_string(),       texts(l["options"]),      l["prologue"].as_string()};
  s.kubernetes = kubernetes_from(root["kubernetes"]);
  for (const auto& [name, value] : fields.maybe_object(root, "forecast", "").items())
    s.forecast[name] = value.as_string();
  s.output_bytes = fields.whole(root, "output_bytes", "", 0, 9e15);
  TRY(fields.status());
  return s;
}

std::vector<std::string> differences(const Study& stored, const Study& asked) {
  const Value before = study_json(stored), after = study_json(asked);
  std::vector<std::string> lines;
  for (const auto& [key, value] : before.items()) {
    if (value == after[key]) continue;
    const std::size_t had = lines.size();
    if (key == "axes") {
      compare("axis ", by_name(value), by_name(after[key]), lines);
    } else if (key == "metrics") {
      compare("metric ", by_name(value), by_name(after[key]), lines);
    } else if (key == "command") {
      compare("", {{"command", shell_line(stored.command)}},
              {{"command", shell_line(asked.command)}}, lines);
    } else if (value.kind() == Value::Kind::kObject) {
      compare(key + " ", words_by_name(value), words_by_name(after[key]), lines);
    } else {
      compare("", {{key, words_of(value)}}, {{key, words_of(after[key])}}, lines);
    }
    if (lines.size() == had) lines.push_back(key + ": in another order");
  }
  return lines;
}

}  // namespace stoker::study
