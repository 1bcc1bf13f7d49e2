#include "cli/verbs/study_pages.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "system/system_files.h"

namespace stoker::cli {
namespace {

/// Targets by metric.
Result<std::map<std::string, double>> targets_of(const std::vector<std::string>& typed_targets,
                                                 const study::StudyView& view) {
  std::map<std::string, double> targets;
  for (const std::string& typed : typed_targets) {
    const auto equals = typed.find('=');
    const auto value =
        equals == std::string::npos ? std::nullopt : decimal_number(typed.substr(equals + 1));
    const std::string place = "--target " + typed, metric = typed.substr(0, equals);
    if (!value || equals == 0)
      return fail(ErrorCode::kUsage, "write METRIC=VALUE: --target accuracy=0.75", place);
    if (std::ranges::find(view.metrics, metric) == view.metrics.end())
      return fail(ErrorCode::kNotFound,
                  "no trial has \"" + metric + "\"" + suggestion(metric, view.metrics), place);
    targets[metric] = *value;
  }
  return targets;
}

/// Metrics that are learnt: speeds and times have no convergence.
bool converges(const study::StudyView& view, const std::string& metric) {
  return study::more_is_better(view.study, metric).has_value() && metric != "samples_per_s" &&
         !metric.ends_with("_s");
}

}  // namespace

Result<std::vector<study::Convergence>> convergences_of(const study::Store& store,
                                                        const study::StudyView& view,
                                                        const std::vector<std::string>& typed) {
  std::vector<study::Convergence> all;
  const auto targets = TRY(targets_of(typed, view));
  for (const std::string& metric : view.metrics) {
    const auto most = study::more_is_better(view.study, metric);
    const auto asked = targets.find(metric);
    if (!converges(view, metric)) continue;
    const auto target =
        asked == targets.end() ? std::nullopt : std::optional<double>(asked->second);
    if (auto found = study::convergence(view, metric, TRY(store.curves(metric)), *most, target))
      all.push_back(std::move(*found));
  }
  return all;
}

Result<StudyPicture> study_picture(const study::Store& store, const study::StudyView& view,
                                   const std::vector<std::string>& targets) {
  StudyPicture picture{view, study::findings(view),        {},
                       {},   study::verdict_of(view.rows), store.path().filename().string()};
  picture.convergences = TRY(convergences_of(store, view, targets));
  for (const std::string& metric : view.metrics) {
    if (converges(view, metric)) picture.curves[metric] = TRY(store.curves(metric));
  }
  return picture;
}

}  // namespace stoker::cli
