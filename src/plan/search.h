#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lower/loop/lower.h"
#include "plan/loader_search.h"
#include "plan/plan.h"

namespace stoker {

/// Differences between two settings of the same model on the same machine share their errors, so
/// they are known far better than either speed: below this share two settings count as equal, and
/// the smaller batch, the fewer GPUs win (of loaders: plan/loader_search.h).
inline constexpr double kSameSpeed = 0.02;
/// Another GPU changes the input's sharing of the host too, so its gain is known less well; and it
/// costs.
inline constexpr double kGpuMustBring = 0.10;

/// One fully decided setting and its throughput.
struct TriedSetting {
  Scenario scenario;
  StepTime time;
  Throughput throughput;
  BatchLimits limits;
  BatchReason reason;
  /// The fastest loader that the host's memory forbade, and why.
  struct {
    double samples_per_s = 0;
    std::string shortage;
  } beyond_host;
};

/// Searches batch and loader of one precision and one number of GPUs. Keeps what does not change
/// between calls (batch limits), so one object serves a whole plan.
class SettingSearch {
 public:
  SettingSearch(const PlanRequest& request, const Knowledge& knowledge)
      : request_(request), knowledge_(knowledge) {}

  /// nullopt inside the result when nothing fits; `why_not` then says why.
  [[nodiscard]] Result<std::optional<TriedSetting>> best(const PrecisionChoice& choice, int gpus);

  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] std::int64_t considered() const { return considered_; }

 private:
  Result<BatchLimits> limits_for(const PrecisionChoice& choice, int gpus, const Scenario& scenario);
  std::vector<std::int64_t> batch_ladder(const BatchLimits& limits, const Step& step,
                                         int gpus) const;
  Result<bool> choose_batch(TriedSetting& setting, const std::vector<std::int64_t>& ladder);
  Result<StepTime> time_at(const PreparedStep& prepared, const TriedSetting& setting,
                           std::int64_t batch);
  bool choose_loader(TriedSetting& setting);
  Status choose_batch_for_workers(TriedSetting& setting, const std::vector<std::int64_t>& ladder);
  Status choose_pinning(TriedSetting& setting);

  const PlanRequest& request_;
  const Knowledge& knowledge_;
  /// Limits of the batch by captured step and number of GPUs.
  std::map<std::pair<const Step*, int>, BatchLimits> limits_;
  /// What was timed ahead, by precision, number of GPUs and batch.
  std::map<std::tuple<Precision, int, std::int64_t>, StepTime> times_;
  std::string why_not_;
  std::int64_t considered_ = 0;
};

/// The loader of one process of a scenario, for searches and findings.
[[nodiscard]] LoaderCase loader_case(const Scenario& scenario, const StepTime& time);

/// What the plan of the input says of a setting's loader; nothing when nothing is known of the
/// data.
[[nodiscard]] Result<std::optional<InputPlan>> plan_of_input(const PlanRequest& request,
                                                             const Knowledge& knowledge,
                                                             const TriedSetting& setting,
                                                             const Figure& samples_per_s);

/// Higher is better.
[[nodiscard]] double score(Objective objective, const TriedSetting& setting);

}  // namespace stoker
