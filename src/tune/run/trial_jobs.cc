#include "tune/run/trial_jobs.h"

#include <algorithm>

#include "base/ranges.h"
#include "base/saturating.h"
#include "study/definition/values.h"

namespace stoker::tune {
namespace {

constexpr std::size_t kOwnCount = std::size(kOwnAxes);
constexpr std::string_view kBefell[] = {"lost", "node_failure", "preempted", "evicted"};

std::string for_template(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c;
    if (c == '{' || c == '}') escaped += c;
  }
  return escaped;
}

double number(const std::string& text) { return study::as_number(text).value_or(0); }

}  // namespace

std::vector<study::Axis> own_axes() {
  return {{{"stage"}, {{"search"}}, {}, {}, "stage"},
          {{"config"}, {{"1"}}, {}, {}, "config"},
          {{"share"}, {{"1"}}, {}, {}, "share"},
          {{"steps"}, {{"0"}}, {}, {}, "steps"}};
}

void add_environment(study::Study& study, const std::string& checkpoints,
                     const std::string& metric) {
  study.environment["STOKER_CHECKPOINT_DIR"] = for_template(checkpoints) + "/{config}";
  study.environment["STOKER_SHARE"] = "{share}";
  study.environment["STOKER_LAST_STEP"] = "{steps}";
  study.environment["STOKER_METRIC"] = for_template(metric);
}

study::TrialValues trial_of(const Request& request, std::int64_t number) {
  study::TrialValues trial;
  trial.values = request.values;
  trial.values.push_back(request.stage);
  trial.values.push_back(std::to_string(request.config > 0 ? request.config : number));
  trial.values.push_back(shortest(request.share));
  trial.values.push_back(shortest(request.last_step));
  trial.seed = request.seed;
  return trial;
}

Request request_of(const study::TrialValues& trial, std::int64_t trial_number) {
  Request request;
  const auto& values = trial.values;
  if (values.size() < kOwnCount) return request;
  const std::size_t own = values.size() - kOwnCount;
  request.values.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(own));
  request.stage = values[own];
  request.config = saturating_whole(number(values[own + 1]));
  // A search that gave it no number meant one of its own.
  if (request.stage != "search" && request.config == trial_number) request.config = 0;
  request.share = number(values[own + 2]);
  request.last_step = number(values[own + 3]);
  request.seed = trial.seed;
  return request;
}

bool is_lost(const study::TrialRow& row) {
  return std::ranges::find(kBefell, row.cause) != std::end(kBefell);
}

bool found_disk_full(const study::TrialRow& row) {
  return row.cause == "disk_full" || row.resources.contains("disk_full");
}

bool was_interrupted(const study::TrialRow& row) {
  if (row.state == study::TrialState::kCancelled) return true;
  if (row.cause == "stopped" && row.reason.starts_with(kBudgetReason)) return true;
  return is_lost(row) || found_disk_full(row);
}

}  // namespace stoker::tune
