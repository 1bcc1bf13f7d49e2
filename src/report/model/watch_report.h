#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/findings/job_diagnosis.h"
#include "diagnosis/timeline/job_timeline.h"

namespace stoker {

/// The last seconds of a watch, for one line.
struct WatchLine {
  Stretch stretch;
  int workers = 0;
  double cores = 0;
  int processes = 0;
};

/// The stretches of the last `seconds`, as one.
[[nodiscard]] WatchLine last_of(const JobTimeline& timeline, double seconds);

/// What was forecast of a run (`--against`), beside what it did.
struct AgainstForecast {
  std::string what, machine;  ///< "resnet50 --batch 64", "A100-SXM4-40GB"
  std::int64_t batch = 0;
  Figure step_ms, samples_per_s;  ///< the step without waiting for data; of the whole job
  double seen_step_ms = 0, seen_samples_per_s = 0;
  std::string basis;
};

/// A watch or a recording at its end.
struct WatchReport {
  std::string tool_version;
  std::string source;  ///< "process 4242", "python train.py", a recording's name
  const JobTimeline* timeline = nullptr;
  JobDiagnosis diagnosis;
  std::vector<std::string> hidden;  ///< what this user may not see
  std::string recording;            ///< file that was written; empty: none
  std::size_t most_findings = 3;    ///< that the text shows
  std::optional<AgainstForecast> against{};
};

[[nodiscard]] std::string watch_line_text(const WatchLine& line);
[[nodiscard]] std::string watch_text(const WatchReport& report);

/// One line each: docs/schema/stoker-watch-1.json.
[[nodiscard]] std::string watch_line_json(const WatchLine& line, const std::string& tool_version);
[[nodiscard]] std::string watch_json(const WatchReport& report);

}  // namespace stoker
