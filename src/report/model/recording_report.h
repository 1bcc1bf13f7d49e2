#pragma once

#include <string>

#include "snapshot/explanation.h"
#include "snapshot/kineto_memory.h"

namespace stoker {

/// A memory snapshot of a real run: what was held, why, what to do.
[[nodiscard]] std::string snapshot_text(const SnapshotExplanation& e, const Snapshot& snapshot,
                                        const std::string& file);
/// The memory events of a profile.
[[nodiscard]] std::string kineto_text(const KinetoMemory& memory, const KinetoSummary& summary,
                                      const KinetoComparison& comparison, const std::string& file);

/// JSON by docs/guide/snapshots.md.
[[nodiscard]] std::string snapshot_json(const SnapshotExplanation& e, const Snapshot& snapshot,
                                        const std::string& file, const std::string& tool_version);
[[nodiscard]] std::string kineto_json(const KinetoMemory& memory, const KinetoSummary& summary,
                                      const KinetoComparison& comparison, const std::string& file,
                                      const std::string& tool_version);

}  // namespace stoker
