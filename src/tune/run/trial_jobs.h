#pragma once

#include <string>
#include <vector>

#include "study/definition/study.h"
#include "study/store/store.h"
#include "tune/method/history.h"

/// Internal to src/tune/run: how what a search asks for stands in a study. Behind the user's axes a
/// trial has four more values: stage, config, share and steps, which its command may use as well.
namespace stoker::tune {

inline constexpr const char* kOwnAxes[] = {"stage", "config", "share", "steps"};

/// The axes that a tuned study has besides the user's.
[[nodiscard]] std::vector<study::Axis> own_axes();

/// What a trial of a search finds in its environment; `checkpoints` is the folder of all.
void add_environment(study::Study& study, const std::string& checkpoints,
                     const std::string& metric);

/// The values of a trial, in the order of the study's axes. A configuration of 0 is the trial's own
/// number.
[[nodiscard]] study::TrialValues trial_of(const Request& request, std::int64_t number);
[[nodiscard]] Request request_of(const study::TrialValues& trial, std::int64_t number);

/// Whether a trial ended by what befell it, so that nothing is known of its settings: it is run
/// again.
[[nodiscard]] bool was_interrupted(const study::TrialRow& row);

/// Whether it was taken from its place, rather than told to end.
[[nodiscard]] bool is_lost(const study::TrialRow& row);
/// Whether it found no room on a disk, or may have lost reports for want of it.
[[nodiscard]] bool found_disk_full(const study::TrialRow& row);

/// The first word of a stop file of the budget.
inline constexpr std::string_view kBudgetReason = "budget: ";

}  // namespace stoker::tune
