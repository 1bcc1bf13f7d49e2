#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "study/definition/study.h"

namespace stoker::study {

/// The study as a store keeps it, and back.
[[nodiscard]] json::Value study_json(const Study& study);
[[nodiscard]] Result<Study> study_from_json(const json::Value& root, const std::string& where);

/// What differs between the study that a store holds and the one that is asked for, a line each:
/// "axes: {...} there, {...} asked for".
[[nodiscard]] std::vector<std::string> differences(const Study& stored, const Study& asked);

}  // namespace stoker::study
