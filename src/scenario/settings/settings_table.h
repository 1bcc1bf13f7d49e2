#pragma once

#include <span>

#include "scenario/settings/settings.h"

namespace stoker {

/// What Lightning, Keras and PyTorch's dtypes call precisions. Lightning's "16" and "-mixed" are
/// autocast; its "-true" and a dtype's name are a model cast as a whole.
inline constexpr std::string_view kPrecisionAliases =
    "32=fp32 32-true=fp32 float32=fp32 float=fp32 full=fp32 16=amp-fp16 16-mixed=amp-fp16 "
    "fp16-mixed=amp-fp16 mixed-float16=amp-fp16 bf16-mixed=amp-bf16 mixed-bfloat16=amp-bf16 "
    "bf16-true=bf16 bfloat16=bf16 16-true=fp16 fp16-true=fp16 float16=fp16 half=fp16";

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
