#pragma once

#include <string>
#include <vector>

#include "input/probe/cache_what_if.h"
#include "input/probe/probe.h"

namespace stoker {

/// "Storage    ext4; ...", the table of reads by depth, and what the file system means.
[[nodiscard]] std::string storage_text(const Probe& probe);
/// The data set beside memories of several sizes.
[[nodiscard]] std::string cache_text(const Probe& probe, const std::vector<CacheWhatIf>& rows);
/// Whether the cores or storage set the pace: one sentence, before all figures. Empty when storage
/// was not measured.
[[nodiscard]] std::string pace_text(const Probe& probe, const std::vector<CacheWhatIf>& rows);
/// What to do about it, one line each; empty when nothing needs doing.
[[nodiscard]] std::vector<std::string> storage_advice(const Probe& probe,
                                                      const std::vector<CacheWhatIf>& rows);

}  // namespace stoker
