#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/trace/ranks_diagnosis.h"
#include "diagnosis/trace/trace_diagnosis.h"
#include "snapshot/explanation.h"
#include "snapshot/kineto_memory.h"

namespace stoker {

/// A memory snapshot of a real run: what was held, why, what to do.
[[nodiscard]] std::string snapshot_text(const SnapshotExplanation& e, const Snapshot& snapshot,
                                        const std::string& file);
/// What a profile tells of memory.
struct ProfileMemory {
  KinetoMemory memory;
  KinetoSummary summary;
  KinetoComparison comparison;
};
/// A trace of torch.profiler: where its time went, and what it tells of memory. One of both is
/// there.
struct ProfileReport {
  std::string file, tool_version;
  TraceReading reading;
  std::optional<TraceDiagnosis> time;
  std::optional<ProfileMemory> memory;
};
[[nodiscard]] std::string profile_text(const ProfileReport& report);
/// The traces of a job's ranks together.
struct RanksReport {
  std::string source, tool_version;  ///< source: "traces/", "a.json and 7 more"
  RanksDiagnosis diagnosis;
};
[[nodiscard]] std::string ranks_text(const RanksReport& report);
/// What a rank by itself loses most by, collectives apart: "waiting for data (12 %)".
[[nodiscard]] std::string own_loss(const RankShares& rank);
/// The part of the text that is about memory.
[[nodiscard]] std::string kineto_text(const ProfileMemory& memory, const std::string& file);

/// JSON by docs/guide/snapshots.md.
[[nodiscard]] std::string snapshot_json(const SnapshotExplanation& e, const Snapshot& snapshot,
                                        const std::string& file, const std::string& tool_version);
[[nodiscard]] std::string profile_json(const ProfileReport& report);
[[nodiscard]] std::string ranks_json(const RanksReport& report);

}  // namespace stoker
