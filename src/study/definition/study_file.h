#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/definition/study.h"

namespace stoker::study {

/// A study file: docs/reference/study-file.md. `file` is what errors point at.
[[nodiscard]] Result<Study> parse_study(std::string_view text, const std::string& file);
[[nodiscard]] Result<Study> read_study_file(const std::filesystem::path& path);

/// The tables of a study file that say where trials run and what they take: [slurm], [kubernetes]
/// and [resources]. What else a study file holds is read and left out.
[[nodiscard]] Result<Study> read_cluster_file(const std::filesystem::path& path);

/// An axis of a flag: "batch=32,64", "workers=0..8", "model,side=resnet:224,inception:299".
[[nodiscard]] Result<Axis> parse_axis(const std::string& typed);
/// "accuracy", "accuracy=acc: ([0-9.]+)"; a goal behind the name: "loss:min".
[[nodiscard]] Result<Metric> parse_metric(const std::string& typed);

}  // namespace stoker::study
