#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/sources/tools.h"
#include "step/step.h"

namespace stoker {

/// The folder in which captures of specs are remembered; made where it is not there.
[[nodiscard]] Result<std::filesystem::path> captures_folder();

/// Where the capture of this order is remembered: a name for all that decides it before Python runs
/// (spec, precision, device, assumptions, interpreter).
[[nodiscard]] std::filesystem::path remembered_capture(const CaptureOrder& order,
                                                       const std::string& interpreter);

/// What a remembered capture depends on and is another by now: "net.py", "$WIDTH". Empty: it is as
/// good as a new one.
[[nodiscard]] std::vector<std::string> changed_since(const Provenance& provenance);

/// The remembered step, with the time at which it was captured; nullopt: there is none, or what it
/// was made from is another by now. A file that cannot be read counts as none.
[[nodiscard]] std::optional<Step> recall_capture(const std::filesystem::path& path);

}  // namespace stoker
