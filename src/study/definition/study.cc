#include "study/definition/study.h"

#include <algorithm>
#include <regex>

#include "base/text.h"
#include "study/definition/template.h"

namespace stoker::study {
namespace {

bool is_name(const std::string& text) {
  const auto letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, letter);
}

Status check_axis(const Axis& axis, std::vector<std::string>& seen) {
  for (const std::string& name : axis.names) {
    if (!is_name(name))
      return fail(ErrorCode::kBadInput,
                  "\"" + name + "\" cannot name an axis: use letters, digits and _", axis.place);
    if (std::ranges::find(kOwnNames, name) != std::end(kOwnNames))
      return fail(ErrorCode::kBadInput,
                  "\"" + name +
                      "\" is a name that every trial has already; "
                      "call the axis otherwise",
                  axis.place);
    if (std::ranges::find(seen, name) != seen.end())
      return fail(ErrorCode::kBadInput, "is there twice", axis.place);
    seen.push_back(name);
  }
  if (axis.rows.empty())
    return fail(ErrorCode::kBadInput, "has no values; write " + axis.names[0] + " = [32, 64]",
                axis.place);
  for (const auto& row : axis.rows) {
    if (row.size() != axis.names.size())
      return fail(ErrorCode::kBadInput,
                  "has a row of " + std::to_string(row.size()) + " values for " +
                      std::to_string(axis.names.size()) + " names",
                  axis.place);
  }
  if (!axis.when.empty() && axis.otherwise.size() != axis.names.size())
    return fail(ErrorCode::kBadInput,
                "has a condition; say with otherwise = what holds where it is not met", axis.place);
  return {};
}

Status check_names(const std::vector<std::string>& used, std::vector<std::string> known, bool own,
                   const std::string& where) {
  if (own) known.insert(known.end(), std::begin(kOwnNames), std::end(kOwnNames));
  for (const std::string& name : used) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string all;
    for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
    const std::string near = suggestion(name, known);
    return fail(
        ErrorCode::kBadInput,
        "\"" + name + "\" is no axis of this study" + (near.empty() ? "; there are " + all : near),
        where);
  }
  return {};
}

Status check_template(const std::string& text, const std::vector<std::string>& axes,
                      const std::string& where) {
  const auto parsed = Template::parse(text);
  if (!parsed) return fail(parsed.error().code, parsed.error().message, where);
  return check_names(parsed->names(), axes, true, where);
}

Status check_expression(const std::string& text, const std::vector<std::string>& axes,
                        const std::string& where) {
  const auto parsed = Expression::parse(text);
  if (!parsed) return fail(parsed.error().code, parsed.error().message, where);
  return check_names(parsed->names(), axes, false, where);
}

Status check_metrics(const std::vector<Metric>& metrics) {
  for (const Metric& metric : metrics) {
    if (metric.pattern.empty()) continue;
    try {
      const std::regex compiled(metric.pattern);
      if (compiled.mark_count() < 1)
        return fail(ErrorCode::kBadInput, "needs a group that is the value: acc: ([0-9.]+)",
                    "metric " + metric.name);
    } catch (const std::regex_error& error) {
      return fail(ErrorCode::kBadInput,
                  "\"" + metric.pattern + "\" is no regular expression (" + error.what() + ")",
                  "metric " + metric.name);
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> axis_names(const Study& study) {
  std::vector<std::string> names;
  for (const Axis& axis : study.axes)
    names.insert(names.end(), axis.names.begin(), axis.names.end());
  return names;
}

std::vector<std::string> unused_axes(const Study& study) {
  std::vector<std::string> texts = study.command;
  for (const auto& [name, value] : study.environment) texts.push_back(value);
  const Resources& r = study.resources;
  texts.insert(texts.end(), {study.folder, r.cores, r.gpus, r.memory, r.time, r.grace, r.constraint,
                             r.image, study.slurm.constraint, study.kubernetes.image});
  for (const auto& [label, value] : study.kubernetes.node_selector) texts.push_back(value);
  std::vector<std::string> unused;
  for (const Axis& axis : study.axes) {
    if (axis.rows.size() > 1) unused.insert(unused.end(), axis.names.begin(), axis.names.end());
  }
  for (const std::string& text : texts) {
    const auto parsed = Template::parse(text);
    if (!parsed) continue;
    for (const std::string& name : parsed->names()) std::erase(unused, name);
  }
  return unused;
}

Status check_study(const Study& study) {
  if (study.command.empty() || study.command[0].empty())
    return fail(ErrorCode::kBadInput, "there is no command; put it behind --, or write command =");
  std::vector<std::string> names;
  for (const Axis& axis : study.axes) {
    TRY(check_axis(axis, names));
    // An axis may depend on those before it.
    if (!axis.when.empty()) TRY(check_expression(axis.when, names, axis.place));
  }
  for (const std::string& word : study.command) TRY(check_template(word, names, "command"));
  for (const auto& [name, value] : study.environment)
    TRY(check_template(value, names, "environment " + name));
  TRY(check_template(study.folder, names, "folder"));
  for (const std::string& text : study.conditions) TRY(check_expression(text, names, "conditions"));
  for (const std::string& text : study.exclude) TRY(check_expression(text, names, "exclude"));
  const Resources& r = study.resources;
  for (const auto& [what, text] : {std::pair{"cores", &r.cores},
                                   {"gpus", &r.gpus},
                                   {"memory", &r.memory},
                                   {"time", &r.time},
                                   {"grace", &r.grace},
                                   {"constraint", &r.constraint},
                                   {"image", &r.image}})
    TRY(check_template(*text, names, std::string("resources ") + what));
  TRY(check_template(study.slurm.constraint, names, "slurm constraint"));
  TRY(check_template(study.kubernetes.image, names, "kubernetes image"));
  for (const auto& [label, value] : study.kubernetes.node_selector)
    TRY(check_template(value, names, "kubernetes node_selector " + label));
  for (const auto& [name, value] : study.forecast)
    TRY(check_template(value, names, "forecast " + name));
  if (study.repeat < 1) return fail(ErrorCode::kBadInput, "must be 1 or more", "repeat");
  return check_metrics(study.metrics);
}

}  // namespace stoker::study
