#include "cli/verbs/tune_sampler.h"

#include <map>
#include <optional>
#include <system_error>

#include "base/files.h"
#include "cli/outside/python.h"
#include "json/text.h"
#include "json/value.h"

namespace stoker::cli {
namespace {

constexpr Bytes kLargestAnswer{1 << 20};

json::Value space_json(const std::vector<tune::Dimension>& space) {
  json::Value all = json::Value::array();
  for (const tune::Dimension& d : space) {
    json::Value one = {{"name", d.name}};
    if (d.continuous()) {
      one["low"] = d.low;
      one["high"] = d.high;
    } else {
      one["values"] = d.values;
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// The latest score of each configuration that is known, in their order.
json::Value known_json(const tune::History& history) {
  json::Value all = json::Value::array();
  std::map<std::int64_t, const tune::Outcome*> latest;
  std::map<std::int64_t, const tune::Request*> asked;
  for (std::size_t i = 0; i < history.jobs.size(); ++i) {
    const tune::Request& request = history.jobs[i].request;
    asked.emplace(request.config, &request);
    if (const tune::Outcome* outcome = history.outcome(i)) latest[request.config] = outcome;
  }
  for (const auto& [config, request] : asked) {
    const auto found = latest.find(config);
    const auto score = found == latest.end() ? std::optional<double>() : found->second->best();
    all.push_back({{"values", request->values},
                   {"score", json::or_null(score)},
                   {"step", found == latest.end() ? 0.0 : found->second->curve.last_step()},
                   {"ended", found != latest.end()}});
  }
  return all;
}

}  // namespace

std::function<Result<std::vector<std::string>>(const tune::History&, std::int64_t)> python_sampler(
    const tune::SearchOptions& search, const std::string& sampler,
    const std::filesystem::path& store) {
  return [=](const tune::History& history, std::int64_t index) -> Result<std::vector<std::string>> {
    const std::string question = store.string() + ".question", answer = store.string() + ".answer";
    const json::Value asked = {{"sampler", sampler},
                               {"seed", search.seed},
                               {"index", index},
                               {"space", space_json(search.space)},
                               {"known", known_json(history)}};
    TRY(write_file(question, asked.dump()));
    const int code = TRY(run_python_stoker({"tune-sample", question, answer}, true));
    const auto text = read_file(answer, kLargestAnswer);
    std::error_code ignored;
    std::filesystem::remove(question, ignored);
    std::filesystem::remove(answer, ignored);
    if (code != 0 || !text)
      return fail(ErrorCode::kUnsupported,
                  sampler +
                      " needs Optuna in the Python that stoker uses (pip install optuna; "
                      "STOKER_PYTHON names another); --sampler random needs nothing",
                  "--sampler");
    std::vector<std::string> values;
    const auto parsed = json::parse(*text);
    if (parsed) {
      for (const json::Value& value : *parsed) values.push_back(value.as_string());
    }
    if (values.size() != search.space.size())
      return fail(ErrorCode::kBadInput, "Optuna's answer is none", "--sampler");
    return values;
  };
}

}  // namespace stoker::cli
