#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

/// The newest format that this reader knows (docs/reference/step-file.md).
inline constexpr int kStepSchemaMajor = 1;

/// Reads and checks a step file. Whatever is wrong with it is one error that names file and field;
/// a Step that comes back has all ids in range and lifetimes in order.
[[nodiscard]] Result<Step> read_step_file(const std::filesystem::path& path);

/// Reads and checks a step's JSON text; `where` names the source in errors.
[[nodiscard]] Result<Step> parse_step(std::string_view json, const std::string& where);

/// Lifetimes: each storage allocated once, freed at most once, used only while alive; phases in
/// order.
[[nodiscard]] Status check_lifetimes(const Step& step, const std::string& where);

}  // namespace stoker
