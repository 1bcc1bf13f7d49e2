#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/packed_file.h"
#include "base/result.h"

namespace stoker {

/// Takes a trace's name and its bytes, or why they could not be read.
using TakeTrace = std::function<void(const std::string& name, Result<Unpacked> content)>;

/// Whether its name ends as that of a tar archive does: .tar, .tar.gz, .tgz.
[[nodiscard]] bool named_as_archive(const std::string& path);

/// Hands on one trace after the other, so that one alone is in memory: files as they are, of a
/// folder those named .json or .json.gz (where it has none, of the folders in it), of a tar archive
/// likewise. Fails where a path cannot be opened at all, or there are more than a job has.
[[nodiscard]] Status each_trace(const std::vector<std::string>& paths, const TakeTrace& take);

}  // namespace stoker
