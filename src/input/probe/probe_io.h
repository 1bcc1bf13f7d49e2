#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "input/probe/cache_what_if.h"
#include "input/probe/probe.h"

namespace stoker {

/// The probe file (docs/reference/probe-file.md); with `what_if` as `stoker probe --json` shows it.
[[nodiscard]] std::string probe_to_json(const Probe& probe,
                                        const std::vector<CacheWhatIf>& what_if = {});

/// Reads and checks every number. `where` names the file in errors.
[[nodiscard]] Result<Probe> parse_probe(std::string_view text, const std::string& where = {});

[[nodiscard]] Status write_probe(const std::filesystem::path& path, const Probe& probe);
[[nodiscard]] Result<Probe> read_probe(const std::filesystem::path& path);

}  // namespace stoker
