#include "cli/verbs/study_arguments.h"

#include "base/text.h"
#include "study/definition/study_file.h"
#include "study/definition/study_words.h"

namespace stoker::cli {
namespace fs = std::filesystem;
namespace {

bool is_study_file(const std::string& name) { return name.ends_with(".toml"); }

Status add_flags(const SweepRequest& request, study::Study& study) {
  for (const std::string& typed : request.vary) study.axes.push_back(TRY(study::parse_axis(typed)));
  study.conditions.insert(study.conditions.end(), request.condition.begin(),
                          request.condition.end());
  study.exclude.insert(study.exclude.end(), request.exclude.begin(), request.exclude.end());
  for (const std::string& typed : request.metric)
    study.metrics.push_back(TRY(study::parse_metric(typed)));
  for (const std::string& typed : request.env) {
    const auto equals = typed.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::kUsage, "write NAME=VALUE", "--env " + typed);
    study.environment[typed.substr(0, equals)] = typed.substr(equals + 1);
  }
  if (!request.model.empty()) study.forecast["model"] = request.model;
  if (!request.gpu.empty()) study.forecast["gpu"] = request.gpu;
  for (const std::string& typed : request.forecast) {
    const auto equals = typed.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::kUsage, "write NAME=VALUE: --forecast epochs=3",
                  "--forecast " + typed);
    study.forecast[typed.substr(0, equals)] = typed.substr(equals + 1);
  }
  if (!study.forecast.empty() && !study.forecast.contains("model"))
    return fail(ErrorCode::kUsage, "a forecast needs --model MODEL", "--forecast");
  if (request.repeat) study.repeat = *request.repeat;
  if (request.seed) study.seed = *request.seed;
  if (!request.order.empty())
    study.order = study::order_named(request.order).value_or(study::Order::kAsWritten);
  for (const auto& [given, target] : {std::pair{&request.cores, &study.resources.cores},
                                      {&request.gpus, &study.resources.gpus},
                                      {&request.memory, &study.resources.memory},
                                      {&request.time, &study.resources.time},
                                      {&request.grace, &study.resources.grace},
                                      {&request.image, &study.resources.image}}) {
    if (!given->empty()) *target = *given;
  }
  if (request.shell) study.shell = true;
  if (request.command.empty()) return {};
  study.command = request.command;
  if (!study.shell) return {};
  std::string line;
  for (const std::string& word : request.command) line += (line.empty() ? "" : " ") + word;
  study.command = {line};
  return {};
}

/// Trials start where the user stands, also when the study is gone on with from elsewhere.
std::string absolute_folder(const std::string& folder) {
  return (fs::current_path() / folder).lexically_normal().string();
}

bool describes(const SweepRequest& r) {
  return !r.vary.empty() || !r.condition.empty() || !r.exclude.empty() || !r.metric.empty() ||
         !r.env.empty() || !r.command.empty() || r.repeat || r.seed || !r.order.empty() ||
         !r.cores.empty() || !r.gpus.empty() || !r.memory.empty() || !r.time.empty() ||
         !r.grace.empty() || !r.image.empty() || r.shell || !r.model.empty() || !r.gpu.empty() ||
         !r.forecast.empty();
}

}  // namespace

fs::path store_of(const std::string& named) {
  return is_study_file(named) ? fs::path(named).replace_extension(".db") : fs::path(named);
}

Result<SweepStudy> sweep_study(const SweepRequest& request) {
  SweepStudy result;
  if (!request.file.empty() && !is_study_file(request.file)) {
    if (describes(request))
      return fail(ErrorCode::kUsage,
                  "is a store, which says already what is to be run; a study file ends in .toml",
                  request.file);
    result.store = request.file;
    return result;
  }
  study::Study study;
  if (!request.file.empty()) study = TRY(study::read_study_file(request.file));
  TRY(add_flags(request, study));
  TRY(study::check_study(study));
  study.folder = absolute_folder(study.folder);
  result.store = !request.store.empty()  ? fs::path(request.store)
                 : !request.file.empty() ? store_of(request.file)
                                         : fs::path("study.db");
  result.study = std::move(study);
  return result;
}

}  // namespace stoker::cli
