#include "study/trial/trial_spec.h"

#include <fstream>

#include "json/fields.h"
#include "json/text.h"
#include "study/definition/study_words.h"
#include "study/trial/no_writing.h"

namespace stoker::study {
namespace {

using json::Value;

constexpr json::Format kSpecFormat{"stoker-trial", 1, "trial format"};
constexpr json::DocumentKind kSpecKind{"a trial's command", "start the study again", 16};
constexpr std::size_t kMostWords = 1'000'000;

}  // namespace

std::string spec_text(const TrialSpec& s) {
  Value environment = Value::array();
  for (const auto& [name, value] : s.environment)
    environment.push_back(Value::array({name, value}));
  Value metrics = Value::array();
  for (const Metric& m : s.metrics) {
    metrics.push_back({{"name", m.name},
                       {"pattern", m.pattern},
                       {"goal", name_of(m.goal)},
                       {"take", name_of(m.take)},
                       {"needed", m.needed}});
  }
  const Value root{{"format", kSpecFormat.name},
                   {"schema_version", Value::array({1, 0})},
                   {"trial", s.trial},
                   {"words", s.words},
                   {"environment", std::move(environment)},
                   {"folder", s.folder},
                   {"cores", s.cores},
                   {"cores_wanted", s.needs.cores},
                   {"gpus", s.needs.gpus},
                   {"memory_bytes", s.needs.memory_bytes},
                   {"seconds", s.needs.seconds},
                   {"grace_seconds", s.needs.grace_seconds},
                   {"metrics", std::move(metrics)},
                   {"output_bytes", s.output_bytes},
                   {"heartbeat_seconds", s.heartbeat_seconds},
                   {"checkpoints", s.checkpoints}};
  return root.dump() + "\n";
}

Status write_spec(const TrialFiles& files, const TrialSpec& spec) {
  std::ofstream file(files.spec(), std::ios::binary | std::ios::trunc);
  file << spec_text(spec);
  file.close();
  if (file) return {};
  return no_writing("written", files.spec());
}

Result<TrialSpec> parse_spec(std::string_view text, const std::string& where) {
  const Value root = TRY(json::parse_document(text, where, kSpecKind));
  json::Fields fields(where, std::string(kSpecKind.cure));
  TRY(fields.check_format(root, kSpecFormat));
  TrialSpec s;
  s.trial = fields.whole(root, "trial", "", 0, 1e15);
  for (const Value& word : fields.list(root, "words", "", kMostWords))
    s.words.push_back(word.as_string());
  if (s.words.empty()) fields.refuse("words", "is empty");
  for (const Value& pair : fields.list(root, "environment", "", kMostWords))
    s.environment.emplace_back(pair[0].as_string(), pair[1].as_string());
  s.folder = fields.maybe_text(root, "folder", "");
  for (const Value& core : fields.list(root, "cores", "", kMostWords))
    s.cores.push_back(static_cast<int>(core.as_integer()));
  s.needs.cores = static_cast<int>(fields.whole(root, "cores_wanted", "", 0, 1e6));
  s.needs.gpus = static_cast<int>(fields.whole(root, "gpus", "", 0, 1e6));
  s.needs.memory_bytes = fields.whole(root, "memory_bytes", "", 0, 9e15);
  s.needs.seconds = fields.number(root, "seconds", "", 0, 1e12);
  s.needs.grace_seconds = fields.number(root, "grace_seconds", "", 0, 1e9);
  for (const Value& m : fields.list(root, "metrics", "", kMostWords)) {
    Metric metric{m["name"].as_string(), m["pattern"].as_string()};
    metric.goal = goal_named(m["goal"].as_string()).value_or(Goal::kUnknown);
    metric.take = take_named(m["take"].as_string()).value_or(Take::kLast);
    metric.needed = m["needed"].as_bool();
    s.metrics.push_back(std::move(metric));
  }
  s.output_bytes = fields.whole(root, "output_bytes", "", 0, 9e15);
  s.heartbeat_seconds = fields.number(root, "heartbeat_seconds", "", 0.01, 1e6);
  s.checkpoints = fields.maybe_text(root, "checkpoints", "");
  TRY(fields.status());
  return s;
}

}  // namespace stoker::study
