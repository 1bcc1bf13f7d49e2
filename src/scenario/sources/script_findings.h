#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "json/value.h"
#include "scenario/request/request.h"

namespace stoker {

/// A setting that a captured script has, and the line that says so.
struct ScriptFinding {
  std::string setting;           ///< by its name in the table of settings
  std::optional<double> number;  ///< of a number or a switch
  std::string text;              ///< of any other
  std::string words;             ///< "batch 64"
  std::int64_t line = 0;         ///< 0: unknown
};

/// A place where the script read a value of a tensor that has none.
struct ScriptRead {
  std::string what, answer;
  std::int64_t line = 0, count = 0;
};

/// What the capture of a script found in it (docs/reference/step-file.md, "script").
struct ScriptFindings {
  std::string file;
  std::vector<ScriptFinding> found;
  std::vector<ScriptRead> reads;
};

[[nodiscard]] ScriptFindings read_findings(const json::Value& step_file);

/// The request with what it leaves open taken from the script.
[[nodiscard]] RunRequest with_findings(RunRequest request, const ScriptFindings& findings,
                                       bool cpu);

/// "found in train.py: batch 64 (line 21), 2 workers (line 21), overruled" for the answer's
/// assumptions; what the request says otherwise is marked.
[[nodiscard]] std::string findings_words(const RunRequest& asked, const ScriptFindings& findings);

/// Counts the values that the script read, with their lines.
void note_reads(const ScriptFindings& findings, Diagnostics& data);

}  // namespace stoker
