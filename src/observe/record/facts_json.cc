#include "observe/record/facts_json.h"

#include <algorithm>

#include "json/text.h"
#include "json/value.h"
#include "observe/proc/proc_text.h"

namespace stoker::record {
namespace {

constexpr int kDepth = 4;
/// No machine has more.
constexpr double kMostCores = 1e6;

std::vector<std::string> texts_of(const json::Value& list) {
  std::vector<std::string> texts;
  for (const json::Value& one : list) texts.push_back(proc::command_of(one.as_string()));
  return texts;
}

/// Text of a file may reach a terminal: it is cleaned as command lines are.
std::string clean(const json::Value& value) { return proc::command_of(value.as_string()); }

ProcessFacts process_of(const json::Value& value) {
  ProcessFacts p;
  p.serial = static_cast<std::uint32_t>(value.value("serial", 0L));
  p.pid = value.value("pid", 0L);
  p.parent = static_cast<std::uint32_t>(value.value("parent", 0L));
  p.owner = static_cast<std::uint32_t>(value.value("owner", 0L));
  p.rank = value.value("rank", -1L);
  p.started_ns = value.value("started_ns", 0L);
  p.python = value.value("python", false);
  p.name = clean(value["name"]);
  p.command = clean(value["command"]);
  for (const ProcessRole role : {ProcessRole::kTraining, ProcessRole::kWorker,
                                 ProcessRole::kLauncher, ProcessRole::kHelper}) {
    if (value["role"].as_string() == name_of(role)) p.role = role;
  }
  return p;
}

}  // namespace

std::string to_json(const WatchFacts& f) {
  const json::Value value{{"unix_ns", f.unix_ns},
                          {"sample_ns", f.sample_ns},
                          {"cores", f.cores},
                          {"processors", f.processors},
                          {"quota", f.quota},
                          {"memory", f.memory},
                          {"processor", f.processor},
                          {"kernel", f.kernel},
                          {"gpus", f.gpus},
                          {"hidden", f.hidden},
                          {"started_here", f.started_here}};
  return value.dump();
}

std::optional<WatchFacts> facts_from_json(std::string_view text) {
  const auto value = json::parse(text, kDepth);
  if (!value) return std::nullopt;
  WatchFacts f;
  f.unix_ns = value->value("unix_ns", 0L);
  f.sample_ns = value->value("sample_ns", 0L);
  f.cores = std::clamp(value->value("cores", 0.0), 0.0, kMostCores);
  f.processors = std::clamp(value->value("processors", 0L), 0L, static_cast<long>(kMostCores));
  f.quota = std::clamp(value->value("quota", 0.0), 0.0, kMostCores);
  f.memory = value->value("memory", 0L);
  f.processor = clean((*value)["processor"]);
  f.kernel = clean((*value)["kernel"]);
  f.gpus = texts_of((*value)["gpus"]);
  f.hidden = texts_of((*value)["hidden"]);
  f.started_here = value->value("started_here", false);
  return f;
}

std::string to_json(const std::vector<ProcessFacts>& processes) {
  json::Value list = json::Value::array();
  for (const ProcessFacts& p : processes) {
    list.push_back({{"serial", std::int64_t{p.serial}},
                    {"pid", p.pid},
                    {"parent", std::int64_t{p.parent}},
                    {"owner", std::int64_t{p.owner}},
                    {"role", name_of(p.role)},
                    {"rank", p.rank},
                    {"started_ns", p.started_ns},
                    {"python", p.python},
                    {"name", p.name},
                    {"command", p.command}});
  }
  return list.dump();
}

std::optional<std::vector<ProcessFacts>> processes_from_json(std::string_view text) {
  const auto value = json::parse(text, kDepth);
  if (!value || !value->is_array()) return std::nullopt;
  std::vector<ProcessFacts> processes;
  for (const json::Value& one : *value) processes.push_back(process_of(one));
  return processes;
}

}  // namespace stoker::record
