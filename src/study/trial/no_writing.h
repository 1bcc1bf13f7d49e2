#pragma once

#include <filesystem>

#include "base/result.h"

namespace stoker::study {

/// "cannot be made: No space left on device; make room ...": why a file of a study could not be
/// written, by errno, with what to do about it. `what` is "made", "written" or "locked".
[[nodiscard]] tl::unexpected<Error> no_writing(const char* what, const std::filesystem::path& path);
[[nodiscard]] tl::unexpected<Error> no_writing(const char* what, const std::filesystem::path& path,
                                               int reason);

}  // namespace stoker::study
