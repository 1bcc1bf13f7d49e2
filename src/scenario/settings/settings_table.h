#pragma once

#include <span>

#include "scenario/settings/settings.h"

namespace stoker {

/// Settings of plan and predict: model, machine, data and step. A new setting of a job is one row
/// here, a member of the request with its binding, and the place that reads it.
[[nodiscard]] std::span<const SettingRow> job_settings();

/// Settings of plan and predict: optimizer, several GPUs, memory, what is searched and answered.
[[nodiscard]] std::span<const SettingRow> search_settings();

/// Settings of the verbs that measure.
[[nodiscard]] std::span<const SettingRow> measuring_settings();

/// Settings of the verbs that look at a run, a model or a machine.
[[nodiscard]] std::span<const SettingRow> lookup_settings();

/// Settings of the verbs that run and show studies.
[[nodiscard]] std::span<const SettingRow> study_settings();

/// Settings of the verb that searches.
[[nodiscard]] std::span<const SettingRow> tune_settings();

/// All of them.
[[nodiscard]] std::span<const SettingRow> settings_table();

}  // namespace stoker
