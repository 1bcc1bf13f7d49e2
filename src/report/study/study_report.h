#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "study/expectation/forecast_guide.h"
#include "study/expectation/verdict.h"
#include "study/findings/convergence.h"
#include "study/findings/findings.h"
#include "study/findings/selection.h"

namespace stoker {

/// "12 trials: 9 done, 1 failed, 2 waiting".
[[nodiscard]] std::string counts_text(const std::map<study::TrialState, std::int64_t>& counts);
/// One line a trial, failed ones with the reason, and how far the study is.
[[nodiscard]] std::string study_text(const study::StudyView& view);
/// One line a group.
[[nodiscard]] std::string groups_text(const study::StudyView& view,
                                      const std::vector<std::string>& by,
                                      const std::vector<study::Group>& groups);
/// Everything about one trial; `command` is its command as a shell would take it.
[[nodiscard]] std::string trial_text(const study::StudyView& view, const study::TrialRow& row,
                                     const std::string& command, const std::string& folder);
/// A line while a study runs: "12/40 done batch=64: accuracy 0.75 (12.3 s)".
[[nodiscard]] std::string progress_line(const study::Study& study, const study::TrialRow& row,
                                        std::int64_t ended, std::int64_t all);

/// Best settings, what each axis does, noise, scaling, the Pareto front.
[[nodiscard]] std::string findings_text(const study::StudyView& view,
                                        const study::Findings& findings);

/// "12 min [9-15] at 4 a time, 46 min [38-55] together, cost 3.1 [2.5-3.7]"; empty: not known.
[[nodiscard]] std::string outlook_text(const study::Outlook& outlook);
/// How forecasts came out and what they saved; empty where there were none.
[[nodiscard]] std::string verdict_text(const study::ForecastVerdict& verdict);

/// When settings reach a target, and where they stand after equal times.
[[nodiscard]] std::string convergence_text(const study::StudyView& view,
                                           const study::Convergence& convergence);
/// Utilisation and memory by setting, in GB and per cent of the card.
[[nodiscard]] std::string usage_text(const study::StudyView& view);
/// One line a figure of a finding.
[[nodiscard]] std::string findings_csv(const study::StudyView& view,
                                       const study::Findings& findings,
                                       const std::vector<study::Convergence>& convergences);

/// `findings` may be null.
[[nodiscard]] std::string study_json(const study::StudyView& view, std::string_view version,
                                     const study::Findings* findings = nullptr,
                                     const std::vector<study::Convergence>& convergences = {});
/// JSON of a study with what plots need besides: all settings, fitted lines, and curves of the
/// metrics of `convergences`, in their order.
[[nodiscard]] std::string plots_json(const study::StudyView& view, std::string_view version,
                                     const study::Findings& findings,
                                     const std::vector<study::Convergence>& convergences,
                                     const std::vector<study::Curves>& curves);
[[nodiscard]] std::string groups_json(const study::StudyView& view,
                                      const std::vector<std::string>& by,
                                      const std::vector<study::Group>& groups,
                                      std::string_view version);
/// Trials that were not started, each with the command that it would run.
[[nodiscard]] std::string planned_json(const study::StudyView& view,
                                       const std::vector<std::string>& commands,
                                       std::string_view version);
/// A heading line, then one line a trial: trial, axes, repeat, seed, state, cause, metrics,
/// resources. Empty cells: not measured.
[[nodiscard]] std::string study_csv(const study::StudyView& view);

}  // namespace stoker
